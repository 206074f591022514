// SPDX-License-Identifier: Apache-2.0
// Streams and events of the session. A default stream is the dispatch thread itself, and only while it has to wait for
// another stream a thread of its own; every other stream has its thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "proto/wire/error.h"
#include "proto/wire/types.h"
#include "vendors/cpu/event.h"
#include "vendors/cpu/lane.h"

namespace flagos::cpu {

// For the dispatch thread; `done` may be called in any thread.
class Streams {
 public:
  using Done = std::function<void(const Error&)>;

  explicit Streams(uint32_t devices);

  Error create(uint16_t stream, uint8_t device);
  int device_of(uint16_t stream) const { return stream < kMaxStreams ? devices_[stream] : -1; }
  bool concurrent() const { return concurrent_; }
  bool queued(uint16_t stream) const {
    const Lane* lane = lanes_[stream].get();
    return lane != nullptr && (stream >= kMaxDevices || !lane->idle());
  }
  // REQUIRES queued(stream).
  void enqueue(uint16_t stream, std::function<void()> work) { lanes_[stream]->enqueue(std::move(work)); }
  void drain();

  // kAllStreams: all of the device.
  void fence(uint16_t stream, uint8_t device, Done done);
  Error record(uint32_t event, uint16_t stream, bool timing, Done done);
  Error wait(uint32_t event, uint16_t stream);
  void destroy(uint32_t event) { events_.erase(event); }
  // Milliseconds, once both have happened.
  void elapsed(uint32_t first, uint32_t second, std::function<void(Result<double>)> done);

 private:
  Error check(uint16_t stream) const;
  void start_lane(uint16_t stream);

  std::array<int16_t, kMaxStreams> devices_;
  std::unordered_map<uint32_t, std::shared_ptr<Event>> events_;  // as recorded last
  bool concurrent_ = false;
  // Last: their threads end before what their work uses.
  std::array<std::unique_ptr<Lane>, kMaxStreams> lanes_;
};

}  // namespace flagos::cpu
