// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/telemetry/telemetry.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "server/common/log.h"
#include "server/common/status.h"
#include "server/common/strings.h"
#include "server/daemon/executors/exit_status.h"
#include "server/daemon/executors/spec.h"
#include "vendors/interface/monitor.h"

namespace flagos::daemon {
namespace {

constexpr int kFreshIntervals = 3;
constexpr int kSilentIntervals = 10;
constexpr auto kStartPatience = std::chrono::seconds(30);  // a driver that wakes its devices takes long
constexpr auto kFirstBackoff = std::chrono::milliseconds(500);
constexpr auto kLongestBackoff = std::chrono::seconds(60);
constexpr auto kSteady = std::chrono::seconds(60);  // one that ran for this long begins at the first backoff again
constexpr int kReadsPerEvent = 16;                  // a flood does not hold the loop

bool HasMonitor(const Config& config) {
  if (config.embedded || config.monitor.empty() || config.devices.telemetry.count() == 0) return false;
  std::error_code ignored;
  return std::filesystem::exists(vendor::MonitorLibrary(config.vendor_dir, config.devices.vendor), ignored);
}

std::vector<std::string> Arguments(const Config& config) {
  const auto interval = std::chrono::duration_cast<std::chrono::milliseconds>(config.devices.telemetry);
  std::vector<std::string> arguments = {config.monitor,
                                        "--vendor",
                                        config.devices.vendor,
                                        "--vendor-dir",
                                        config.vendor_dir,
                                        "--channel-fd",
                                        std::to_string(kChildChannelFd),
                                        "--interval-ms",
                                        std::to_string(interval.count())};
  for (const auto& [key, value] : ExecutorSpec::From(config, {}).options) {
    arguments.emplace_back("--option");
    arguments.push_back(Cat(key, "=", value));
  }
  return arguments;
}

}  // namespace

Telemetry::Telemetry(EventLoop& loop, const Config& config)
    : loop_(loop),
      config_(config),
      watched_(HasMonitor(config)),
      interval_(config.devices.telemetry),
      buffer_(kMaxMonitorMessage) {}

void Telemetry::start() {
  if (watched_) launch();
}

void Telemetry::config_changed() {
  if (config_.devices.telemetry == interval_) return;
  interval_ = config_.devices.telemetry;
  watched_ = HasMonitor(config_);
  retry_.cancel();
  silence_.cancel();
  channel_watch_.cancel();
  readings_.clear();  // their age is told in intervals
  problem_.clear();
  failures_ = 0;
  replaced_ = static_cast<bool>(child_.pidfd);
  replaced_ ? kill() : go_on();
}

void Telemetry::go_on() {
  replaced_ = false;
  if (watched_) launch();
}

void Telemetry::stop() {
  retry_.cancel();
  silence_.cancel();
  channel_watch_.cancel();
  exit_watch_.cancel();
  kill();
  child_.pidfd.reset();
  channel_.reset();
}

Clock::duration Telemetry::patience(int intervals) const {
  return std::chrono::duration_cast<Clock::duration>(interval_ * intervals);
}

void Telemetry::launch() {
  launched_ = Clock::now();
  if (const absl::Status status = try_launch(); !status.ok()) {
    trouble(MessageOf(status));
    retry_later();
  }
}

absl::Status Telemetry::try_launch() {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
    return SystemError(errno, "cannot create a socket for flagos-monitor", "raise the limit of open files");
  }
  channel_.reset(pair[0]);
  const UniqueFd theirs(pair[1]);
  auto child = StartChild(Arguments(config_), theirs.get(), STDERR_FILENO, "the monitor",
                          "install flagos-monitor beside flagosd");
  if (!child.ok()) return child.status();
  child_ = *std::move(child);
  log::Debug("monitor started", {{"pid", child_.pid}, {"vendor", config_.devices.vendor}});
  channel_watch_ = loop_.watch(channel_.get(), EPOLLIN, [this](uint32_t) { read_channel(); });
  exit_watch_ = loop_.watch(child_.pidfd.get(), EPOLLIN, [this](uint32_t) { handle_exit(); });
  silence_ =
      loop_.after(std::max<Clock::duration>(patience(kSilentIntervals), kStartPatience), [this] { fall_silent(); });
  return absl::OkStatus();
}

void Telemetry::read_channel() {
  for (int turn = 0; turn < kReadsPerEvent; ++turn) {
    // MSG_TRUNC: the size of the whole message, so that a longer one is not taken for its beginning.
    const ssize_t size = ::recv(channel_.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT | MSG_TRUNC);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (size <= 0) return channel_watch_.cancel();  // its exit tells the rest
    const auto bytes = static_cast<size_t>(size);
    if (bytes <= buffer_.size() && take(std::span(buffer_).first(bytes))) continue;
    trouble("flagos-monitor sent what does not decode; install flagosd and flagos-monitor of one version");
    channel_watch_.cancel();
    return kill();
  }
}

bool Telemetry::take(std::span<const std::byte> bytes) {
  auto message = DecodeMonitorMessage(bytes);
  if (!message.ok()) return false;
  if (!message.value().failure.empty()) {
    trouble(Printable(message.value().failure));
    return true;
  }
  if (!problem_.empty()) log::Info("figures of devices are read again");
  problem_.clear();
  readings_ = std::move(message.value().readings);
  read_at_ = Clock::now();
  silence_ = loop_.after(patience(kSilentIntervals), [this] { fall_silent(); });
  return true;
}

void Telemetry::fall_silent() {
  trouble("flagos-monitor says nothing any more and is started anew; the device or its driver may hang");
  kill();
}

void Telemetry::handle_exit() {
  const auto status = Reap(child_.pidfd.get());
  if (!status) return;
  if (channel_watch_) read_channel();  // why it ended, where it said so
  exit_watch_.cancel();
  channel_watch_.cancel();
  silence_.cancel();
  child_.pidfd.reset();
  channel_.reset();
  if (replaced_) return go_on();
  if (problem_.empty()) trouble(Cat("flagos-monitor ", status->describe(), "; it is started anew"));
  retry_later();
}

void Telemetry::trouble(const std::string& why) {
  if (why != problem_) log::Warn("figures of devices are not read", {{"why", why}});
  problem_ = why;
}

void Telemetry::retry_later() {
  failures_ = Clock::now() - launched_ > kSteady ? 1 : failures_ + 1;
  const auto doubled = kFirstBackoff * (1ll << std::min(failures_ - 1, 10u));
  retry_ = loop_.after(std::min<Clock::duration>(doubled, kLongestBackoff), [this] { launch(); });
}

void Telemetry::kill() const {
  if (child_.pidfd) ::syscall(SYS_pidfd_send_signal, child_.pidfd.get(), SIGKILL, nullptr, 0);
}

std::optional<Telemetry::Latest> Telemetry::latest(const DeviceUuid& uuid) const {
  const auto found = std::ranges::find(readings_, uuid, &DeviceReading::uuid);
  if (found == readings_.end()) return std::nullopt;
  const auto age = Clock::now() - read_at_;
  return Latest{.age = std::chrono::duration<double>(age).count(),
                .figures = age > patience(kFreshIntervals) ? nullptr : &*found};
}

}  // namespace flagos::daemon
