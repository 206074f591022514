// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/clients/acceptor.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "server/common/log.h"
#include "server/common/status.h"
#include "server/common/strings.h"

namespace flagos::daemon {
namespace {

constexpr int kAcceptsPerEvent = 64;
constexpr auto kPause = std::chrono::milliseconds(100);
constexpr char kGrpcFirst = 'P';  // of "PRI * HTTP/2.0"

Error Busy(const char* whose) {
  return MakeError(ErrorCode::kUnavailable,
                   Cat("too many connections ", whose, " are waiting to be read; attach again"));
}

}  // namespace

void Acceptor::listen(int socket, Door door) {
  Listener& listener = listeners_[socket];
  listener.door = door;
  listener.watch = loop_.watch(socket, EPOLLIN, [this, socket, door](uint32_t) { accept(socket, door); });
}

absl::Status Acceptor::add(UniqueFd socket) {
  FLAGOS_RETURN_IF_ERROR(SetNonBlocking(socket.get()));
  FLAGOS_RETURN_IF_ERROR(SetCloseOnExec(socket.get(), true));
  insert(std::move(socket), 0)->attach_only = true;
  return absl::OkStatus();
}

void Acceptor::stop() {
  listeners_.clear();
  resume_.cancel();
  pending_.clear();
}

void Acceptor::accept(int listener, Door door) {
  for (int turn = 0; turn < kAcceptsPerEvent; ++turn) {
    UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) pause(listener);
      if (errno == ECONNABORTED || errno == EINTR) continue;
      return;
    }
    const auto peer = GetPeerCredentials(socket.get());
    if (!peer) continue;
    const char* full = full_for(peer->uid);
    if (full != nullptr) {
      // Those that have gone away already count for nothing: a burst of them does not keep the next one out.
      pending_.remove_if([](const Pending& other) { return !other.attach_only && HasHungUp(other.socket.get()); });
      full = full_for(peer->uid);
    }
    if (full != nullptr) {
      const AttachReply reply = MakeRefusal(Busy(full));
      (void)SendRecord(socket.get(), std::as_bytes(std::span(&reply, 1)));
      continue;
    }
    const Place place = insert(std::move(socket), peer->uid);
    place->door = door;
    place->deadline = loop_.after(kRequestDeadline, [this, place] {
      log::Debug("connection closed: it did not say what it wants in time", {{"uid", place->uid}});
      close(place);
    });
  }
}

// Whose limit keeps another connection of the user out; nullptr: none does.
const char* Acceptor::full_for(uid_t uid) const {
  const auto of_user = static_cast<size_t>(
      std::count_if(pending_.begin(), pending_.end(), [&](const Pending& other) { return other.uid == uid; }));
  if (of_user >= kMaxPendingPerUser) return "of this user";
  return pending_.size() >= kMaxPending ? "of this node" : nullptr;
}

// Out of descriptors: connections wait in the backlog until some are closed, rather than spin here.
void Acceptor::pause(int listener) {
  if (!told_full_) log::Error("the limit of open files is reached; connections wait", {{"open", CountOpenFiles()}});
  told_full_ = true;
  listeners_[listener].watch.cancel();
  resume_ = loop_.after(kPause, [this] {
    for (const auto& [socket, paused] : listeners_) {
      if (!paused.watch) listen(socket, paused.door);
    }
  });
}

Acceptor::Place Acceptor::insert(UniqueFd socket, uid_t uid) {
  const Place place = pending_.emplace(pending_.end());
  place->uid = uid;
  place->socket = std::move(socket);
  place->watch = loop_.watch(place->socket.get(), EPOLLIN | EPOLLRDHUP, [this, place](uint32_t) { receive(place); });
  return place;
}

void Acceptor::close(Place place) {
  const bool attach_only = place->attach_only;
  pending_.erase(place);
  if (attach_only && handlers_.closed) handlers_.closed();
}

void Acceptor::receive(Place place) {
  if (!place->reading) {
    char first = 0;
    const ssize_t got = ::recv(place->socket.get(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got == 1 && first == kGrpcFirst && !place->attach_only && place->door == Door::kHost) {
      place->watch.cancel();
      UniqueFd socket = std::move(place->socket);
      pending_.erase(place);
      return handlers_.grpc(std::move(socket));
    }
    if (got != 1 || first != kAttachMagic[0]) {
      if (got == 1) log::Debug("connection closed: it speaks neither of our protocols", {{"uid", place->uid}});
      return close(place);
    }
    place->reading = true;
  }
  switch (place->reader.read(place->socket.get())) {
    case RecordReader::Status::kMore: return;
    case RecordReader::Status::kRecord: return handle_request(place);
    case RecordReader::Status::kClosed:
    case RecordReader::Status::kBroken: return close(place);
  }
}

void Acceptor::handle_request(Place place) {
  AttachRequest request;
  std::memcpy(&request, place->reader.bytes().data(), sizeof request);
  place->watch.cancel();
  auto terms = CheckAttachRequest(request);
  Error error = terms.error();
  if (error.ok()) {
    auto connection = ClientConnection::From(std::move(place->socket), place->door);
    if (connection.ok()) {
      pending_.erase(place);
      return handlers_.attach(request, terms.value(), *std::move(connection));
    }
    error = FromStatus(connection.status());
  }
  log::Warn("attach refused", {{"uid", place->uid}, {"error", error.message}});
  const AttachReply reply = MakeRefusal(error);
  if (place->socket) (void)SendRecord(place->socket.get(), std::as_bytes(std::span(&reply, 1)));
  close(place);
}

}  // namespace flagos::daemon
