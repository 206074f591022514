// SPDX-License-Identifier: Apache-2.0
#include "server/executor/serve.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "server/common/status.h"
#include "server/common/strings.h"
#include "server/executor/channel.h"
#include "server/executor/dispatcher.h"
#include "server/executor/process.h"
#include "server/executor/share.h"
#include "server/executor/vendor_loader.h"
#include "server/executor/watcher.h"

namespace flagos::executor {
namespace {

struct Started {
  std::unique_ptr<vendor::Vendor> vendor;
  std::vector<DeviceRecord> devices;
};

absl::StatusOr<Started> Start(const Arguments& arguments) {
  auto vendor = LoadVendor(arguments.vendor, arguments.vendor_dir, arguments.libtorch);
  if (!vendor.ok()) return vendor.status();
  auto devices = (*vendor)->start(arguments.options);
  if (!devices.ok()) return ToStatus(devices.error());
  if (devices.value().empty() || devices.value().size() > kMaxDevices) {
    return absl::NotFoundError(Cat("vendor ", arguments.vendor, " finds ", devices.value().size(),
                                   " devices, and a session needs 1 to ", kMaxDevices,
                                   "; choose others with --devices"));
  }
  return Started{std::move(vendor).value(), std::move(devices).value()};
}

// The session's devices by number on the node.
std::vector<uint32_t> NodeDevices(const vendor::Options& options, size_t count) {
  std::vector<uint32_t> devices = options.devices;
  for (uint32_t device = 0; options.devices.empty() && device < count; ++device) devices.push_back(device);
  return devices;
}

// The session that flagosd assigns; nullopt: the executor is not needed any more.
absl::StatusOr<std::optional<Assignment>> AwaitAssignment(Channel& channel, int signals) {
  for (;;) {
    pollfd entries[] = {{channel.fd(), POLLIN, 0}, {signals, POLLIN, 0}};
    if (::poll(entries, std::size(entries), -1) < 0) continue;
    if (entries[1].revents != 0) return std::nullopt;
    if (entries[0].revents == 0) continue;
    auto message = channel.receive();
    if (message.status().code() == absl::StatusCode::kUnavailable) return std::nullopt;
    if (!message.ok()) return message.status();
    if (message->kind == ChannelKind::kEnd) return std::nullopt;
    return std::move(message->assignment);
  }
}

// Takes the regions' descriptors.
Served WhatIsServed(const Started& started, Assignment& assignment, const LeaseAccount& account,
                    const ArbiterMember& member) {
  Served served;
  served.record.session = assignment.session;
  served.record.ring_bytes = assignment.ring_bytes;
  served.record.arena_bytes = assignment.arena_bytes;
  CopyText(served.record.vendor, started.vendor->name());
  CopyText(served.record.torch_version, started.vendor->torch_version());
  served.devices = started.devices;
  served.ring = std::move(assignment.ring);
  served.executor = std::move(assignment.executor);
  served.client = assignment.client.get();
  served.lease = account.fd();
  served.arbiter = member.fd();
  served.record.lease_entry = member.lease();
  return served;
}

// Ends the process from whichever thread comes first; the others stay in here until it is gone. Nothing is destroyed:
// the vendor's threads may be in the middle of anything, and the kernel takes everything back.
[[noreturn]] void EndProcess(Channel& channel, uint64_t session, SessionHost& host, const EndCause& cause) {
  static std::mutex& once = *new std::mutex;
  once.lock();
  host.finish(cause);
  const absl::Status told = channel.send_ended(session, ToStatus(MakeError(cause.code, cause.message)), cause.message);
  const log::Level level = cause.code == ErrorCode::kOk ? log::Level::kInfo : log::Level::kError;
  log::Write(level, "session ended", {{"session", session}, {"cause", cause.message}, {"daemon_told", told.ok()}});
  ::_exit(cause.code == ErrorCode::kOk ? 0 : 1);
}

// Returns only where the session cannot be served.
absl::Status ServeSession(const Arguments& arguments, Started& started, Channel& channel, int signals,
                          Assignment assignment) {
  auto regions = SessionRegions::Map(assignment.ring.get(), assignment.executor.get(), assignment.arena.get(),
                                     assignment.ring_bytes, assignment.arena_bytes);
  if (!regions.ok()) return ToStatus(regions.error());
  assignment.arena.reset();

  std::vector<uint64_t> memory;
  for (const DeviceRecord& device : started.devices) memory.push_back(device.total_memory);
  const auto account = LeaseAccount::Join(std::move(assignment.lease), assignment.session,
                                          NodeDevices(arguments.options, started.devices.size()));
  if (!account.ok()) return ToStatus(account.error());
  auto member = ArbiterMember::Join(std::move(assignment.arbiter), assignment.session, assignment.lease_entry,
                                    NodeDevices(arguments.options, started.devices.size()));
  if (!member.ok()) return ToStatus(member.error());
  Share share(std::move(member).value());
  const Rejoiner rejoiner(assignment.end_with_daemon ? "" : arguments.daemon,
                          WhatIsServed(started, assignment, *account.value(), share.member()));
  SessionHost host(regions.value(), account.value().get(), memory, assignment.liveness.get());
  const auto backend = started.vendor->open(host);
  if (!backend.ok()) return ToStatus(backend.error());
  share.use([&backend = *backend.value()](uint8_t device, const std::function<void()>& done) {
    backend.fence(kAllStreams, device, [done](const Error&) { done(); });
  });
  Dispatcher dispatcher(host, *backend.value(), &share);
  FLAGOS_RETURN_IF_ERROR(channel.send_assigned(assignment.session, absl::OkStatus()));
  log::Info("session assigned",
            {{"session", assignment.session}, {"vendor", started.vendor->name()}, {"devices", started.devices.size()}});
  SetThreadName(Cat("flagos-ex-", assignment.session));

  const Watcher watcher({.channel = &channel,
                         .liveness = assignment.liveness.get(),
                         .client = assignment.client.get(),
                         .signals = signals,
                         .end_with_daemon = assignment.end_with_daemon,
                         .rejoiner = &rejoiner},
                        {.end_now =
                             [&](const std::string& cause) {
                               EndProcess(channel, assignment.session, host, {ErrorCode::kOk, cause});
                             },
                         .end_soon =
                             [&](const std::string& reason) {
                               dispatcher.end({ErrorCode::kOk, reason});
                             },
                         .tick = [&] { dispatcher.account(); }});
  EndProcess(channel, assignment.session, host, dispatcher.run());
}

}  // namespace

int Serve(const Arguments& arguments) {
  Channel channel{UniqueFd(arguments.channel_fd)};
  const auto signals = TakeSignals();
  auto started = signals.ok() ? Start(arguments) : signals.status();
  if (!started.ok()) {
    log::Error("the vendor did not start", {{"vendor", arguments.vendor}, {"why", MessageOf(started.status())}});
    const absl::Status told = channel.send_not_ready(arguments.vendor, started.status());
    if (!told.ok()) log::Error("flagosd cannot be told", {{"why", MessageOf(told)}});
    return 1;
  }
  if (!channel.send_ready(started->vendor->name(), started->vendor->torch_version(), started->devices).ok()) return 0;
  log::Debug("ready", {{"vendor", arguments.vendor}, {"devices", started->devices.size()}});

  auto assignment = AwaitAssignment(channel, signals->get());
  if (assignment.ok() && !assignment->has_value()) {
    // Nobody may be listening any more, and it does not matter.
    channel.send_ended(0, absl::OkStatus(), "ended without a session").IgnoreError();
    return 0;
  }
  const uint64_t session = assignment.ok() ? (*assignment)->session : 0;
  const absl::Status failed = assignment.ok()
                                  ? ServeSession(arguments, *started, channel, signals->get(), std::move(**assignment))
                                  : assignment.status();
  log::Error("the session cannot be served", {{"session", session}, {"why", MessageOf(failed)}});
  channel.send_assigned(session, failed).IgnoreError();
  return 1;
}

}  // namespace flagos::executor
