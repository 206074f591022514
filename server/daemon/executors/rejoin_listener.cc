// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/executors/rejoin_listener.h"

#include <sys/socket.h>

#include <unistd.h>

#include <utility>

#include "server/common/fd.h"
#include "server/common/log.h"
#include "server/common/strings.h"

namespace flagos::daemon {
namespace {

constexpr auto kDeadline = std::chrono::seconds(2);
constexpr size_t kMaxPending = 1024;
// An executor sends all at once: what is not there when the first byte is, is not coming.
constexpr int kRestTimeout = 20;  // milliseconds

Error Receive(int socket, RejoinRequest& request) {
  Error error =
      ReceiveRecord(socket, std::as_writable_bytes(std::span(&request.record, 1)), &request.fds, kRestTimeout);
  if (!error.ok()) return error;
  const ChannelRecord& record = request.record;
  if (record.kind != static_cast<uint32_t>(ChannelKind::kRejoin) || request.fds.size() != kRejoinFdCount ||
      record.device_count == 0 || record.device_count > kMaxDevices || !Terminated(record.vendor) ||
      !Terminated(record.torch_version) || !Terminated(record.message)) {
    return MakeError(ErrorCode::kMalformed, "that is no request to go on with a session");
  }
  request.devices.resize(record.device_count);
  return ReceiveRecord(socket, std::as_writable_bytes(std::span(request.devices)), nullptr, kRestTimeout);
}

}  // namespace

void RefuseRejoin(const RejoinRequest& request, const Error& error) {
  log::Warn("an executor is not taken back",
            {{"session", request.record.session}, {"pid", request.peer.pid}, {"why", error.message}});
  ChannelRecord answer{};
  answer.kind = static_cast<uint32_t>(ChannelKind::kRejoined);
  answer.session = request.record.session;
  answer.status = static_cast<uint32_t>(error.code);
  CopyText(answer.message, error.message);
  (void)SendRecord(request.socket.get(), std::as_bytes(std::span(&answer, 1)));
}

RejoinListener::RejoinListener(EventLoop& loop, int socket, std::function<void(RejoinRequest)> taken)
    : loop_(loop), socket_(socket), taken_(std::move(taken)) {
  watch_ = loop.watch(socket, EPOLLIN, [this](uint32_t) { accept(); });
}

void RejoinListener::accept() {
  UniqueFd socket(::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) return;
  const auto peer = GetPeerCredentials(socket.get());
  if (!peer || pending_.size() >= kMaxPending) return;  // closed: an executor tries again
  const Place place = pending_.emplace(pending_.end());
  place->socket = std::move(socket);
  place->peer = *peer;
  place->watch = loop_.watch(place->socket.get(), EPOLLIN, [this, place](uint32_t) { receive(place); });
  place->deadline = loop_.after(kDeadline, [this, place] { pending_.erase(place); });
}

void RejoinListener::receive(Place place) {
  RejoinRequest request;
  const Error error = Receive(place->socket.get(), request);
  place->watch.cancel();
  request.peer = place->peer;
  request.socket = std::move(place->socket);
  pending_.erase(place);
  if (!error.ok()) return RefuseRejoin(request, error);
  taken_(std::move(request));
}

}  // namespace flagos::daemon
