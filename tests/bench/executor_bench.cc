// SPDX-License-Identifier: Apache-2.0
// What the executor's core costs a known call, and how many records two processes pass through it, with the null
// vendor.
#include <benchmark/benchmark.h>
#include <time.h>

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "server/executor/dispatcher.h"
#include "tests/support/executor_process.h"
#include "tests/support/session_client.h"
#include "vendors/null/vendor.h"

namespace flagos::testing {
namespace {

using enum RecordKind;

constexpr uint64_t kRingBytes = 4u << 20;
constexpr uint32_t kSignature = 1;

// add(a, b, alpha): two handles in, one out, one number, as a step of a model sends it, its result freed again.
void Define(SessionClient& client) {
  client.define_operator(0, "aten::add", "Tensor", {ReturnKind::kTensor}, 3);
  Signature add{.op = 0, .arguments = {TensorArgument({16, 16}), TensorArgument({16, 16}), Argument{}}, .expected = {}};
  add.arguments[2].tag = ArgTag::kScalar;
  client.define_signature(kSignature, add);
}
const Bytes& CallBytes() {
  static const Bytes bytes = SessionClient::CallPayload(std::array{1u, 2u}, std::array{3u}, Pack(int64_t{1}));
  return bytes;
}

// Processor time of this thread: other work on the machine does not count.
double ThreadSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// A part in an arbiter of its own; null where `kind` is 0. 1: nobody asks for a share. 2: this session does, alone.
std::unique_ptr<executor::Share> PartOf(int64_t kind, vendor::Backend& backend) {
  if (kind == 0) return nullptr;
  NewArbiterPage page = Must(CreateArbiterPage());
  Arbiter(*reinterpret_cast<ArbiterPage*>(page.mapping.data())).set_terms(1, {.weight = kind == 1 ? 100u : 50u});
  auto share = std::make_unique<executor::Share>(Must(ArbiterMember::Join(std::move(page.fd), 1, 1, {0})));
  share->use([&backend](uint8_t device, const std::function<void()>& done) {
    backend.fence(kAllStreams, device, [done](const Error&) { done(); });
  });
  return share;
}

// The dispatch loop alone, on a ring that is filled already.
void BM_Core(benchmark::State& state) {
  const bool with_free = state.range(0) != 0;
  constexpr int kCalls = 40'000;
  for (auto _ : state) {
    const SessionMemory memory(kRingBytes);
    SessionClient client(memory);
    null::NullVendor vendor;
    const auto devices = Must(vendor.start({}));
    const auto regions =
        Must(executor::SessionRegions::Map(memory.ring_read_only.get(), memory.executor_fd.get(), memory.arena_fd.get(),
                                           memory.ring_bytes, memory.arena_bytes));
    executor::SessionHost host(regions, nullptr, std::array{devices[0].total_memory});
    const auto backend = Must(vendor.open(host));
    const auto share = PartOf(state.range(1), *backend);
    executor::Dispatcher dispatcher(host, *backend, share.get());
    Define(client);
    for (int i = 0; i < kCalls; ++i) {
      client.send({.kind = kCall, .subject = kSignature}, CallBytes());
      if (with_free) client.send({.kind = kFree, .subject = 3});
    }
    client.send({.kind = kClose});
    const double start = ThreadSeconds();
    dispatcher.run();
    state.SetIterationTime(ThreadSeconds() - start);
  }
  state.counters["per_call"] =
      benchmark::Counter(kCalls, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(BM_Core)
    ->ArgNames({"with_free", "share"})
    ->ArgsProduct({{0, 1}, {0, 1, 2}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// A session with flagos-executor, this process being the client.
struct Remote {
  Remote() : memory(kRingBytes), client(memory, std::chrono::hours(1)) {
    executor.await_ready();
    liveness = executor.assign_and_wait(memory, owner.pidfd());
    Define(client);
    client.request({.kind = kFence});
  }
  SessionMemory memory;
  SessionClient client;
  IdleProcess owner;
  ExecutorProcess executor;
  UniqueFd liveness;
};

void BM_RecordsBetweenProcesses(benchmark::State& state) {
  Remote remote;
  constexpr int kBatch = 100'000;
  for (auto _ : state) {
    for (int i = 0; i < kBatch; ++i) remote.client.send({.kind = kCall, .subject = kSignature}, CallBytes());
    remote.client.request({.kind = kFence});
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
}
BENCHMARK(BM_RecordsBetweenProcesses)->UseRealTime()->Unit(benchmark::kMillisecond);

// An answer to one question: both sides spin first, so it depends on the number of free cores.
void BM_RoundTrip(benchmark::State& state) {
  Remote remote;
  for (auto _ : state) remote.client.request({.kind = kFence});
}
BENCHMARK(BM_RoundTrip)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace flagos::testing

BENCHMARK_MAIN();
