// SPDX-License-Identifier: Apache-2.0
#include "vendors/cuda/pinned_arena.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>

namespace flagos::cuda {
namespace {

constexpr size_t kFirst = size_t{32} << 20;
constexpr size_t kGrowth = 4;

}  // namespace

PinnedArena::~PinnedArena() {
  if (registered_ != 0) cudaHostUnregister(arena_.data());
}

void PinnedArena::grow(size_t end) {
  size_t wanted = kFirst;
  while (wanted < end) wanted *= kGrowth;
  wanted = std::min(wanted, arena_.size());
  // Copies may be under way. An error is one of the session's work, which its own calls tell.
  if (registered_ != 0 &&
      (cudaDeviceSynchronize() != cudaSuccess || cudaHostUnregister(arena_.data()) != cudaSuccess)) {
    return;
  }
  registered_ = 0;
  const cudaError_t status = cudaHostRegister(arena_.data(), wanted, cudaHostRegisterPortable);
  if (status == cudaSuccess) {
    registered_ = wanted;
    return;
  }
  refused_ = true;
  static_cast<void>(cudaGetLastError());
  std::fprintf(stderr,
               "vendor cuda: %zu bytes of the arena cannot be registered (%s): copies from and to it are slower\n",
               wanted, cudaGetErrorString(status));
}

}  // namespace flagos::cuda
