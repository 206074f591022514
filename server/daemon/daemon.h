// SPDX-License-Identifier: Apache-2.0
// flagosd as a whole: the parts put together, signals, start and stop.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "server/daemon/audit/auditor.h"
#include "server/daemon/clients/acceptor.h"
#include "server/daemon/clients/socket_file.h"
#include "server/daemon/config/options.h"
#include "server/daemon/config/reload.h"
#include "server/daemon/control/server.h"
#include "server/daemon/event_loop.h"
#include "server/daemon/metrics/publisher.h"
#include "server/daemon/sessions/supervisor.h"
#include "server/daemon/state/store.h"
#include "server/daemon/systemd.h"

namespace flagos::daemon {

// Stopping. SIGTERM is a service manager's: flagosd goes, and running sessions go on with their executors, because
// losing flagosd never ends a session of the service (an upgrade, a restart). SIGINT is a person's at the terminal of a
// private flagosd, and so is SIGHUP where that is what it logs to: sessions are asked to end, and their executors
// killed after five seconds. A second signal ends at once. Else SIGHUP opens the log file anew and reads the
// configuration again. Embedded: the end of the client, or of the session, is the end of everything.
//
// Ready, for a service manager and --ready-fd, is flagosd once its first executor has told the devices or has failed to
// start: who attaches from then on is answered at once. Who attaches before, which the socket allows, waits that long.
class Daemon {
 public:
  explicit Daemon(CommandLine line) : config_(std::move(line.config)), reload_(std::move(line.sources), config_) {}
  ~Daemon();
  // Serves until it is stopped; returns the exit code.
  int run();

 private:
  absl::Status start();
  absl::Status start_service();
  absl::Status start_embedded();
  // The socket that a .socket unit passed under this name, else a new one of mode 0666, which `file` keeps.
  absl::StatusOr<int> open_socket(std::string_view name, const std::string& path, std::unique_ptr<SocketFile>& file);
  absl::Status watch_signals();
  void feed_watchdog();
  void await_devices();
  void announce();
  void handle_signal();
  void reopen_log();
  void hang_up(const AuditActor& sender);
  void stop(Supervisor::Stop how);

  Config config_;  // the parts refer to it; changes in reload_ only
  ConfigReload reload_;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<StateStore> state_;
  std::unique_ptr<SocketFile> socket_file_, executors_file_, containers_file_;
  std::vector<PassedSocket> passed_sockets_;
  std::unique_ptr<Auditor> auditor_;
  std::unique_ptr<Supervisor> supervisor_;
  std::unique_ptr<ControlServer> control_;
  std::unique_ptr<MetricsPublisher> metrics_;
  std::unique_ptr<Acceptor> acceptor_;
  UniqueFd signals_;
  Watch signal_watch_, watchdog_;
  bool ends_with_terminal_ = false;
  bool stopping_ = false;
};

}  // namespace flagos::daemon
