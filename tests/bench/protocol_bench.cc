// SPDX-License-Identifier: Apache-2.0
// What the protocol costs by itself: a record into the ring, records between two processes, and a round trip while both
// sides spin. With FLAGOS_SPIN_US=0 in the environment nobody spins, and a round trip is one in which both sleep. All
// but the first two need two cores.
#include <benchmark/benchmark.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "proto/shm/futex.h"
#include "proto/shm/replies.h"
#include "proto/shm/ring.h"

namespace {

using namespace flagos;

constexpr uint64_t kRingBytes = 4u << 20;
constexpr size_t kPayload = 48;  // a record of 64 bytes

UniqueFd MakeRegion(const char* name, uint64_t bytes) {
  auto region = CreateRegion(name, bytes);
  if (!region.ok()) {
    std::fprintf(stderr, "%s\n", region.error().message.c_str());
    std::exit(1);
  }
  return std::move(region).value();
}

Mapping Map(const UniqueFd& fd) {
  auto mapping = Mapping::Map(fd.get(), Access::kReadWrite, kPage);
  if (!mapping.ok()) {
    std::fprintf(stderr, "%s\n", mapping.error().message.c_str());
    std::exit(1);
  }
  return std::move(mapping).value();
}

// One process's view of a session.
struct View {
  Mapping ring_region, executor_region;
  View(const UniqueFd& ring_fd, const UniqueFd& executor_fd)
      : ring_region(Map(ring_fd)), executor_region(Map(executor_fd)) {}
  ClientPage* client() { return reinterpret_cast<ClientPage*>(ring_region.data()); }
  std::span<std::byte> ring() { return {ring_region.data() + kPage, ring_region.size() - kPage}; }
  ExecutorPage* executor() { return reinterpret_cast<ExecutorPage*>(executor_region.data()); }
  std::span<std::byte> replies() { return {executor_region.data(), executor_region.size()}; }
};

// A process that reads every record, answers SYNC ones with eight bytes and completes NOTIFY ones.
class Executor {
 public:
  Executor()
      : ring_fd_(MakeRegion("bench-ring", RingRegionBytes(kRingBytes))),
        executor_fd_(MakeRegion("bench-executor", kExecutorRegionBytes)),
        pid_(::fork()) {
    if (pid_ == 0) serve();
  }
  ~Executor() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  View map() const { return {ring_fd_, executor_fd_}; }

 private:
  [[noreturn]] void serve() const {
    ::alarm(300);
    View view(ring_fd_, executor_fd_);
    RingConsumer consumer(view.client(), view.ring(), view.executor());
    ReplyWriter replies(view.client(), view.replies());
    Record record;
    for (;;) {
      if (consumer.try_read(record) != RingConsumer::Status::kRecord) {
        consumer.wait(1'000'000'000);
        continue;
      }
      if (record.header.flags & kFlagSync) {
        ReplyTarget target{};
        std::memcpy(&target, record.payload.data(), sizeof target);
        replies.reply(target.slot, record.sequence, record.payload.subspan(sizeof target, 8));
      }
      if (record.header.flags & kFlagNotify) replies.complete(0, record.sequence);
    }
  }
  const UniqueFd ring_fd_, executor_fd_;
  const pid_t pid_;
};

uint64_t Push(RingProducer& producer, ProducerLock& lock, uint8_t flags, uint32_t slot) {
  const std::lock_guard guard(lock);
  ErrorCode error = ErrorCode::kOk;
  std::byte* const at = producer.reserve(kPayload, error);
  const ReplyTarget target{slot, 0};
  std::memcpy(at, &target, sizeof target);
  std::memset(at + sizeof target, 1, kPayload - sizeof target);
  RecordHeader header{};
  header.kind = static_cast<uint16_t>(flags == 0 ? RecordKind::kCall : RecordKind::kFence);
  header.flags = flags;
  return producer.commit(header, kPayload);
}

// The client's part alone: lock, copy, publish. The ring never fills, for the tail is moved along.
void BM_PushRecord(benchmark::State& state) {
  const UniqueFd ring_fd = MakeRegion("bench-ring", RingRegionBytes(kRingBytes));
  const UniqueFd executor_fd = MakeRegion("bench-executor", kExecutorRegionBytes);
  View view(ring_fd, executor_fd);
  RingProducer producer(view.client(), view.ring(), view.executor(), [] { return true; });
  ProducerLock lock;
  uint64_t count = 0;
  for (auto _ : state) {
    Push(producer, lock, 0, 0);
    if (++count % 1024 == 0) view.executor()->tail.store(view.client()->head.load());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_PushRecord);

// The consumer's part alone: validate and copy.
void BM_ReadRecord(benchmark::State& state) {
  const UniqueFd ring_fd = MakeRegion("bench-ring", RingRegionBytes(kRingBytes));
  const UniqueFd executor_fd = MakeRegion("bench-executor", kExecutorRegionBytes);
  View view(ring_fd, executor_fd);
  RingProducer producer(view.client(), view.ring(), view.executor(), [] { return true; });
  RingConsumer consumer(view.client(), view.ring(), view.executor());
  ProducerLock lock;
  Record record;
  for (auto _ : state) {
    if (consumer.try_read(record) == RingConsumer::Status::kRecord) continue;
    state.PauseTiming();
    for (int i = 0; i < 32768; ++i) Push(producer, lock, 0, 0);
    state.ResumeTiming();
    consumer.try_read(record);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_ReadRecord);

// Records a second from one process to another; the last one is waited for.
void BM_TwoProcessThroughput(benchmark::State& state) {
  const Executor executor;
  View view = executor.map();
  RingProducer producer(view.client(), view.ring(), view.executor(), [] { return true; });
  ReplyReader replies(view.client(), view.replies(), [] { return true; });
  ProducerLock lock;
  constexpr int kBatch = 100'000;
  for (auto _ : state) {
    for (int i = 1; i < kBatch; ++i) Push(producer, lock, 0, 0);
    replies.wait_complete(0, Push(producer, lock, kFlagNotify, 0));
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
}
BENCHMARK(BM_TwoProcessThroughput)->UseRealTime()->Unit(benchmark::kMillisecond);

// Median and 99th percentile of round trips, with `pause` before each.
void RoundTrips(benchmark::State& state, std::chrono::microseconds pause) {
  const Executor executor;
  View view = executor.map();
  RingProducer producer(view.client(), view.ring(), view.executor(), [] { return true; });
  ReplyReader replies(view.client(), view.replies(), [] { return true; });
  ProducerLock lock;
  std::vector<std::byte> bytes;
  std::vector<uint64_t> times;
  for (auto _ : state) {
    if (pause.count() != 0) std::this_thread::sleep_for(pause);
    const uint64_t start = MonotonicNanoseconds();
    const uint32_t slot = *replies.claim();
    replies.wait(slot, Push(producer, lock, kFlagSync, slot), bytes);
    replies.release(slot);
    times.push_back(MonotonicNanoseconds() - start);
    state.SetIterationTime(static_cast<double>(times.back()) * 1e-9);
  }
  std::sort(times.begin(), times.end());
  state.counters["p50_us"] = static_cast<double>(times[times.size() / 2]) * 1e-3;
  state.counters["p99_us"] = static_cast<double>(times[times.size() * 99 / 100]) * 1e-3;
  state.SetLabel(SpinNanoseconds() == 0 ? "both sleep" : "client spins");
}

void BM_RoundTrip(benchmark::State& state) { RoundTrips(state, std::chrono::microseconds(0)); }
BENCHMARK(BM_RoundTrip)->UseManualTime();

// After a pause in which the executor has gone to sleep.
void BM_RoundTripAfterPause(benchmark::State& state) { RoundTrips(state, std::chrono::microseconds(2000)); }
BENCHMARK(BM_RoundTripAfterPause)->UseManualTime()->Iterations(500);

}  // namespace

BENCHMARK_MAIN();
