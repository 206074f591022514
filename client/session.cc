// SPDX-License-Identifier: Apache-2.0
#include "client/session.h"

#include <c10/util/Exception.h>

#include <chrono>
#include <cstring>
#include <utility>

#include "client/attach.h"
#include "client/errors.h"
#include "client/log.h"
#include "proto/shm/blocked.h"
#include "proto/shm/futex.h"
#include "proto/socket/unix_socket.h"

namespace flagos::client {
namespace {

constexpr uint32_t kCauseWaitMilliseconds = 300;

// A reply slot for as long as its answer is being waited for.
class SlotClaim {
 public:
  explicit SlotClaim(ReplyReader& replies) : replies_(replies), slot_(replies.claim()) {}
  ~SlotClaim() {
    if (slot_) replies_.release(*slot_);
  }
  SlotClaim(const SlotClaim&) = delete;
  SlotClaim& operator=(const SlotClaim&) = delete;
  const std::optional<uint32_t>& slot() const { return slot_; }

 private:
  ReplyReader& replies_;
  const std::optional<uint32_t> slot_;
};

}  // namespace

constinit std::atomic<Session*> Session::current_{nullptr};

Session::Session(Connection connection, std::unique_ptr<AddressSpace> addresses)
    : connection_(std::move(connection)),
      launch_blocking_(LaunchBlocking()),
      client_page_(reinterpret_cast<ClientPage*>(connection_.ring.data())),
      addresses_(std::move(addresses)) {
  const auto* const page = reinterpret_cast<const ExecutorPage*>(connection_.executor.data());
  const auto peer_alive = [this] { return alive(); };
  ring_ = std::make_unique<RingProducer>(
      client_page_, std::span(connection_.ring.data() + kPage, connection_.ring_bytes), page, peer_alive);
  replies_ = std::make_unique<ReplyReader>(
      client_page_, std::span<const std::byte>(connection_.executor.data(), connection_.executor.size()), peer_alive);
  arena_ = std::make_unique<Arena>(
      std::span(connection_.arena.data(), connection_.arena.size()),
      [this](uint16_t stream, uint64_t sequence) { return replies_->is_complete(stream, sequence) || lost(); },
      &this->page().arena_in_place);
}

bool Session::alive() const {
  if (lost_.load(std::memory_order_relaxed)) return false;
  const bool ended = page().state.load(std::memory_order_acquire) >= static_cast<uint64_t>(ExecutorState::kEnded);
  if (!ended && !HasHungUp(connection_.liveness.get())) return true;
  lost_.store(true, std::memory_order_relaxed);
  return false;
}

uint64_t Session::send(const RecordHeader& header, std::span<const std::byte> payload) {
  const std::lock_guard lock(lock_);
  return put(header, payload);
}

bool Session::try_send(const RecordHeader& header, std::span<const std::byte> payload) noexcept {
  const std::lock_guard lock(lock_);
  ErrorCode error = ErrorCode::kOk;
  if (!may_send()) return false;
  std::byte* const at = ring_->reserve(payload.size(), error);
  if (at == nullptr) return false;
  if (!payload.empty()) std::memcpy(at, payload.data(), payload.size());
  commit(header, payload.size());
  return true;
}

std::vector<std::byte> Session::request(RecordHeader header, std::span<const std::byte> payload, uint64_t* sequence) {
  const SlotClaim claim(*replies_);
  if (!claim.slot()) throw_lost();
  const ReplyTarget target{*claim.slot(), 0};
  header.flags |= kFlagSync;
  uint64_t sent = 0;
  {
    const std::lock_guard lock(lock_);
    std::byte* const at = reserve(sizeof target + payload.size());
    std::memcpy(at, &target, sizeof target);
    if (!payload.empty()) std::memcpy(at + sizeof target, payload.data(), payload.size());
    sent = commit(header, sizeof target + payload.size());
  }
  if (sequence != nullptr) *sequence = sent;
  std::vector<std::byte> bytes;
  const uint64_t watch = header.kind == static_cast<uint16_t>(RecordKind::kFence) ? DeviceWatchNanoseconds() : 0;
  if (!replies_->wait(target.slot, sent, bytes, watch)) throw_lost();
  return open_reply(bytes);
}

std::vector<std::byte> Session::open_reply(std::span<const std::byte> bytes) {
  auto decoded = DecodeReply(bytes);
  if (!decoded.ok()) Throw(decoded.error());
  Reply& reply = decoded.value();
  for (const Warning& warning : reply.warnings) Warn(warning);
  if (reply.error.code == ErrorCode::kDeviceLost)
    lost_.store(true, std::memory_order_relaxed);  // it may take a moment to end
  if (!reply.error.ok()) Throw(reply.error);
  return std::move(reply.body);
}

void Session::wait_complete(uint16_t stream, uint8_t device, uint64_t sequence) {
  if (!replies_->wait_complete(stream, sequence)) throw_lost();
  // What failed before is told by the next SYNC record.
  if (page().deferred_error.load(std::memory_order_relaxed) != 0) synchronize(stream, device);
}

bool Session::is_idle(uint16_t stream, uint8_t device) {
  const uint64_t newest = last_on_stream(stream);
  if (newest <= synchronized_stream_[stream].load(std::memory_order_relaxed) ||
      newest <= synchronized_device_[device].load(std::memory_order_relaxed) || replies_->is_complete(stream, newest)) {
    return true;
  }
  // Only a NOTIFY record moves the completion word. Where the newest record is none, one is put behind it.
  if (last_fence_[stream].load(std::memory_order_relaxed) < newest) {
    const std::lock_guard lock(lock_);
    fence(stream, device);
  }
  if (!alive()) throw_lost();
  return replies_->is_complete(stream, last_fence_[stream].load(std::memory_order_relaxed));
}

uint64_t Session::fence(uint16_t stream, uint8_t device) noexcept {
  ErrorCode error = ErrorCode::kOk;
  if (!may_send() || ring_->reserve(0, error) == nullptr) return 0;
  const uint64_t sequence = commit(MakeHeader(RecordKind::kFence, 0, stream, device, kFlagNotify), 0);
  last_fence_[stream].store(sequence, std::memory_order_relaxed);
  return sequence;
}

void Session::free_handle(uint32_t handle) noexcept {
  const HandleTable::Place place = handles_.place(handle);
  addresses_->give_back(place.address);
  ErrorCode error = ErrorCode::kOk;
  if (!may_send() || ring_->reserve(0, error) == nullptr) return;
  commit(MakeHeader(RecordKind::kFree, handle, place.stream, place.device), 0);
  handles_.release(handle);
}

void Session::synchronize(uint16_t stream, uint8_t device) {
  uint64_t sequence = 0;
  request(MakeHeader(RecordKind::kFence, 0, stream, device), {}, &sequence);
  auto& reached = stream == kAllStreams ? synchronized_device_[device] : synchronized_stream_[stream];
  uint64_t seen = reached.load(std::memory_order_relaxed);
  while (seen < sequence && !reached.compare_exchange_weak(seen, sequence, std::memory_order_relaxed)) {
  }
}

std::byte* Session::allocate_arena(size_t bytes) {
  for (;;) {
    if (std::byte* const at = arena_->allocate(bytes)) return at;
    const auto hold = arena_->oldest_hold();
    if (!hold) {
      // What completed since the first try is collected by a second one.
      if (std::byte* const at = arena_->allocate(bytes)) return at;
      Throw(
          MakeError(ErrorCode::kOutOfMemory,
                    "the memory that this process shares with its executor has no room for " + std::to_string(bytes) +
                        " bytes: " + std::to_string(arena_->in_use()) + " of " + std::to_string(arena_->size()) +
                        " are in use by pinned tensors and copies; free pinned tensors, or configure a larger arena"));
    }
    const BlockedMark mark(client_page_, BlockReason::kArenaFull);
    if (!replies_->wait_complete(hold->first, hold->second)) throw_lost();
  }
}

void Session::throw_unsent(ErrorCode error, size_t payload) {
  if (error != ErrorCode::kOutOfRange) throw_lost();
  Throw(MakeError(error,
                  "a call needs a record of " + std::to_string(payload) + " bytes, more than the " +
                      std::to_string(max_payload()) +
                      " that the ring of this session takes; pass fewer tensors to it, or configure a larger ring"));
}

void Session::throw_lost() {
  alive();
  // flagosd writes the cause a moment after the executor ended.
  const auto told = [this] {
    return page().state.load(std::memory_order_acquire) >= static_cast<uint64_t>(ExecutorState::kEnded);
  };
  for (uint32_t waited = 0; !told() && waited < kCauseWaitMilliseconds && !HasHungUp(connection_.attach.get());
       ++waited) {
    FutexWait(page().state, page().state.load(std::memory_order_relaxed), std::chrono::milliseconds(1));
  }
  if (log::Has(log::Word::kSession)) log::Line("lost: %s", cause_of_loss().c_str());
  Throw(MakeError(ErrorCode::kDeviceLost,
                  "the flagos device is lost: " + cause_of_loss() +
                      ". The tensors on it are gone and every later call fails alike; restart the process to go on"));
}

std::string Session::cause_of_loss() const {
  std::string text =
      "the executor of session " + connection_.name + " (process " + std::to_string(connection_.executor_pid) + ") ";
  // The executor's own words, where it ended in order.
  const std::string told(page().end_cause, ::strnlen(page().end_cause, sizeof page().end_cause));
  if (!told.empty()) return text + "ended: " + told;
  const int32_t signal = page().exit_signal.load(std::memory_order_relaxed);
  const int32_t code = page().exit_code.load(std::memory_order_relaxed);
  if (signal != 0) {
    const char* const name = ::sigabbrev_np(signal);
    text +=
        "was ended by signal " + std::to_string(signal) + (name != nullptr ? std::string(" (SIG") + name + ")" : "");
  } else if (page().state.load(std::memory_order_relaxed) == static_cast<uint64_t>(ExecutorState::kLost)) {
    text += "ended with exit status " + std::to_string(code);
  } else {
    text += "is gone";
  }
  const uint64_t sequence = page().running_sequence.load(std::memory_order_relaxed);
  const uint32_t name = page().last_operator.load(std::memory_order_relaxed);
  if (name != 0 && name <= kOperatorNameBytes) {
    const char* const at = page().operator_names + name - 1;
    // The record may be none of the operator's: an event, say, recorded after it.
    text += "; the last operator it ran was " + std::string(at, ::strnlen(at, kOperatorNameBytes - (name - 1)));
    if (sequence != 0) text += ", the last record " + std::to_string(sequence);
  }
  return text;
}

void Session::close() noexcept {
  if (!lock_.try_lock()) return;
  // Only where it cannot block: the executor also sees the process end.
  const uint64_t used =
      client_page_->head.load(std::memory_order_relaxed) - page().tail.load(std::memory_order_acquire);
  ErrorCode error = ErrorCode::kOk;
  if (used + 4 * sizeof(RecordHeader) <= connection_.ring_bytes && may_send() && ring_->reserve(0, error) != nullptr) {
    commit(MakeHeader(RecordKind::kClose), 0);
  }
  lock_.unlock();
}

}  // namespace flagos::client
