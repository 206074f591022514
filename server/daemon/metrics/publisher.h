// SPDX-License-Identifier: Apache-2.0
// Takes a snapshot of sessions and devices every second, for the exporter.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "server/daemon/audit/auditor.h"
#include "server/daemon/clients/socket_file.h"
#include "server/daemon/config/reload.h"
#include "server/daemon/event_loop.h"
#include "server/daemon/metrics/exporter.h"
#include "server/daemon/sessions/supervisor.h"

namespace flagos::daemon {

// Loop thread only. All are borrowed.
class MetricsPublisher {
 public:
  // Null where the configuration names no place to serve metrics at.
  static absl::StatusOr<std::unique_ptr<MetricsPublisher>> Start(EventLoop& loop, const Supervisor& supervisor,
                                                                 const ConfigReload& reload, const Auditor& auditor);

 private:
  MetricsPublisher(EventLoop& loop, const Supervisor& supervisor, const ConfigReload& reload, const Auditor& auditor);
  void publish();

  EventLoop& loop_;
  const Supervisor& supervisor_;
  const ConfigReload& reload_;
  const Auditor& auditor_;
  const double started_;
  std::unique_ptr<SocketFile> socket_;
  std::unique_ptr<MetricsExporter> exporter_;
  Watch next_;
};

}  // namespace flagos::daemon
