// SPDX-License-Identifier: Apache-2.0
#include "vendors/cuda/runtime.h"

#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <string>
#include <utility>

#include "vendors/cuda/errors.h"
#include "vendors/torch/failures.h"

namespace flagos::cuda {
namespace {

constexpr uint64_t kLarge = uint64_t{1} << 20;

Error NoStream(uint16_t stream) {
  return MakeError(ErrorCode::kMalformed, "stream " + std::to_string(stream) + " was never created");
}

Error NoSharing() {
  return MakeError(ErrorCode::kNotImplemented,
                   "memory of vendor cuda cannot be shared with another process yet; send a copy: "
                   "tensor.cpu()");
}

}  // namespace

CudaRuntime::CudaRuntime(uint8_t devices, vendor::Host& host)
    : host_(host),
      device_count_(devices),
      arena_(host.arena()),
      memory_(devices, host),
      streams_(devices),
      waiter_([this](const Error& error) { return host_.device_failed(error); }) {
  host.keep_arena_in_place();
  for (uint8_t device = 0; device < devices; ++device) {
    pools_.push_back(std::make_unique<EventPool>());
    // A session starts from PyTorch's documented seed.
    default_generator(device).set_current_seed(c10::default_rng_seed_val);
  }
}

// CUDA gives the error of a kernel that failed to every later call of the process.
Error CudaRuntime::lost() {
  const cudaError_t status = cudaStreamQuery(nullptr);
  if (status == cudaSuccess || status == cudaErrorNotReady) return Error::Ok();
  return ToError(status, "the device ran the session's calls");
}

Error CudaRuntime::current_error() {
  const Error why = lost();
  return why.ok() ? torch_host::CurrentError() : host_.device_failed(why);
}

void CudaRuntime::change(uint8_t device, uint16_t stream) {
  entered_device_ = kNowhere;
  if (streams_.device_of(stream) != device) throw torch_host::Refusal(NoStream(stream));
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(device));
  c10::cuda::setCurrentCUDAStream(streams_.get(stream));
  entered_device_ = device;
  entered_stream_ = stream;
}

cudaStream_t CudaRuntime::use(uint16_t stream) {
  const int device = streams_.device_of(stream);
  if (device < 0) throw torch_host::Refusal(NoStream(stream));
  enter(static_cast<uint8_t>(device), stream);
  return streams_.get(stream).stream();
}

c10::Storage CudaRuntime::allocate(uint64_t bytes, uint8_t device, uint16_t stream) {
  enter(device, stream);
  auto* const allocator = c10::cuda::CUDACachingAllocator::get();
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, allocator->allocate(bytes), allocator, true);
  // The client waits for an allocation that the figures leave no room for: they count what is large at once.
  if (bytes >= kLarge) memory_.publish(device);
  return storage;
}

Result<vendor::SharedMemory> CudaRuntime::share(c10::StorageImpl&, uint8_t) { return NoSharing(); }

Result<c10::Storage> CudaRuntime::adopt(vendor::SharedMemory, uint8_t) { return NoSharing(); }

void CudaRuntime::fence(uint16_t stream, uint8_t device, torch_host::Done done) {
  std::vector<cudaEvent_t> events;
  EventPool& pool = *pools_[device];
  try {
    std::vector<c10::cuda::CUDAStream> busy;
    if (stream == kAllStreams) {
      busy = streams_.all_of(device);
      enter(device, device);
    } else {
      use(stream);
      busy.push_back(streams_.get(stream));
    }
    for (const c10::cuda::CUDAStream& one : busy) {
      const cudaError_t status = cudaStreamQuery(one.stream());
      if (status == cudaSuccess) continue;
      if (status != cudaErrorNotReady) throw torch_host::Refusal(ToError(status, "waiting for a stream"));
      events.push_back(pool.take());
      Check(cudaEventRecord(events.back(), one.stream()), "recording an event");
    }
    memory_.publish_now_and_then(device);
  } catch (...) {
    pool.give_back(events);
    return done(current_error());
  }
  if (events.empty()) return done(Error::Ok());
  waiter_.wait(events, [&pool, events, done = std::move(done)](const Error& error) {
    pool.give_back(events);
    done(error);
  });
}

Error CudaRuntime::record_event(uint32_t event, uint16_t stream, bool timing, torch_host::Done done) {
  try {
    events_.record(event, use(stream), timing, std::move(done));
    return Error::Ok();
  } catch (...) {
    return current_error();
  }
}

Error CudaRuntime::wait_event(uint32_t event, uint16_t stream) {
  try {
    events_.wait(event, use(stream));
    return Error::Ok();
  } catch (...) {
    return current_error();
  }
}

at::Generator CudaRuntime::default_generator(uint8_t device) {
  return at::cuda::detail::getDefaultCUDAGenerator(static_cast<c10::DeviceIndex>(device));
}

at::Generator CudaRuntime::make_generator(uint8_t device) {
  return at::cuda::detail::createCUDAGenerator(static_cast<c10::DeviceIndex>(device));
}

}  // namespace flagos::cuda
