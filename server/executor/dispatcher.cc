// SPDX-License-Identifier: Apache-2.0
#include "server/executor/dispatcher.h"

#include <string>

#include "proto/shm/futex.h"

namespace flagos::executor {
namespace {

constexpr uint64_t kSleep = 1'000'000'000;  // nanoseconds; every wake-up is told, this bounds the loss of one

// Whether a record is no synchronising point, though it waits for its answer.
constexpr bool LooksOn(RecordKind kind) {
  return kind >= RecordKind::kListKernels && kind <= RecordKind::kKernelFigures;
}

}  // namespace

Dispatcher::Dispatcher(SessionHost& host, vendor::Backend& backend, Share* share)
    : host_(host),
      share_(share),
      consumer_(host.regions().client(), host.regions().ring(), host.page()),
      checker_(host.device_count()),
      runner_(host, backend, checker_, share) {
  host_.on_device_failure([this](const EndCause& cause) { end(cause); });
}

EndCause Dispatcher::run() {
  host_.start();
  Record record;
  bool serving = true;
  while (serving && !ending_.load(std::memory_order_acquire)) {
    switch (consumer_.try_read(record)) {
      case RingConsumer::Status::kRecord: serving = carry_out(record); break;
      case RingConsumer::Status::kEmpty: idle(); break;
      case RingConsumer::Status::kMalformed:
        end({ErrorCode::kMalformed, "the bytes after record " + std::to_string(record.sequence) +
                                        " of the command ring are no record: the client's memory is damaged, or it is "
                                        "no flagos client; restart the job"});
        serving = false;
        break;
    }
  }
  account();
  drain();
  return cause_;
}

void Dispatcher::end(const EndCause& cause) {
  {
    const std::lock_guard lock(mutex_);
    if (ending_.load(std::memory_order_relaxed)) return;
    cause_ = cause;
    ending_.store(true, std::memory_order_release);
  }
  consumer_.wake();
  if (share_ != nullptr) share_->stop();
}

bool Dispatcher::carry_out(const Record& record) {
  if (busy_since_.load(std::memory_order_relaxed) == 0) {
    busy_since_.store(MonotonicNanoseconds(), std::memory_order_relaxed);
  }
  Command command;
  const char* wrong = checker_.check(record, command);
  if (command.sync && !host_.slots().open(command.slot, command.sequence)) {
    command.sync = false;
    wrong = "the reply slot that it names is still in use";
  }
  if (wrong == nullptr) {
    if (command.kind == RecordKind::kClose) {
      if (command.sync) host_.slots().answer(command.slot, command.sequence, Error::Ok(), {}, {});
      end({ErrorCode::kOk, "the client closed the session"});
      return false;
    }
    if (command.sync && host_.failures().pending() && !LooksOn(command.kind)) {
      if (const auto deferred = host_.failures().take_before(command.sequence)) {
        runner_.refuse(command, *deferred);
        return true;
      }
    }
    wrong = runner_.run(command);
  }
  if (wrong == nullptr) return true;
  end_malformed(record, command, wrong);
  return false;
}

void Dispatcher::end_malformed(const Record& record, const Command& command, const char* wrong) {
  const EndCause cause{ErrorCode::kMalformed,
                       "record " + std::to_string(record.sequence) + " (" + RecordKindName(command.kind) +
                           ") is malformed: " + wrong +
                           "; client and executor are of different versions or the "
                           "client's memory is damaged: restart the job with flagos packages of one version"};
  if (command.sync) host_.slots().answer(command.slot, command.sequence, {cause.code, cause.message}, {}, {});
  end(cause);
}

void Dispatcher::idle() {
  if (const uint64_t since = busy_since_.exchange(0, std::memory_order_relaxed)) charge(since, MonotonicNanoseconds());
  if (share_ != nullptr) share_->idle();
  consumer_.wait(kSleep);
}

void Dispatcher::account() {
  host_.show_limits();
  uint64_t since = busy_since_.load(std::memory_order_relaxed);
  if (since == 0) return;
  const uint64_t now = MonotonicNanoseconds();
  // Whoever moves it on accounts for the time in between.
  if (busy_since_.compare_exchange_strong(since, now, std::memory_order_relaxed)) charge(since, now);
}

void Dispatcher::charge(uint64_t since, uint64_t now) {
  host_.page()->busy_ns.fetch_add(now - since, std::memory_order_relaxed);
  host_.page()->last_active_ns.store(now, std::memory_order_relaxed);
}

// Whoever waits for an answer gets one, before the state says that it is over. What was written until a client could
// see that is answered after it; who comes later finds the cause in the page.
void Dispatcher::drain() {
  const Error lost = MakeError(ErrorCode::kDeviceLost, "the session has ended: " + cause_.message);
  answer_ring(lost);
  host_.slots().answer_all(lost);
  host_.finish(cause_);
  answer_ring(lost);
  host_.slots().answer_all(lost);
}

void Dispatcher::answer_ring(const Error& lost) {
  Record record;
  Command command;
  uint64_t bytes = 0;
  // Bounded: a client that goes on writing does not keep us.
  while (bytes <= host_.regions().ring().size() * 2 && consumer_.try_read(record) == RingConsumer::Status::kRecord) {
    bytes += record.header.size;
    checker_.check(record, command);
    if (command.sync && host_.slots().open(command.slot, command.sequence)) {
      host_.slots().answer(command.slot, command.sequence, lost, {}, {});
    }
  }
}

}  // namespace flagos::executor
