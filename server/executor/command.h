// SPDX-License-Identifier: Apache-2.0
// A record that was found well-formed.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "proto/shm/ring.h"
#include "proto/wire/records.h"
#include "server/executor/signature_table.h"
#include "vendors/interface/vendor.h"

namespace flagos::executor {

// A view of a Record, valid as long as it. Numbers are within proto/wire/types.h's bounds, the device is one of the
// session, the stream is defined where the kind has one, and the body has the size that its kind demands.
struct Command {
  RecordKind kind = RecordKind::kInvalid;
  uint16_t stream = 0;
  uint8_t device = 0;
  bool sync = false;
  bool notify = false;
  uint32_t subject = 0;
  uint32_t slot = 0;  // of the answer, where `sync`
  uint64_t sequence = 0;
  std::span<const std::byte> body;  // the payload behind the ReplyTarget
};

// Decides what is well-formed: the one place that trusts nothing. For the dispatch thread alone.
class CommandChecker {
 public:
  // REQUIRES 0 < device_count <= kMaxDevices. The devices' default streams exist from the start.
  explicit CommandChecker(uint32_t device_count);

  // Both return what is wrong, or nullptr and the checked form. Even where something is wrong with a SYNC record,
  // `command.sync` tells whether its `slot` can be answered.
  const char* check(const Record& record, Command& command) const;
  // REQUIRES a kCall that check() accepted. `shape` is its signature's.
  const char* check_call(const Command& command, vendor::Call& call, const CallShape*& shape) const;

  // REQUIRES stream < kMaxStreams.
  void define_stream(uint16_t stream, uint8_t device) { stream_device_[stream] = device; }
  SignatureTable& signatures() { return signatures_; }
  uint32_t device_count() const { return device_count_; }

 private:
  static constexpr uint8_t kUndefined = 0xff;

  const char* check_stream(const RecordHeader& header) const;

  const uint32_t device_count_;
  SignatureTable signatures_;
  std::array<uint8_t, kMaxStreams> stream_device_;
};

}  // namespace flagos::executor
