// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/control/view.h"

#include <algorithm>

#include "server/common/strings.h"
#include "server/daemon/config/values.h"
#include "server/daemon/control/users.h"
#include "server/daemon/telemetry/view.h"

namespace flagos::daemon {
namespace {

std::string UuidText(const DeviceRecord& record) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < sizeof record.uuid; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text.push_back('-');
    text.push_back(kDigits[record.uuid[i] >> 4]);
    text.push_back(kDigits[record.uuid[i] & 15]);
  }
  return text;
}

v1::ShareClass ToWire(ShareClass share_class) { return static_cast<v1::ShareClass>(static_cast<int>(share_class) + 1); }

bool Uses(const Session& session, uint32_t device) {
  const DeviceSet& devices = session.devices();
  return !session.over() && std::find(devices.begin(), devices.end(), device) != devices.end();
}

}  // namespace

void Show(const Session& session, v1::Session* to) {
  to->set_id(session.id());
  to->set_state(static_cast<v1::SessionState>(session.state()));
  to->set_lease(session.lease());
  to->set_owner(UserName(session.uid()));
  to->set_uid(session.uid());
  to->set_origin(Cat(session.container().empty() ? "host:" : "container:", session.client_pid()));
  to->set_container(session.container());
  to->set_client_pid(static_cast<uint32_t>(session.client_pid()));
  to->set_executor_pid(static_cast<uint32_t>(session.executor_pid()));
  for (const uint32_t device : session.devices()) to->add_devices(device);
  to->set_vendor(session.vendor());
  to->set_program(session.program());
  to->set_client_torch(session.client_torch());
  to->set_executor_torch(session.executor_torch());
  to->set_started(session.started());
  to->set_ended(session.ended());
  to->set_end_cause(session.end_cause());
  to->set_generation(1);
  to->set_ring_bytes(session.ring_bytes());

  const SessionFigures figures = session.figures();
  to->set_memory_used(figures.memory_used);
  to->set_memory_peak(figures.memory_peak);
  to->set_memory_quota(session.memory_quota());
  to->set_weight(session.share().weight);
  to->set_max_percent(session.share().max_percent);
  to->set_share_class(ToWire(session.share().share_class));
  to->set_compute_mode(ShowValue(session.compute_mode()));
  to->set_throttled(session.throttled());
  to->set_device_time(figures.device_time);
  to->set_idle(figures.idle);
  to->set_calls(figures.calls);
  to->set_synchronous_calls(figures.synchronous_calls);
  to->set_mispredictions(figures.mispredictions);
  to->set_queue_bytes(figures.queue_bytes);
  to->set_blocked(figures.blocked);
  to->set_blocked_for(figures.blocked_for);
  to->set_blocked_count(figures.blocked_count);
  to->set_last_operator(figures.last_operator);
  to->set_last_sequence(figures.last_sequence);
}

void Show(const Lease& lease, v1::Lease* to) {
  to->set_lease(lease.id);
  to->set_name(lease.name);
  to->set_owner(UserName(lease.uid));
  to->set_uid(lease.uid);
  to->set_sessions(static_cast<uint32_t>(lease.sessions.size()));
  to->set_memory_limit(FormatMemoryLimit(lease.memory->limit()));
  to->set_weight(lease.share->terms().weight);
  to->set_max_percent(lease.share->terms().max_percent);
  to->set_share_class(ToWire(lease.share->terms().share_class));
  uint64_t used = 0, quota = 0;
  DeviceSet all;
  for (uint32_t device = 0; device < kMaxDevices; ++device) {
    all.push_back(device);
    const LeaseMemory memory = lease.memory->read(device);
    if (memory.used == 0 && memory.quota == 0) continue;
    v1::LeaseDevice& shown = *to->add_devices();
    shown.set_index(device);
    shown.set_memory_used(memory.used);
    shown.set_memory_quota(memory.quota);
    used += memory.used;
    quota += memory.quota;
  }
  to->set_memory_used(used);
  to->set_memory_quota(quota);
  to->set_device_time(lease.share->used(all));
}

void Show(const Supervisor& supervisor, v1::ListDevicesResponse* to) {
  const DeviceTable& table = supervisor.devices();
  for (const DeviceTable::Entry& entry : table.entries()) {
    v1::Device& device = *to->add_devices();
    device.set_index(entry.index);
    device.set_name(Printable(ReadText(entry.record.name)));
    device.set_vendor(table.vendor());
    device.set_uuid(UuidText(entry.record));
    device.set_health(table.healthy() ? v1::DEVICE_HEALTH_HEALTHY : v1::DEVICE_HEALTH_UNHEALTHY);
    device.set_memory_total(entry.record.total_memory);
    device.set_warm_executors(supervisor.pool().warm(entry.index));
    uint64_t used = 0;
    uint32_t sessions = 0;
    double busy = 0;
    for (const auto& [number, session] : supervisor.sessions()) {
      if (!Uses(*session, entry.index)) continue;
      ++sessions;
      used += session->memory_used(entry.index);
      busy += session->busy_ratio();
    }
    device.set_sessions(sessions);
    device.set_memory_used(used);
    device.set_busy_ratio(std::min(busy, 1.0));
    Show(supervisor.telemetry(), entry.record, device);
  }
}

}  // namespace flagos::daemon
