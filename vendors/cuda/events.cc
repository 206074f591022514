// SPDX-License-Identifier: Apache-2.0
#include "vendors/cuda/events.h"

#include <utility>

#include "vendors/cuda/errors.h"

namespace flagos::cuda {

EventPool::~EventPool() {
  for (const cudaEvent_t event : free_) cudaEventDestroy(event);
}

cudaEvent_t EventPool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      const cudaEvent_t event = free_.back();
      free_.pop_back();
      return event;
    }
  }
  cudaEvent_t event = nullptr;
  Check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "creating an event");
  return event;
}

void EventPool::give_back(const std::vector<cudaEvent_t>& events) {
  const std::lock_guard lock(mutex_);
  free_.insert(free_.end(), events.begin(), events.end());
}

Events::Event::~Event() {
  if (event != nullptr) cudaEventDestroy(event);
}

void Events::record(uint32_t number, cudaStream_t stream, bool timing, Waiter::Done done) {
  std::shared_ptr<Event>& known = events_[number];
  // Another thread may still wait for an earlier recording, which a new one must not change.
  if (!known || known.use_count() > 1 || known->timing != timing) {
    auto fresh = std::make_shared<Event>();
    fresh->timing = timing;
    Check(cudaEventCreateWithFlags(&fresh->event, timing ? cudaEventDefault : cudaEventDisableTiming),
          "creating an event");
    known = std::move(fresh);
  }
  Check(cudaEventRecord(known->event, stream), "recording an event");
  waiter_.wait({known->event}, [kept = known, done = std::move(done)](const Error& error) { done(error); });
}

void Events::wait(uint32_t number, cudaStream_t stream) {
  const auto found = events_.find(number);
  if (found != events_.end()) Check(cudaStreamWaitEvent(stream, found->second->event), "waiting for an event");
}

void Events::elapsed(uint32_t first, uint32_t second, std::function<void(Result<double>)> done) {
  const auto a = events_.find(first), b = events_.find(second);
  if (a == events_.end() || b == events_.end() || !a->second->timing || !b->second->timing) {
    return done(MakeError(ErrorCode::kValue,
                          "Both events must be recorded, with enable_timing=True, before "
                          "calculating elapsed time."));
  }
  waiter_.wait({a->second->event, b->second->event},
               [from = a->second, to = b->second, done = std::move(done)](const Error& error) {
                 if (!error.ok()) return done(error);
                 float milliseconds = 0;
                 const cudaError_t status = cudaEventElapsedTime(&milliseconds, from->event, to->event);
                 if (status != cudaSuccess) return done(ToError(status, "reading the time of events"));
                 done(double{milliseconds});
               });
}

}  // namespace flagos::cuda
