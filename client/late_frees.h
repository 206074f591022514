// SPDX-License-Identifier: Apache-2.0
// Storages that other streams than their own use (Tensor.record_stream): freed once those streams have got so far.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

namespace flagos::client {

class Session;

// Guarded by the session's lock, which callers hold.
class LateFrees {
 public:
  // The storage is used by the stream slot, which may be another device's than the storage.
  void note(uint32_t handle, uint16_t stream, uint8_t device);
  // The storage's owner has let it go. True: it is kept until the streams noted have done what they were given so far.
  bool defer(Session& session, uint32_t handle) noexcept { return !noted_.empty() && defer_noted(session, handle); }
  bool any() const { return !waiting_.empty(); }
  // Frees those whose streams are done.
  void collect(Session& session) noexcept;
  // The same up to the first whose streams are not: what waits longest is mostly done first, and this costs the same
  // however many wait.
  void collect_oldest(Session& session) noexcept;
  // What the waiting ones wait for: stream slots and sequences, oldest first.
  std::vector<std::pair<uint16_t, uint64_t>> pending() const;

 private:
  struct Use {
    uint16_t stream;
    uint8_t device;  // the stream's
    bool operator==(const Use&) const = default;
  };
  struct Waiting {
    uint32_t handle;
    std::vector<std::pair<uint16_t, uint64_t>> until;  // stream slot and sequence
  };
  static bool done(Session& session, const Waiting& waiting);
  bool defer_noted(Session& session, uint32_t handle) noexcept;

  std::unordered_map<uint32_t, std::vector<Use>> noted_;
  std::deque<Waiting> waiting_;  // in the order in which their owners let them go
};

}  // namespace flagos::client
