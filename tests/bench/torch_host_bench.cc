// SPDX-License-Identifier: Apache-2.0
// What the executor's libtorch host adds to a kernel: a known call of aten::add on 16x16 floats, less at::add itself in
// the same mode; binding and freeing of the result included. Arguments are those of Google Benchmark.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <c10/core/InferenceMode.h>

#include <array>
#include <cstring>
#include <memory>

#include "vendors/cpu/vendor.h"

namespace flagos {
namespace {

class QuietHost final : public vendor::Host {
 public:
  void complete(uint16_t, uint64_t) override {}
  void fail(uint64_t, const Error& error) override { std::fprintf(stderr, "%s\n", error.message.c_str()); }
  Error device_failed(const Error& error) override { return error; }
  void warn(std::vector<Warning>) override {}
  void count_misprediction() override { std::fprintf(stderr, "misprediction\n"); }
  std::span<std::byte> arena() const override { return {}; }
  DeviceFigures& figures(uint32_t device) override { return figures_[device]; }

 private:
  std::array<DeviceFigures, kMaxDevices> figures_;
};

Geometry Square(int64_t size) {
  Geometry geometry;
  geometry.dtype = DType::kFloat32;
  geometry.sizes = {size, size};
  geometry.strides = {size, 1};
  return geometry;
}

Argument TensorArgument(const Geometry& geometry) {
  Argument argument;
  argument.tag = ArgTag::kTensor;
  argument.tensor = geometry;
  return argument;
}

// A backend with operands and one signature of add.
struct Session {
  explicit Session(int64_t size) : bytes(static_cast<uint64_t>(size * size) * 4) {
    if (!vendor.start({}).ok()) std::abort();
    backend = std::move(vendor.open(host)).value();
    ContextState context{};
    context.default_dtype = static_cast<uint8_t>(DType::kFloat32);
    backend->define_context(0, context);
    backend->define_operator(0, {"aten::add", "Tensor", 3, {ReturnKind::kTensor}});
    Signature signature;
    Argument alpha;
    alpha.tag = ArgTag::kScalar;
    signature.arguments = {TensorArgument(Square(size)), TensorArgument(Square(size)), alpha};
    signature.predicted = true;
    Output& output = signature.expected.outputs.emplace_back();
    output.tag = OutputTag::kTensor;
    output.geometry = Square(size);
    output.storage_bytes = bytes;
    signature.inputs = 2;
    signature.free_bytes = 8;
    if (!backend->define_signature(0, signature).ok()) std::abort();
    for (const uint32_t handle : {1, 2}) backend->allocate(handle, bytes, 0, 0);
  }
  const uint64_t bytes;
  QuietHost host;
  cpu::CpuVendor vendor;
  std::unique_ptr<vendor::Backend> backend;
};

void KnownCall(benchmark::State& state) {
  Session session(state.range(0));
  const uint32_t inputs[] = {1, 2}, outputs[] = {3};
  const int64_t alpha = 1;
  const auto free = std::as_bytes(std::span(&alpha, 1));
  uint64_t sequence = 0;
  for (auto _ : state) {
    session.backend->call({0, inputs, outputs, free, ++sequence, 0, 0}, nullptr);
    session.backend->free(3, 0);
  }
}
BENCHMARK(KnownCall)->Arg(16);

void InProcess(benchmark::State& state) {
  const Session session(state.range(0));  // the same allocator
  const c10::InferenceMode mode;
  const at::Tensor a = at::ones({state.range(0), state.range(0)}), b = at::ones_like(a);
  for (auto _ : state) benchmark::DoNotOptimize(at::add(a, b));
}
BENCHMARK(InProcess)->Arg(16);

void AllocateAndFree(benchmark::State& state) {
  Session session(16);
  for (auto _ : state) {
    session.backend->allocate(3, static_cast<uint64_t>(state.range(0)), 0, 0);
    session.backend->free(3, 0);
  }
}
BENCHMARK(AllocateAndFree)->Arg(1024)->Arg(8 << 20);

}  // namespace
}  // namespace flagos

BENCHMARK_MAIN();
