// SPDX-License-Identifier: Apache-2.0
// What a call costs in the client, from C++, against the vendor that the environment names (null measures the protocol
// alone). Prints one JSON object of nanoseconds per call and calls per second: medians of --rounds rounds.
//
//   FLAGOS_ENDPOINT=embedded FLAGOS_VENDOR=null client_bench LIBRARY [ROUNDS]
//
// LIBRARY is libflagos_client.so.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/GradMode.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBurst = 2000;  // records of a burst fit the ring several times over: no call waits for credits

double Nanoseconds(Clock::duration duration) { return std::chrono::duration<double, std::nano>(duration).count(); }

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void CallFlagos(const char* name, torch::jit::Stack stack = {}) {
  c10::Dispatcher::singleton().findSchemaOrThrow((std::string("flagos::") + name).c_str(), "").callBoxed(&stack);
}

void Synchronize() { CallFlagos("_synchronize", {c10::IValue(int64_t{0})}); }

// Median over rounds of the time of one of `calls` calls; what is queued is waited for outside the time.
double Issue(int rounds, int calls, const std::function<void()>& call) {
  std::vector<double> samples;
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) call();
    samples.push_back(Nanoseconds(Clock::now() - start) / calls);
    Synchronize();
  }
  return Median(samples);
}

// Median time of one synchronous round trip; `pause` before each lets both sides fall asleep.
double RoundTrip(int count, std::chrono::microseconds pause) {
  std::vector<double> samples;
  for (int i = 0; i < count; ++i) {
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
    const auto start = Clock::now();
    Synchronize();
    samples.push_back(Nanoseconds(Clock::now() - start));
  }
  return Median(samples);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    std::fprintf(stderr, "usage: client_bench LIBRARY [ROUNDS]: %s\n", argc < 2 ? "no library" : dlerror());
    return 2;
  }
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 31;
  const c10::NoGradGuard no_grad;
  CallFlagos("_register");
  CallFlagos("_init");

  const auto device = at::TensorOptions().device(c10::Device(c10::kPrivateUse1, 0));
  const at::Tensor a = at::empty({16, 16}, device), b = at::empty({16, 16}, device);
  const at::Tensor host_a = at::ones({16, 16}), host_b = at::ones({16, 16});
  const auto add = c10::Dispatcher::singleton().findSchemaOrThrow("aten::add", "Tensor");
  torch::jit::Stack stack;

  const double host_add = Issue(rounds, kBurst, [&] { at::add(host_a, host_b); });
  const double flagos_add = Issue(rounds, kBurst, [&] { at::add(a, b); });
  // The kernel that the dispatcher ends in, called as it calls it: what is ours of a known call.
  const double own_part = Issue(rounds, kBurst, [&] {
    stack.clear();
    torch::jit::push(stack, a, b, 1);
    add.callBoxedForDispatchKey(c10::DispatchKey::PrivateUse1, stack);
  });

  std::vector<double> rates;
  for (int round = 0; round < rounds; ++round) {
    constexpr int kCalls = 20000;
    const auto start = Clock::now();
    for (int i = 0; i < kCalls; ++i) at::add(a, b);
    Synchronize();
    rates.push_back(kCalls / Nanoseconds(Clock::now() - start) * 1e9);
  }

  const double spinning = RoundTrip(2000, std::chrono::microseconds(0));
  const double sleeping = RoundTrip(300, std::chrono::microseconds(2000));
  std::printf(
      "{\"host_add_ns\": %.1f, \"add_ns\": %.1f, \"own_part_ns\": %.1f, \"adds_per_second\": %.0f, "
      "\"round_trip_spinning_ns\": %.0f, \"round_trip_sleeping_ns\": %.0f}\n",
      host_add, flagos_add, own_part, Median(rates), spinning, sleeping);
  return 0;
}
