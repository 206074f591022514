// SPDX-License-Identifier: Apache-2.0
#include "vendors/cuda/scalar_read.h"

#include <ATen/Dispatch_v2.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>
#include <torch/library.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "proto/shm/futex.h"

namespace flagos::cuda {
namespace {

using Clock = std::chrono::steady_clock;

// From then on the wait is the driver's.
constexpr auto kWatch = std::chrono::milliseconds(2);
constexpr int kLooksPerQuestion = 64;  // asking the driver takes locks, and costs more than a look

// The largest element, in units that the device writes whole.
constexpr size_t kUnits = 4;
using Unit = uint32_t;
// What no boolean is, and hardly any number. Where a value has it in one of its units, the stream's end tells.
constexpr Unit kAbsent = 0xa5c3'96e5;

struct Unpin {
  void operator()(Unit* units) const { static_cast<void>(cudaFreeHost(units)); }
};

// Of the calling thread: at most one element is on its way to each.
Unit* Landing() {
  thread_local const std::unique_ptr<Unit, Unpin> landing([] {
    void* bytes = nullptr;
    C10_CUDA_CHECK(cudaHostAlloc(&bytes, kUnits * sizeof(Unit), cudaHostAllocPortable));
    return static_cast<Unit*>(bytes);
  }());
  return landing.get();
}

// Whether all of the element's bytes were written: each unit differs from kAbsent in what belongs to the element.
bool Arrived(Unit* landing, size_t bytes) {
  for (size_t at = 0; at < bytes; at += sizeof(Unit)) {
    const Unit now = std::atomic_ref<Unit>(landing[at / sizeof(Unit)]).load(std::memory_order_acquire);
    const size_t own = bytes - at < sizeof(Unit) ? bytes - at : sizeof(Unit);
    const Unit mask = own == sizeof(Unit) ? ~Unit{0} : (Unit{1} << (8 * own)) - 1;
    if (((now ^ kAbsent) & mask) == 0) return false;
  }
  return true;
}

void Await(Unit* landing, size_t bytes, cudaStream_t stream) {
  const Clock::time_point began = Clock::now();
  while (Clock::now() - began < kWatch) {
    for (int look = 0; look < kLooksPerQuestion; ++look) {
      if (Arrived(landing, bytes)) return;
      CpuRelax();
    }
    const cudaError_t status = cudaStreamQuery(stream);
    if (status == cudaSuccess) return;
    if (status != cudaErrorNotReady) C10_CUDA_CHECK(status);
  }
  C10_CUDA_CHECK(cudaStreamSynchronize(stream));
}

at::Scalar ReadScalar(const at::Tensor& self) {
  const c10::cuda::CUDAGuard guard(self.device());
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream().stream();
  const size_t bytes = self.element_size();
  Unit* const landing = Landing();
  for (size_t i = 0; i < kUnits; ++i) landing[i] = kAbsent;
  C10_CUDA_CHECK(cudaMemcpyAsync(landing, self.const_data_ptr(), bytes, cudaMemcpyDeviceToHost, stream));
  Await(landing, bytes, stream);
  at::Scalar value;
  AT_DISPATCH_V2(self.scalar_type(), "_local_scalar_dense_cuda", AT_WRAP([&] {
                   scalar_t read;
                   std::memcpy(static_cast<void*>(&read), landing, sizeof read);
                   value = at::Scalar(read);
                 }),
                 AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), at::kComplexHalf, at::kHalf, at::kBool, at::kBFloat16,
                 AT_EXPAND(AT_FLOAT8_TYPES), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES));
  return value;
}

// Registration warns that a kernel is replaced, which is the purpose.
class Silence : public c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

}  // namespace

void ReplaceScalarRead() {
  static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  Silence silence;
  const c10::WarningUtils::WarningHandlerGuard guard(&silence);
  library.impl("_local_scalar_dense", &ReadScalar);
}

}  // namespace flagos::cuda
