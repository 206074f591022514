// SPDX-License-Identifier: Apache-2.0
// The session's events as CUDA's, and events for fences.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "proto/wire/error.h"
#include "vendors/cuda/waiter.h"

namespace flagos::cuda {

// CUDA events without timing, kept for reuse, of one device. Thread safe.
class EventPool {
 public:
  ~EventPool();
  // REQUIRES that the device is current. Throws.
  cudaEvent_t take();
  void give_back(const std::vector<cudaEvent_t>& events);

 private:
  std::mutex mutex_;
  std::vector<cudaEvent_t> free_;  // GUARDED_BY(mutex_)
};

// For the dispatch thread, with the stream's device current; all may throw.
class Events {
 public:
  explicit Events(Waiter& waiter) : waiter_(waiter) {}

  void record(uint32_t event, cudaStream_t stream, bool timing, Waiter::Done done);
  // Nothing where the event was never recorded.
  void wait(uint32_t event, cudaStream_t stream);
  void destroy(uint32_t event) { events_.erase(event); }
  // Milliseconds, once both have happened.
  void elapsed(uint32_t first, uint32_t second, std::function<void(Result<double>)> done);

 private:
  struct Event {
    cudaEvent_t event = nullptr;
    bool timing = false;
    ~Event();
  };

  Waiter& waiter_;
  std::unordered_map<uint32_t, std::shared_ptr<Event>> events_;  // as recorded last
};

}  // namespace flagos::cuda
