// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/metrics/snapshot.h"

#include <functional>

#include "server/daemon/metrics/exposition.h"
#include "server/daemon/version.h"

namespace flagos::daemon {
namespace {

constexpr MetricType kGauge = MetricType::kGauge, kCounter = MetricType::kCounter;

// A family with a sample for each device, or each that has the figure.
class DeviceFamilies {
 public:
  DeviceFamilies(Exposition& page, const v1::ListDevicesResponse& devices) : page_(page), devices_(devices) {}

  void add(std::string_view name, std::string_view help, const std::function<double(const v1::Device&)>& value) {
    add_known(
        name, help, [](const v1::Device&) { return true; }, value);
  }
  // Of what a device tells of itself.
  void add_told(std::string_view name, std::string_view help, bool (v1::DeviceTelemetry::*known)() const,
                double (v1::DeviceTelemetry::*value)() const) {
    add_known(
        name, help, [known](const v1::Device& d) { return d.has_telemetry() && (d.telemetry().*known)(); },
        [value](const v1::Device& d) { return (d.telemetry().*value)(); });
  }

  void add_known(std::string_view name, std::string_view help, const std::function<bool(const v1::Device&)>& known,
                 const std::function<double(const v1::Device&)>& value) {
    page_.family(name, kGauge, help);
    for (const v1::Device& device : devices_.devices()) {
      if (!known(device)) continue;
      const std::string index = std::to_string(device.index());
      page_.sample({{"device", index}, {"uuid", device.uuid()}, {"model", device.name()}}, value(device));
    }
  }

 private:
  Exposition& page_;
  const v1::ListDevicesResponse& devices_;
};

void RenderDevices(Exposition& page, const v1::ListDevicesResponse& devices) {
  using T = v1::DeviceTelemetry;
  DeviceFamilies families(page, devices);
  families.add("flagos_device_memory_total_bytes", "Memory of the device.",
               [](const v1::Device& d) { return static_cast<double>(d.memory_total()); });
  families.add("flagos_device_memory_used_bytes", "Memory that sessions hold, as their executors say.",
               [](const v1::Device& d) { return static_cast<double>(d.memory_used()); });
  families.add("flagos_device_busy_ratio", "Share of the last seconds in which executors were busy.",
               [](const v1::Device& d) { return d.busy_ratio(); });
  families.add("flagos_device_sessions", "Sessions on the device.",
               [](const v1::Device& d) { return static_cast<double>(d.sessions()); });
  families.add("flagos_pool_idle", "Executors held ready for a set of devices with this one.",
               [](const v1::Device& d) { return static_cast<double>(d.warm_executors()); });
  page.family("flagos_device_health_state", kGauge, "1 for the state that the device is in.");
  for (const v1::Device& device : devices.devices()) {
    const std::string index = std::to_string(device.index());
    for (const auto& [state, name] :
         {std::pair{v1::DEVICE_HEALTH_HEALTHY, "healthy"}, std::pair{v1::DEVICE_HEALTH_UNHEALTHY, "unhealthy"}}) {
      page.sample({{"device", index}, {"uuid", device.uuid()}, {"model", device.name()}, {"state", name}},
                  device.health() == state ? 1 : 0);
    }
  }
  families.add_told("flagos_device_utilisation_ratio", "Share of the time in which the device computed, for anybody.",
                    &T::has_utilisation, &T::utilisation);
  families.add_known(
      "flagos_device_memory_occupied_bytes", "Memory in use, by whomever, as the device tells.",
      [](const v1::Device& d) { return d.has_telemetry() && d.telemetry().has_memory_used(); },
      [](const v1::Device& d) { return static_cast<double>(d.telemetry().memory_used()); });
  families.add_told("flagos_device_temperature_celsius", "Temperature.", &T::has_temperature, &T::temperature);
  families.add_told("flagos_device_power_watts", "Power draw.", &T::has_power, &T::power);
  families.add_told("flagos_device_power_limit_watts", "Power limit in force.", &T::has_power_limit, &T::power_limit);
  families.add_known(
      "flagos_device_telemetry_age_seconds", "Age of what the device tells of itself.",
      [](const v1::Device& d) { return d.has_telemetry() && d.telemetry().has_age(); },
      [](const v1::Device& d) { return d.telemetry().age(); });
}

void RenderSessions(Exposition& page, const std::vector<v1::Session>& sessions) {
  page.family("flagos_session_info", kGauge, "1, with who and what a session is.");
  for (const v1::Session& s : sessions) {
    page.sample({{"sid", s.id()}, {"owner", s.owner()}, {"lease", s.lease()}, {"vendor", s.vendor()}}, 1);
  }
  constexpr std::string_view kPrefix = "SESSION_STATE_";
  page.family("flagos_session_state", kGauge, "1 for the state that the session is in.");
  for (const v1::Session& s : sessions) {
    page.sample({{"sid", s.id()}, {"state", v1::SessionState_Name(s.state()).substr(kPrefix.size())}}, 1);
  }
  const auto each = [&](std::string_view name, MetricType type, std::string_view help, auto value) {
    page.family(name, type, help);
    for (const v1::Session& s : sessions) page.sample({{"sid", s.id()}}, static_cast<double>((s.*value)()));
  };
  using S = v1::Session;
  each("flagos_session_memory_used_bytes", kGauge, "Device memory that the session holds.", &S::memory_used);
  each("flagos_session_memory_peak_bytes", kGauge, "The most that it held.", &S::memory_peak);
  each("flagos_session_memory_quota_bytes", kGauge, "What its lease may hold; 0: no limit.", &S::memory_quota);
  each("flagos_session_device_seconds_total", kCounter, "Time in which its executor was busy.", &S::device_time);
  each("flagos_session_share_weight", kGauge, "Weight of its lease's share of the devices' time.", &S::weight);
  each("flagos_session_throttled_seconds_total", kCounter, "Time in which it waited for its turn.", &S::throttled);
  each("flagos_session_calls_total", kCounter, "Calls of operators.", &S::calls);
  each("flagos_session_synchronous_calls_total", kCounter, "Calls that the program waited for.", &S::synchronous_calls);
  each("flagos_session_mispredictions_total", kCounter, "Results that were made to fit.", &S::mispredictions);
  each("flagos_session_queue_bytes", kGauge, "Bytes in the ring that wait for the executor.", &S::queue_bytes);
  each("flagos_session_blocked_total", kCounter, "Waits of the program for room.", &S::blocked_count);
  each("flagos_session_idle_seconds", kGauge, "Time since its last call.", &S::idle);
}

void RenderDaemon(Exposition& page, const MetricsSnapshot& snapshot) {
  page.family("flagos_build_info", kGauge, "1, with the version of flagosd.");
  page.sample({{"version", kVersion}}, 1);
  const auto one = [&](std::string_view name, MetricType type, std::string_view help, double value) {
    page.family(name, type, help);
    page.sample({}, value);
  };
  one("flagos_start_time_seconds", kGauge, "When flagosd started, Unix time.", snapshot.started);
  one("flagos_config_reload_ok", kGauge, "0 where the latest reload of the configuration was refused.",
      snapshot.reload_ok ? 1 : 0);
  one("flagos_sessions_started_total", kCounter, "Sessions that were opened.",
      static_cast<double>(snapshot.sessions_started));
  one("flagos_sessions_lost_total", kCounter, "Sessions whose executor died.",
      static_cast<double>(snapshot.sessions_lost));
  one("flagos_sessions_readopted_total", kCounter,
      "Sessions that an earlier flagosd began and that go on with this one.",
      static_cast<double>(snapshot.sessions_readopted));
  one("flagos_orphans", kGauge, "Executors of an earlier flagosd that have not come to this one.",
      static_cast<double>(snapshot.sessions_awaited));
  one("flagos_daemon_restarts_total", kCounter, "Starts of flagosd that followed another one since the boot.",
      static_cast<double>(snapshot.restarts));
  if (snapshot.audit) {
    one("flagos_audit_records_total", kCounter, "Records written to the audit log.",
        static_cast<double>(snapshot.audit->records));
    one("flagos_audit_failures_total", kCounter, "Records that the audit log lost, and failures to keep its head.",
        static_cast<double>(snapshot.audit->failures));
  }
  one("flagos_exporter_resident_bytes", kGauge, "Memory of flagosd itself.", static_cast<double>(snapshot.resident));
}

}  // namespace

std::string RenderMetrics(const MetricsSnapshot& snapshot, size_t max_series) {
  Exposition page(max_series);
  RenderDaemon(page, snapshot);
  RenderDevices(page, snapshot.devices);
  RenderSessions(page, snapshot.sessions);
  Exposition end(1);
  end.family("flagos_series_dropped", kGauge, "Samples that the limit of series leaves no room for on this page.");
  end.sample({}, static_cast<double>(page.dropped()));
  return page.text() + end.text();
}

}  // namespace flagos::daemon
