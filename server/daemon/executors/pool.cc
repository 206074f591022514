// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/executors/pool.h"

#include <algorithm>
#include <thread>

#include "server/common/log.h"
#include "server/common/status.h"
#include "server/common/strings.h"
#include "server/daemon/config/units.h"

namespace flagos::daemon {
namespace {

constexpr auto kFirstBackoff = std::chrono::milliseconds(500);
constexpr auto kLongestBackoff = std::chrono::seconds(60);
// A replacement is started once the session that took an executor is served, which takes a millisecond: starting a
// process keeps the loop for longer than that, and its libtorch a core.
constexpr auto kRefillDelay = std::chrono::milliseconds(100);

// Starting a libtorch takes a core for a while; more at a time only makes each later.
size_t MaxStarting() {
  static const size_t most = std::max(2u, std::thread::hardware_concurrency());
  return most;
}

Clock::duration Backoff(uint32_t failures) {
  const auto doubled = kFirstBackoff * (1ll << std::min(failures - 1, 10u));
  return std::min<Clock::duration>(doubled, kLongestBackoff);
}

std::string WithOutput(std::string_view text, const ExecutorProcess& executor) {
  const std::string output = executor.last_output();
  return output.empty() ? Cat(text, " and printed nothing") : Cat(text, "; the last that it printed:\n", output);
}

}  // namespace

ExecutorPool::Ticket::Ticket(Ticket&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), devices_(std::move(other.devices_)), number_(other.number_) {}

ExecutorPool::Ticket& ExecutorPool::Ticket::operator=(Ticket&& other) noexcept {
  if (this != &other) {
    if (pool_ != nullptr) pool_->cancel(devices_, number_);
    pool_ = std::exchange(other.pool_, nullptr);
    devices_ = std::move(other.devices_);
    number_ = other.number_;
  }
  return *this;
}

ExecutorPool::Ticket::~Ticket() {
  if (pool_ != nullptr) pool_->cancel(devices_, number_);
}

ExecutorPool::ExecutorPool(EventLoop& loop, const Config& config, Observer observer)
    : loop_(loop), config_(config), observer_(std::move(observer)), spawner_(MakeSpawner(loop, config)) {}

ExecutorPool::~ExecutorPool() { *alive_ = false; }

ExecutorPool::Ticket ExecutorPool::take(const DeviceSet& devices, Taker taker) {
  const uint64_t number = next_ticket_++;
  buckets_[devices].waiters.push_back({number, std::move(taker)});
  settle_later(devices);
  return Ticket(this, devices, number);
}

void ExecutorPool::cancel(const DeviceSet& devices, uint64_t number) {
  std::erase_if(buckets_[devices].waiters, [&](const Waiter& waiter) { return waiter.number == number; });
  settle_later(devices);
}

void ExecutorPool::keep(const DeviceSet& devices) {
  Bucket& bucket = buckets_[devices];
  if (bucket.keepers++ == 0) bucket.kept_since = next_keep_++;
  settle_later(devices);
}

void ExecutorPool::drop(const DeviceSet& devices) {
  Bucket& bucket = buckets_[devices];
  if (bucket.keepers > 0) --bucket.keepers;
  settle_all_later();  // another set may take its place
}

void ExecutorPool::probe(const DeviceSet& devices) {
  buckets_[devices].probe = true;
  settle_later(devices);
}

void ExecutorPool::stop(std::function<void()> idle) {
  stopped_ = true;
  idle_ = std::move(idle);
  for (auto& [devices, bucket] : buckets_) {
    for (Member& member : bucket.members) member.process->kill();  // nothing of anybody's is in it
    settle_later(devices);
  }
  check_idle();
}

void ExecutorPool::check_idle() {
  const bool idle =
      std::all_of(buckets_.begin(), buckets_.end(), [](const auto& entry) { return entry.second.members.empty(); });
  if (stopped_ && idle && idle_) std::exchange(idle_, nullptr)();
}

uint32_t ExecutorPool::warm(uint32_t device) const {
  uint32_t count = 0;
  for (const auto& [devices, bucket] : buckets_) {
    if (!devices.empty() && std::find(devices.begin(), devices.end(), device) == devices.end()) continue;
    for (const Member& member : bucket.members) {
      count += member.ready && (!devices.empty() || device < member.process->devices().size());
    }
  }
  return count;
}

size_t ExecutorPool::starting() const {
  size_t count = 0;
  for (const auto& [devices, bucket] : buckets_) {
    count += static_cast<size_t>(
        std::count_if(bucket.members.begin(), bucket.members.end(), [](const Member& m) { return !m.ready; }));
  }
  return count;
}

// Brings a bucket to what is wanted of it. Never called from within a caller's call, so that takers are told from the
// loop only.
void ExecutorPool::settle(const DeviceSet& devices) {
  const auto found = buckets_.find(devices);
  if (found == buckets_.end()) return;
  Bucket& bucket = found->second;
  if (stopped_) {
    fail(devices, bucket, absl::UnavailableError("flagosd is stopping; attach again once it runs"));
  } else {
    hand_out(devices, bucket);
    start_missing(devices, bucket);
    trim(bucket);
  }
  const bool wanted = bucket.keepers > 0 || bucket.probe || !bucket.waiters.empty() || !bucket.members.empty();
  if (!wanted && Clock::now() >= bucket.retry_at) buckets_.erase(found);
}

void ExecutorPool::settle_later(const DeviceSet& devices) {
  loop_.post([this, devices, alive = alive_] {
    if (*alive) settle(devices);
  });
}

void ExecutorPool::settle_all_later() {
  for (const auto& [devices, bucket] : buckets_) settle_later(devices);
}

void ExecutorPool::hand_out(const DeviceSet& devices, Bucket& bucket) {
  while (!bucket.waiters.empty()) {
    const auto ready = std::find_if(bucket.members.begin(), bucket.members.end(),
                                    [](const Member& member) { return member.ready && member.failure.ok(); });
    if (ready == bucket.members.end()) return;
    std::unique_ptr<ExecutorProcess> process = std::move(ready->process);
    bucket.members.erase(ready);
    bucket.failures = 0;
    bucket.refill_at = Clock::now() + kRefillDelay;
    bucket.refill = loop_.after(kRefillDelay, [this, devices] { settle(devices); });
    const Taker taker = std::move(bucket.waiters.front().taker);
    bucket.waiters.pop_front();
    taker(std::move(process));
  }
}

// Executors that are kept ready for the bucket, after the sets that came before it.
size_t ExecutorPool::kept(const Bucket& bucket) const {
  if (bucket.keepers == 0) return 0;
  const size_t warm = config_.pool.warm;
  size_t left = std::max<size_t>(config_.pool.max_warm, warm);
  for (const auto& [devices, other] : buckets_) {
    if (other.keepers > 0 && other.kept_since < bucket.kept_since) left -= std::min(left, warm);
  }
  return std::min(left, warm);
}

// Executors that the bucket should hold: one for everybody who waits, and those that are kept warm. Any of them answers
// a probe.
size_t ExecutorPool::wanted(const Bucket& bucket) const {
  return std::max(bucket.waiters.size() + kept(bucket), bucket.probe ? size_t{1} : size_t{0});
}

void ExecutorPool::start_missing(const DeviceSet& devices, Bucket& bucket) {
  size_t target = wanted(bucket);
  if (Clock::now() < bucket.refill_at) target = std::max(bucket.waiters.size(), bucket.probe ? size_t{1} : 0);
  if (bucket.members.size() >= target) return;
  if (Clock::now() < bucket.retry_at) {
    // Somebody who waits now is told what went wrong rather than to wait.
    return fail(devices, bucket, absl::Status(bucket.last_failure));
  }
  while (bucket.members.size() < target && starting() < MaxStarting()) {
    auto process =
        ExecutorProcess::Start(loop_, *spawner_, ExecutorSpec::From(config_, devices), Cat("e", next_executor_), this);
    if (!process.ok()) {
      return fail(devices, bucket, process.status());
    }
    ++next_executor_;
    Member member;
    member.process = *std::move(process);
    ExecutorProcess* const started = member.process.get();
    const auto limit = config_.pool.start_timeout;  // of this start, whatever the configuration says later
    member.deadline = loop_.after(limit, [&bucket, started, limit] {
      Member* const late = Find(bucket, *started);
      late->failure = absl::DeadlineExceededError(WithOutput(
          Cat("the executor was not ready within ", FormatDuration(limit), " ([pool] start_timeout)"), *started));
      started->kill();
    });
    bucket.members.push_back(std::move(member));
  }
}

// Ends what is not wanted any more; of those that there are, the ready ones stay.
void ExecutorPool::trim(Bucket& bucket) {
  size_t target = wanted(bucket);
  for (const bool ready : {true, false}) {
    for (Member& member : bucket.members) {
      if (member.ready != ready || !member.failure.ok()) continue;
      if (target > 0) {
        --target;
      } else {
        member.failure = absl::CancelledError("not needed any more");
        member.deadline.cancel();
        member.process->kill();
      }
    }
  }
}

void ExecutorPool::fail(const DeviceSet& devices, Bucket& bucket, const absl::Status& failure) {
  const size_t on_their_way = static_cast<size_t>(std::count_if(
      bucket.members.begin(), bucket.members.end(), [&](const Member& m) { return m.failure.ok() && !stopped_; }));
  if (!stopped_ && Clock::now() >= bucket.retry_at) {
    ++bucket.failures;
    const auto delay = Backoff(bucket.failures);
    bucket.retry_at = Clock::now() + delay;
    bucket.last_failure = failure;
    bucket.retry = loop_.after(delay, [this, devices] { settle(devices); });
    log::Error("an executor could not be started",
               {{"error", MessageOf(failure)},
                {"retry_ms", std::chrono::duration_cast<std::chrono::milliseconds>(delay).count()}});
    observer_.failed(devices, failure);
  }
  while (bucket.waiters.size() > on_their_way) {
    const Taker taker = std::move(bucket.waiters.front().taker);
    bucket.waiters.pop_front();
    taker(failure);
  }
}

ExecutorPool::Member* ExecutorPool::Find(Bucket& bucket, const ExecutorProcess& executor) {
  const auto found = std::find_if(bucket.members.begin(), bucket.members.end(),
                                  [&](const Member& member) { return member.process.get() == &executor; });
  return found == bucket.members.end() ? nullptr : &*found;
}

void ExecutorPool::executor_ready(ExecutorProcess& executor, const Error& error) {
  Bucket& bucket = buckets_[executor.device_set()];
  Member* const member = Find(bucket, executor);
  member->deadline.cancel();
  if (!member->failure.ok()) return;  // it is being killed
  if (!error.ok()) {
    member->failure = ToStatus(error);
    executor.kill();
    return;
  }
  member->ready = true;
  bucket.probe = false;
  log::Info("executor ready", {{"executor", executor.id()},
                               {"pid", executor.pid()},
                               {"vendor", executor.vendor()},
                               {"torch", executor.torch_version()},
                               {"devices", executor.devices().size()}});
  observer_.ready(executor);
  // The next one may have waited for a place among those that start.
  settle_all_later();
}

void ExecutorPool::executor_assigned(ExecutorProcess& executor, const Error&) {
  log::Error("an executor without a session says that it has one", {{"executor", executor.id()}});
  executor.kill();
}

void ExecutorPool::executor_ending(ExecutorProcess& executor, const std::string& cause) {
  Member* const member = Find(buckets_[executor.device_set()], executor);
  if (member->failure.ok())
    member->failure = absl::UnavailableError("the executor ended before it had a session: " + cause);
}

void ExecutorPool::executor_exited(ExecutorProcess& executor, const ExitStatus& status) {
  const DeviceSet devices = executor.device_set();
  Bucket& bucket = buckets_[devices];
  Member* const member = Find(bucket, executor);
  absl::Status failure = member->failure;
  if (failure.ok()) {
    failure = absl::UnavailableError(WithOutput(
        Cat("the executor ", status.describe(), member->ready ? " while it was held ready" : " before it was ready"),
        executor));
  }
  std::erase_if(bucket.members, [&](const Member& m) { return m.process.get() == &executor; });
  if (!absl::IsCancelled(failure) && !stopped_) fail(devices, bucket, failure);
  settle_all_later();
  check_idle();
}

}  // namespace flagos::daemon
