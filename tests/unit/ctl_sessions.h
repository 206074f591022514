// SPDX-License-Identifier: Apache-2.0
// Two sessions and two devices as a daemon could answer them.
#pragma once

#include "flagos/v1/control.pb.h"

namespace flagos::testing {

inline constexpr double kNow = 1'700'000'000;  // 2023-11-14T22:13:20Z

inline v1::Session RunningSession() {
  v1::Session session;
  session.set_id("s1");
  session.set_state(v1::SESSION_STATE_RUNNING);
  session.set_lease("l1");
  session.set_owner("alice");
  session.set_uid(1000);
  session.set_origin("host:4711");
  session.set_client_pid(4711);
  session.set_executor_pid(4712);
  session.add_devices(0);
  session.add_devices(1);
  session.set_vendor("cpu");
  session.set_program("train.py, \"fast\"");
  session.set_memory_used(1536u << 20);
  session.set_memory_quota(8ull << 30);
  session.set_device_time(192);
  session.set_idle(0.25);
  session.set_started(kNow - 7500);
  session.set_calls(123456);
  session.set_queue_bytes(65536);
  session.set_ring_bytes(4u << 20);
  session.set_blocked("ring full");
  session.set_blocked_for(0.5);
  session.set_last_operator("aten::add.Tensor");
  return session;
}

inline v1::Session FaultedSession() {
  v1::Session session;
  session.set_id("s12");
  session.set_state(v1::SESSION_STATE_FAULTED);
  session.set_owner("bob");
  session.set_origin("host:99");
  session.set_started(kNow - 60);
  session.set_ended(kNow - 30);
  session.set_end_cause("executor killed by signal 11 (SIGSEGV)");
  session.set_program("evil\x1b[2J");
  return session;
}

inline v1::Device DeviceOf(uint32_t index) {
  v1::Device device;
  device.set_index(index);
  device.set_name("CPU");
  device.set_vendor("cpu");
  device.set_uuid("00000000-0000-0000-0000-000000000000");
  device.set_health(v1::DEVICE_HEALTH_HEALTHY);
  device.set_memory_total(16ull << 30);
  device.set_memory_used(index == 0 ? 1536u << 20 : 0);
  device.set_sessions(index == 0 ? 1 : 0);
  device.set_warm_executors(1);
  device.set_busy_ratio(index == 0 ? 0.5 : 0);
  return device;
}

// A device of which much is told.
inline v1::Device WatchedDevice() {
  v1::Device device = DeviceOf(0);
  v1::DeviceTelemetry& telemetry = *device.mutable_telemetry();
  telemetry.set_age(0.25);
  telemetry.set_utilisation(0.42);
  telemetry.set_memory_used(3ull << 30);
  telemetry.set_memory_total(16ull << 30);
  telemetry.set_temperature(41);
  telemetry.set_power(65.25);
  telemetry.set_power_limit(700);
  telemetry.set_sm_clock(345);
  telemetry.set_clocks_held("none");
  telemetry.set_ecc_uncorrected(0);
  telemetry.set_mig(false);
  v1::DeviceProcess& process = *telemetry.add_processes();
  process.set_pid(4712);
  process.set_memory(1536u << 20);
  telemetry.add_processes()->set_pid(4713);
  return device;
}

}  // namespace flagos::testing
