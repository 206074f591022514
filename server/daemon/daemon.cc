// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/daemon.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "server/common/log.h"
#include "server/common/status.h"
#include "server/common/strings.h"
#include "server/daemon/systemd.h"
#include "server/daemon/version.h"

namespace flagos::daemon {
namespace {

// FileDescriptorName of .socket units; any other name is the clients'.
constexpr std::string_view kExecutorsSocket = "executors";
constexpr std::string_view kContainersSocket = "containers";
constexpr auto kStartSlack = std::chrono::seconds(10);

bool IsOfClients(const PassedSocket& socket) {
  return socket.name != kExecutorsSocket && socket.name != kContainersSocket;
}

}  // namespace

Daemon::~Daemon() {
  // What runs on the loop refers to the parts: it goes while they are there.
  signal_watch_.cancel();
  watchdog_.cancel();
  acceptor_.reset();
  metrics_.reset();
  control_.reset();
  supervisor_.reset();
}

absl::Status Daemon::watch_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);  // ignored, as some parents leave it, would lose how executors end
  // The client's terminal is not ours: Ctrl-C and hanging up are its business.
  if (config_.embedded) {
    ::setsid();
    ::unsetenv("NOTIFY_SOCKET");  // the job's own service manager asks nothing of us
  }
  ends_with_terminal_ = !config_.embedded && config_.daemon.log.file.empty() && ::isatty(STDERR_FILENO) == 1;
  // Before any thread is started, so that all have it blocked.
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) return SystemError(errno, "cannot watch signals", "raise the limit of open files");
  signal_watch_ = loop_->watch(signals_.get(), EPOLLIN, [this](uint32_t) { handle_signal(); });
  return absl::OkStatus();
}

void Daemon::handle_signal() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    const bool hangup = info.ssi_signo == SIGHUP;
    const AuditActor sender = ActorOf({.uid = info.ssi_uid, .pid = static_cast<pid_t>(info.ssi_pid)});
    if (hangup && !ends_with_terminal_) {
      hang_up(sender);
      continue;
    }
    if (stopping_) {
      log::Warn("second signal: ending at once", {{"signal", info.ssi_signo}});
      ::_exit(kExitFailure);
    }
    const bool drain = config_.embedded || hangup || info.ssi_signo == SIGINT;
    log::Info("stopping",
              {{"signal", info.ssi_signo}, {"sessions", supervisor_->live_sessions()}, {"ends_sessions", drain}});
    if (auditor_) auditor_->daemon_stops(sender, Cat("signal ", info.ssi_signo));
    stop(drain ? Supervisor::Stop::kDrain : Supervisor::Stop::kLetGo);
  }
}

void Daemon::hang_up(const AuditActor& sender) {
  reopen_log();  // first, so that what the reload says is in the new file
  // Whoever only sends it for the log has no files; what is wrong with the others is in the log.
  if (config_.embedded || stopping_ || !reload_.has_files()) return;
  auditor_->begin();
  auditor_->config_reloaded(sender, reload_.reload());
}

void Daemon::reopen_log() {
  if (const absl::Status status = log::Reopen(); !status.ok()) {
    log::Error("the log is not opened anew", {{"error", MessageOf(status)}});
  } else {
    log::Info("log opened", {{"file", config_.daemon.log.file}});
  }
}

void Daemon::stop(Supervisor::Stop how) {
  if (std::exchange(stopping_, true)) return;
  NotifyServiceManager("STOPPING=1");
  acceptor_->stop();
  socket_file_.reset();
  supervisor_->stop(how, [this] {
    const auto end = [this] { loop_->stop(); };
    control_ ? control_->stop(end) : end();
  });
}

absl::Status Daemon::start() {
  log::Debug("files", {{"limit", RaiseFileLimit()}});
  auto loop = EventLoop::Create();
  if (!loop.ok()) return loop.status();
  loop_ = *std::move(loop);
  FLAGOS_RETURN_IF_ERROR(watch_signals());
  return config_.embedded ? start_embedded() : start_service();
}

absl::Status Daemon::start_service() {
  passed_sockets_ = TakePassedSockets();
  const bool passed = std::any_of(passed_sockets_.begin(), passed_sockets_.end(),
                                  [](const PassedSocket& socket) { return IsOfClients(socket); });
  if (!passed) {
    auto file = SocketFile::Create(config_.daemon.listen);
    if (!file.ok()) return file.status();
    socket_file_ = *std::move(file);
  }
  auto state = StateStore::Open(StateFolder(config_));
  if (!state.ok()) return state.status();
  state_ = *std::move(state);
  auto auditor = Auditor::Start(config_);
  if (!auditor.ok()) return auditor.status();
  auditor_ = *std::move(auditor);
  supervisor_ = std::make_unique<Supervisor>(*loop_, config_, state_.get());
  auditor_->watch(*supervisor_);
  const auto containers =
      open_socket(kContainersSocket, Allocations::SocketOf(ContainersFolder(config_)), containers_file_);
  if (!containers.ok()) return containers.status();
  const auto executors = open_socket(kExecutorsSocket, ExecutorSocket(config_), executors_file_);
  if (!executors.ok()) return executors.status();
  // Before anybody can attach: a number that a running session has is not given out again.
  supervisor_->recover(*executors);
  reload_.on_change([this] { supervisor_->config_changed(); });
  auto control = ControlServer::Start(*loop_, *supervisor_, reload_, *auditor_);
  if (!control.ok()) return control.status();
  control_ = *std::move(control);
  auto metrics = MetricsPublisher::Start(*loop_, *supervisor_, reload_, *auditor_);
  if (!metrics.ok()) return metrics.status();
  metrics_ = *std::move(metrics);
  acceptor_ = std::make_unique<Acceptor>(
      *loop_, Acceptor::Handlers{
                  .grpc = [this](UniqueFd socket) { control_->add(std::move(socket)); },
                  .attach = [this](const AttachRequest& request, const AttachTerms& terms,
                                   ClientConnection client) { supervisor_->attach(request, terms, std::move(client)); },
                  .closed = {}});
  if (socket_file_) acceptor_->listen(socket_file_->fd());
  for (const PassedSocket& socket : passed_sockets_) {
    FLAGOS_RETURN_IF_ERROR(SetNonBlocking(socket.fd.get()));
    if (IsOfClients(socket)) acceptor_->listen(socket.fd.get());
  }
  acceptor_->listen(*containers, Door::kContainer);
  auditor_->daemon_started();
  supervisor_->start();
  return absl::OkStatus();
}

absl::StatusOr<int> Daemon::open_socket(std::string_view name, const std::string& path,
                                        std::unique_ptr<SocketFile>& file) {
  for (const PassedSocket& socket : passed_sockets_) {
    if (socket.name != name) continue;
    FLAGOS_RETURN_IF_ERROR(SetNonBlocking(socket.fd.get()));
    return socket.fd.get();
  }
  // Open to every user: executors may be users of their own, those in containers always are. What is behind them
  // checks.
  auto made = SocketFile::Create(path, 0666);
  if (!made.ok()) return made.status();
  file = *std::move(made);
  return file->fd();
}

absl::Status Daemon::start_embedded() {
  supervisor_ = std::make_unique<Supervisor>(*loop_, config_);
  const auto end = [this] { stop(Supervisor::Stop::kDrain); };
  acceptor_ = std::make_unique<Acceptor>(
      *loop_, Acceptor::Handlers{
                  .grpc = {},
                  .attach =
                      [this, end](const AttachRequest& request, const AttachTerms& terms, ClientConnection client) {
                        supervisor_->attach(request, terms, std::move(client), [this, end](bool opened) {
                          if (!opened) loop_->post(end);
                        });
                      },
                  .closed = end});
  supervisor_->add_listener([this, end](const Session&, bool over) {
    if (over) loop_->post(end);
  });
  FLAGOS_RETURN_IF_ERROR(acceptor_->add(UniqueFd(config_.connection_fd)));
  supervisor_->start();
  return absl::OkStatus();
}

// From the loop: where it hangs, the service manager starts flagosd anew.
void Daemon::feed_watchdog() {
  const auto interval = WatchdogInterval();
  if (config_.embedded || interval.count() <= 0) return;
  NotifyServiceManager("WATCHDOG=1");
  watchdog_ = loop_->after(interval, [this] { feed_watchdog(); });
}

void Daemon::await_devices() {
  // The start of the first executor has a limit of its own, which may be longer than the service manager's patience.
  const auto limit = std::chrono::duration_cast<std::chrono::microseconds>(config_.pool.start_timeout + kStartSlack);
  NotifyServiceManager(Cat("EXTEND_TIMEOUT_USEC=", limit.count()));
  supervisor_->when_devices_known([this](const absl::Status&) {
    if (!stopping_) announce();
  });
}

void Daemon::announce() {
  log::Info("flagosd is ready", {{"version", kVersion},
                                 {"pid", ::getpid()},
                                 {"socket", socket_file_ ? config_.daemon.listen : std::string("inherited")},
                                 {"vendor", config_.devices.vendor},
                                 {"devices", supervisor_->devices().entries().size()},
                                 {"libtorch", config_.vendor().libtorch}});
  NotifyServiceManager("READY=1");
  reload_.announced();
  if (config_.ready_fd >= 0) {
    const UniqueFd ready(config_.ready_fd);
    if (::write(ready.get(), "ready\n", 6) != 6) log::Warn("nobody reads --ready-fd", {{"fd", config_.ready_fd}});
  }
}

int Daemon::run() {
  if (const absl::Status status = start(); !status.ok()) {
    log::Error("flagosd cannot start", {{"error", MessageOf(status)}});
    return absl::IsAlreadyExists(status) ? kExitRefused : kExitFailure;
  }
  feed_watchdog();
  await_devices();
  loop_->run();
  log::Info("flagosd ends");
  return kExitOk;
}

}  // namespace flagos::daemon
