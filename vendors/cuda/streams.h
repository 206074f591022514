// SPDX-License-Identifier: Apache-2.0
// The session's streams as CUDA's.
#pragma once

#include <c10/cuda/CUDAStream.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "proto/wire/error.h"
#include "proto/wire/types.h"

namespace flagos::cuda {

// For the dispatch thread.
class Streams {
 public:
  explicit Streams(uint8_t devices);

  // One of PyTorch's pool, which it shares with other streams of the session where there are many, as in process.
  Error create(uint16_t stream, uint8_t device, int32_t priority);
  int device_of(uint16_t stream) const { return stream < kMaxStreams ? devices_[stream] : -1; }
  // REQUIRES device_of(stream) >= 0.
  c10::cuda::CUDAStream get(uint16_t stream) const { return *streams_[stream]; }
  // Those of the device, the default one first.
  std::vector<c10::cuda::CUDAStream> all_of(uint8_t device) const;

 private:
  std::array<int16_t, kMaxStreams> devices_;
  std::array<std::optional<c10::cuda::CUDAStream>, kMaxStreams> streams_;
  std::vector<uint16_t> created_;
};

}  // namespace flagos::cuda
