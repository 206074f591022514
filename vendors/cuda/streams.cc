// SPDX-License-Identifier: Apache-2.0
#include "vendors/cuda/streams.h"

#include <algorithm>
#include <string>

namespace flagos::cuda {

Streams::Streams(uint8_t devices) {
  devices_.fill(-1);
  for (uint8_t device = 0; device < devices; ++device) {
    devices_[device] = device;
    streams_[device] = c10::cuda::getDefaultCUDAStream(static_cast<c10::DeviceIndex>(device));
  }
}

Error Streams::create(uint16_t stream, uint8_t device, int32_t priority) {
  if (stream >= kMaxStreams || devices_[stream] >= 0) {
    return MakeError(ErrorCode::kMalformed, "stream " + std::to_string(stream) + " cannot be created, or is already");
  }
  streams_[stream] = c10::cuda::getStreamFromPool(static_cast<int>(priority), static_cast<c10::DeviceIndex>(device));
  devices_[stream] = device;
  created_.push_back(stream);
  return Error::Ok();
}

std::vector<c10::cuda::CUDAStream> Streams::all_of(uint8_t device) const {
  std::vector<c10::cuda::CUDAStream> all{*streams_[device]};
  for (const uint16_t stream : created_) {
    if (devices_[stream] != device) continue;
    const c10::cuda::CUDAStream one = *streams_[stream];
    if (std::ranges::find(all, one) == all.end()) all.push_back(one);
  }
  return all;
}

}  // namespace flagos::cuda
