// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/telemetry/view.h"

#include <algorithm>

#include "server/common/strings.h"

namespace flagos::daemon {
namespace {

void Show(const DeviceReading& reading, v1::DeviceTelemetry& to) {
  if (reading.utilisation) to.set_utilisation(*reading.utilisation);
  if (reading.memory_utilisation) to.set_memory_utilisation(*reading.memory_utilisation);
  if (reading.memory_used) to.set_memory_used(*reading.memory_used);
  if (reading.memory_total) to.set_memory_total(*reading.memory_total);
  if (reading.temperature) to.set_temperature(*reading.temperature);
  if (reading.power) to.set_power(*reading.power);
  if (reading.power_limit) to.set_power_limit(*reading.power_limit);
  if (reading.sm_clock) to.set_sm_clock(*reading.sm_clock);
  if (reading.sm_clock_max) to.set_sm_clock_max(*reading.sm_clock_max);
  if (reading.memory_clock) to.set_memory_clock(*reading.memory_clock);
  if (reading.memory_clock_max) to.set_memory_clock_max(*reading.memory_clock_max);
  if (reading.clocks_held) to.set_clocks_held(Printable(*reading.clocks_held));
  if (reading.ecc_corrected) to.set_ecc_corrected(*reading.ecc_corrected);
  if (reading.ecc_uncorrected) to.set_ecc_uncorrected(*reading.ecc_uncorrected);
  if (reading.compute_mode) to.set_compute_mode(Printable(*reading.compute_mode));
  if (reading.mig) to.set_mig(*reading.mig);
  if (reading.driver) to.set_driver(Printable(*reading.driver));
  for (const DeviceProcess& process : reading.processes) {
    v1::DeviceProcess& shown = *to.add_processes();
    shown.set_pid(process.pid);
    if (process.memory) shown.set_memory(*process.memory);
  }
}

}  // namespace

void Show(const Telemetry& telemetry, const DeviceRecord& record, v1::Device& to) {
  if (!telemetry.watched()) return;
  v1::DeviceTelemetry& shown = *to.mutable_telemetry();
  shown.set_problem(telemetry.problem());
  DeviceUuid uuid;
  std::copy(std::begin(record.uuid), std::end(record.uuid), uuid.begin());
  const auto latest = telemetry.latest(uuid);
  if (!latest) return;
  shown.set_age(latest->age);
  if (latest->figures != nullptr) Show(*latest->figures, shown);
}

}  // namespace flagos::daemon
