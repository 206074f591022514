// SPDX-License-Identifier: Apache-2.0
#include "server/executor/command.h"

#include <cstring>
#include <limits>

namespace flagos::executor {
namespace {

enum class StreamRule : uint8_t { kNone, kDefined, kDefinedOrAll, kNew };

// What a kind demands of its records.
struct KindRule {
  bool known = false;
  bool must_sync = false;  // the answer is all that the record is for
  StreamRule stream = StreamRule::kNone;
  uint32_t subjects = 1;  // subject < subjects
  uint32_t min_body = 0;
  uint32_t max_body = 0;
};

constexpr uint32_t kAnySize = std::numeric_limits<uint32_t>::max();
constexpr size_t kKinds = static_cast<size_t>(RecordKind::kImportMemory) + 1;

constexpr std::array<KindRule, kKinds> MakeRules() {
  using enum RecordKind;
  using enum StreamRule;
  std::array<KindRule, kKinds> rules{};
  const auto set = [&](RecordKind kind, KindRule rule) {
    rule.known = true;
    rules[static_cast<size_t>(kind)] = rule;
  };
  constexpr bool kSync = true, kEither = false;
  set(kClose, {});
  set(kListOperators, {{}, kSync});
  set(kQueryOperator, {{}, kSync, kNone, 1, 4, kAnySize});
  set(kListKernels, {{}, kSync});
  set(kQueryKernel, {{}, kSync, kNone, kMaxSignatures});
  set(kKernelFigures, {{}, kSync});
  set(kDefineOperator, {{}, kEither, kNone, kMaxOperators, 0, kAnySize});
  set(kDefineContext, {{}, kEither, kNone, kMaxContexts, 0, kAnySize});
  set(kDefineSignature, {{}, kEither, kNone, kMaxSignatures, 0, kAnySize});
  set(kDropSignature, {{}, kEither, kNone, kMaxSignatures});
  set(kCall, {{}, kEither, kDefined, kMaxSignatures, sizeof(CallHeader), kAnySize});
  set(kAllocate, {{}, kEither, kDefined, kMaxHandle + 1, 8, 8});
  set(kFree, {{}, kEither, kDefined, kMaxHandle + 1});
  set(kMemoryStats, {{}, kSync, kNone, 2});
  set(kEmptyCache, {});
  set(kCreateStream, {{}, kEither, kNew, 1, 8, 8});
  set(kFence, {{}, kEither, kDefinedOrAll});
  set(kRecordEvent, {{}, kEither, kDefined, kMaxEvents, 8, 8});
  set(kWaitEvent, {{}, kEither, kDefined, kMaxEvents});
  set(kDestroyEvent, {{}, kEither, kNone, kMaxEvents});
  set(kElapsedTime, {{}, kSync, kNone, kMaxEvents, 8, 8});
  set(kCreateGenerator, {{}, kEither, kNone, kMaxGenerators});
  set(kDestroyGenerator, {{}, kEither, kNone, kMaxGenerators});
  set(kSeedGenerator, {{}, kEither, kNone, kMaxGenerators, 8, 8});
  set(kGetGeneratorState, {{}, kSync, kNone, kMaxGenerators});
  set(kSetGeneratorState, {{}, kSync, kNone, kMaxGenerators, 0, kAnySize});
  set(kExportMemory, {{}, kSync, kDefined, kMaxHandle + 1});
  set(kImportMemory, {{}, kSync, kDefined, kMaxHandle + 1, sizeof(ImportRequest), sizeof(ImportRequest)});
  return rules;
}

constexpr std::array<KindRule, kKinds> kRules = MakeRules();

}  // namespace

CommandChecker::CommandChecker(uint32_t device_count) : device_count_(device_count) {
  stream_device_.fill(kUndefined);
  for (uint32_t device = 0; device < device_count; ++device) stream_device_[device] = static_cast<uint8_t>(device);
}

const char* CommandChecker::check_stream(const RecordHeader& header) const {
  if (header.stream >= kMaxStreams || stream_device_[header.stream] != header.device) {
    return "its stream does not exist on its device";
  }
  return nullptr;
}

const char* CommandChecker::check(const Record& record, Command& command) const {
  const RecordHeader& header = record.header;
  command.kind = static_cast<RecordKind>(header.kind);
  command.stream = header.stream;
  command.device = header.device;
  command.subject = header.subject;
  command.sequence = record.sequence;
  command.body = record.payload;
  command.sync = command.notify = false;

  if ((header.flags & kFlagSync) != 0) {
    ReplyTarget target{};
    if (record.payload.size() < sizeof target) return "it wants an answer but does not say where";
    std::memcpy(&target, record.payload.data(), sizeof target);
    if (target.slot >= kReplySlotCount) return "it wants its answer where no reply slot is";
    if (target.reserved != 0) return "the reserved field of its reply target is not zero";
    command.slot = target.slot;
    command.sync = true;
    command.body = record.payload.subspan(sizeof target);
  }
  if (header.kind >= kKinds || !kRules[header.kind].known) return "its kind is unknown";
  const KindRule& rule = kRules[header.kind];
  if ((header.flags & ~kFlagMask) != 0) return "it has flags that are unknown";
  if (header.reserved != 0) return "the reserved field of its header is not zero";
  if (header.device >= device_count_) return "its device is none of the session";
  if (header.subject >= rule.subjects) return "its subject is out of bounds";
  if (command.body.size() < rule.min_body || command.body.size() > rule.max_body) {
    return "its size is not that of its kind";
  }
  if (rule.must_sync && !command.sync) return "it asks without a place for the answer";
  command.notify = (header.flags & kFlagNotify) != 0;
  switch (rule.stream) {
    case StreamRule::kNone: return command.notify ? check_stream(header) : nullptr;
    case StreamRule::kDefined: return check_stream(header);
    case StreamRule::kDefinedOrAll: return header.stream == kAllStreams ? nullptr : check_stream(header);
    case StreamRule::kNew:
      if (header.stream < kMaxDevices || header.stream >= kMaxStreams || stream_device_[header.stream] != kUndefined) {
        return "it creates a stream where there can be none, or is one already";
      }
      return nullptr;
  }
  return nullptr;
}

const char* CommandChecker::check_call(const Command& command, vendor::Call& call, const CallShape*& shape) const {
  shape = signatures_.find(command.subject);
  if (shape == nullptr) return "it calls a signature that is not defined";
  CallHeader header{};
  std::memcpy(&header, command.body.data(), sizeof header);
  const size_t handles = size_t{header.inputs} + header.outputs;
  const size_t handle_bytes = AlignUp8(handles * sizeof(uint32_t));
  if (command.body.size() != sizeof header + handle_bytes + header.free_bytes) {
    return "its counts do not add up to its size";
  }
  if (header.inputs != shape->inputs || header.free_bytes != shape->free_bytes) {
    return "its inputs or free values are not those of its signature";
  }
  if (header.outputs < shape->min_outputs || header.outputs > shape->max_outputs) {
    return "its outputs are not those of its signature";
  }
  // The record's copy is aligned to 8 bytes.
  const auto* const first = reinterpret_cast<const uint32_t*>(command.body.data() + sizeof header);
  static_assert((kMaxHandle & (kMaxHandle + 1)) == 0, "or of all handles tells whether one is too large");
  uint32_t all = 0;
  for (size_t i = 0; i < handles; ++i) all |= first[i];
  if (all > kMaxHandle) return "a handle is out of bounds";
  call.signature = command.subject;
  call.inputs = {first, header.inputs};
  call.outputs = {first + header.inputs, header.outputs};
  call.free_bytes = command.body.subspan(sizeof header + handle_bytes);
  call.sequence = command.sequence;
  call.stream = command.stream;
  call.device = command.device;
  return nullptr;
}

}  // namespace flagos::executor
