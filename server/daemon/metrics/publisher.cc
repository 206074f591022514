// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/metrics/publisher.h"

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <utility>

#include "server/common/log.h"
#include "server/daemon/control/view.h"
#include "server/daemon/metrics/snapshot.h"
#include "server/daemon/time.h"

namespace flagos::daemon {
namespace {

constexpr auto kInterval = std::chrono::seconds(1);

// Bytes of this process in memory; 0 where /proc does not say.
uint64_t Resident() {
  std::ifstream file("/proc/self/statm");
  uint64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

MetricsSnapshot Take(const Supervisor& supervisor, const ConfigReload& reload, const Auditor& auditor, double started) {
  MetricsSnapshot snapshot;
  snapshot.reload_ok = reload.last().status.ok();
  Show(supervisor, &snapshot.devices);
  const double oldest = UnixSeconds() - std::chrono::duration<double>(kEndedShown).count();
  for (const auto& [number, session] : supervisor.sessions()) {
    if (!session->over() || session->ended() > oldest) Show(*session, &snapshot.sessions.emplace_back());
  }
  snapshot.sessions_started = supervisor.sessions_started();
  snapshot.sessions_lost = supervisor.sessions_lost();
  snapshot.sessions_readopted = supervisor.sessions_readopted();
  snapshot.sessions_awaited = supervisor.sessions_awaited();
  snapshot.restarts = supervisor.restarts();
  if (const auto audit = auditor.counts()) {
    snapshot.audit = MetricsSnapshot::Audit{.records = audit->records, .failures = audit->failures};
  }
  snapshot.started = started;
  snapshot.resident = Resident();
  return snapshot;
}

}  // namespace

MetricsPublisher::MetricsPublisher(EventLoop& loop, const Supervisor& supervisor, const ConfigReload& reload,
                                   const Auditor& auditor)
    : loop_(loop), supervisor_(supervisor), reload_(reload), auditor_(auditor), started_(UnixSeconds()) {}

absl::StatusOr<std::unique_ptr<MetricsPublisher>> MetricsPublisher::Start(EventLoop& loop, const Supervisor& supervisor,
                                                                          const ConfigReload& reload,
                                                                          const Auditor& auditor) {
  const MetricsConfig& config = reload.config().metrics;
  if (config.listen.empty() && config.socket.empty()) return nullptr;
  std::unique_ptr<MetricsPublisher> publisher(new MetricsPublisher(loop, supervisor, reload, auditor));
  if (!config.socket.empty()) {
    auto socket = SocketFile::Create(config.socket);
    if (!socket.ok()) return socket.status();
    publisher->socket_ = *std::move(socket);
  }
  auto exporter = MetricsExporter::Start(config.listen, publisher->socket_ ? publisher->socket_->fd() : -1);
  if (!exporter.ok()) return exporter.status();
  publisher->exporter_ = *std::move(exporter);
  publisher->publish();
  log::Info("metrics are served", {{"listen", config.listen}, {"socket", config.socket}});
  return publisher;
}

void MetricsPublisher::publish() {
  exporter_->publish(
      RenderMetrics(Take(supervisor_, reload_, auditor_, started_), reload_.config().metrics.max_series));
  next_ = loop_.after(kInterval, [this] { publish(); });
}

}  // namespace flagos::daemon
