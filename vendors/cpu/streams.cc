// SPDX-License-Identifier: Apache-2.0
#include "vendors/cpu/streams.h"

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "proto/wire/records.h"

namespace flagos::cpu {

Streams::Streams(uint32_t devices) {
  devices_.fill(-1);
  for (uint32_t i = 0; i < devices && i < kMaxDevices; ++i) devices_[i] = static_cast<int16_t>(i);
}

Error Streams::check(uint16_t stream) const {
  if (device_of(stream) >= 0) return Error::Ok();
  return MakeError(ErrorCode::kMalformed, "stream " + std::to_string(stream) + " was never created");
}

void Streams::start_lane(uint16_t stream) {
  if (lanes_[stream]) return;
  lanes_[stream] = std::make_unique<Lane>("stream-" + std::to_string(stream));
  concurrent_ = true;
}

Error Streams::create(uint16_t stream, uint8_t device) {
  if (stream < kMaxDevices || stream >= kMaxStreams || device_of(device) < 0 || devices_[stream] >= 0) {
    return MakeError(ErrorCode::kMalformed, "stream " + std::to_string(stream) + " of device " +
                                                std::to_string(device) +
                                                " cannot be created: it exists, or there is no such stream or device");
  }
  start_lane(stream);
  devices_[stream] = device;
  return Error::Ok();
}

void Streams::drain() {
  if (!concurrent_) return;
  for (const auto& lane : lanes_) {
    if (lane) lane->wait_idle();
  }
}

void Streams::fence(uint16_t stream, uint8_t device, Done done) {
  if (stream != kAllStreams) {
    if (Error error = check(stream); !error.ok()) return done(error);
    Lane* lane = lanes_[stream].get();
    if (lane == nullptr || lane->idle()) return done(Error::Ok());
    lane->enqueue([done = std::move(done)] { done(Error::Ok()); });
    return;
  }
  std::vector<Lane*> busy;
  for (size_t i = 0; concurrent_ && i < lanes_.size(); ++i) {
    if (devices_[i] == device && lanes_[i] && !lanes_[i]->idle()) busy.push_back(lanes_[i].get());
  }
  if (busy.empty()) return done(Error::Ok());
  const auto left = std::make_shared<std::atomic<size_t>>(busy.size());
  for (Lane* lane : busy) {
    lane->enqueue([left, done] {
      if (left->fetch_sub(1, std::memory_order_acq_rel) == 1) done(Error::Ok());
    });
  }
}

Error Streams::record(uint32_t event, uint16_t stream, bool timing, Done done) {
  if (Error error = check(stream); !error.ok()) return error;
  const auto recorded = std::make_shared<Event>(timing);
  events_[event] = recorded;
  if (queued(stream)) {
    // Told first: who sees what waited for the event complete must not see the event itself pending.
    lanes_[stream]->enqueue([recorded, done = std::move(done)] {
      done(Error::Ok());
      recorded->happen();
    });
  } else {
    done(Error::Ok());
    recorded->happen();
  }
  return Error::Ok();
}

// The lane blocks, not the dispatch thread. What it waits for was queued before, so it comes.
Error Streams::wait(uint32_t event, uint16_t stream) {
  if (Error error = check(stream); !error.ok()) return error;
  const auto found = events_.find(event);
  if (found == events_.end() || found->second->happened()) return Error::Ok();
  start_lane(stream);
  lanes_[stream]->enqueue([recorded = found->second] { recorded->wait(); });
  return Error::Ok();
}

void Streams::elapsed(uint32_t first, uint32_t second, std::function<void(Result<double>)> done) {
  const auto from = events_.find(first);
  const auto to = events_.find(second);
  if (from == events_.end() || to == events_.end()) {
    return done(MakeError(ErrorCode::kValue, "Both events must be recorded before calculating elapsed time."));
  }
  if (!from->second->timing() || !to->second->timing()) {
    return done(MakeError(ErrorCode::kValue, "Both events must be created with argument 'enable_timing=True'."));
  }
  // The second callback runs when both have happened, in whatever order.
  from->second->then([start = from->second, end = to->second, done = std::move(done)] {
    end->then(
        [start, end, done] { done(std::chrono::duration<double, std::milli>(end->time() - start->time()).count()); });
  });
}

}  // namespace flagos::cpu
