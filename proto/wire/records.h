// SPDX-License-Identifier: Apache-2.0
// Command records: what a client writes into the ring and an executor carries out, in order. README.md lists them all.
#pragma once

#include <cstddef>
#include <cstdint>

#include "proto/wire/types.h"

namespace flagos {

inline constexpr uint16_t kProtocolVersionMin = 1;  // oldest version that this build speaks
inline constexpr uint16_t kProtocolVersionMax = 1;  // newest

// Kinds are numbered in ranges; README.md says which ranges are kept free and for what.
enum class RecordKind : uint16_t {
  kInvalid = 0,
  // 1-15: session
  kPad = 1,            // skip to the start of the ring; not counted as a record
  kClose = 2,          // the client ends the session in order
  kListOperators = 3,  // SYNC. Reply: names of operators (EncodeOperatorList, definitions.h)
  kQueryOperator = 4,  // SYNC. Payload: u32 length + "namespace::name.overload". Reply: u8 known
  // These look on and are no synchronising point: an earlier failure is not told by them.
  kListKernels = 5,    // SYNC. Reply: kernel libraries (EncodeKernelLibraries, kernels.h)
  kQueryKernel = 6,    // SYNC; subject: signature. Reply: string, the library that runs its calls; empty: not defined
  kKernelFigures = 7,  // SYNC. Reply: calls that libraries ran (EncodeKernelFigures, kernels.h)
  // 16-31: definitions
  kDefineOperator = 16,   // subject: operator. Payload: OperatorDefinition (definitions.h)
  kDefineContext = 17,    // subject: context. Payload: ContextState
  kDefineSignature = 18,  // subject: signature. Payload: signature.h
  kDropSignature = 19,    // subject: signature; the number may be defined again afterwards
  // 32-47: calls
  kCall = 32,  // subject: signature. Payload: CallHeader, inputs, outputs, free bytes
  // 48-63: memory
  kAllocate = 48,     // subject: handle. Payload: u64 bytes
  kFree = 49,         // subject: handle
  kMemoryStats = 50,  // SYNC; subject 1: peaks start again at what is live. Reply: MemoryStats as before that
  kEmptyCache = 51,   // give cached memory of the device back
  // 64-79: streams and events
  kCreateStream = 64,  // header.stream: the new slot. Payload: i32 priority, u32 zero
  kFence = 65,         // ordered after all of header.stream (kAllStreams: of the device); with NOTIFY and/or SYNC
  kRecordEvent = 66,   // subject: event, created by its first record. NOTIFY. Payload: u32 flags (1: timing), u32 zero
  kWaitEvent = 67,     // header.stream waits for the subject event as recorded so far
  kDestroyEvent = 68,  // subject: event
  kElapsedTime = 69,   // SYNC; subject: first event. Payload: u32 second event, u32 zero. Reply: f64 milliseconds
  // 80-95: random numbers
  kCreateGenerator = 80,    // subject: generator (numbers below kMaxDevices are the devices' default ones)
  kDestroyGenerator = 81,   // subject: generator
  kSeedGenerator = 82,      // subject: generator. Payload: u64 seed
  kGetGeneratorState = 83,  // SYNC; subject: generator. Reply: the state's bytes
  kSetGeneratorState = 84,  // subject: generator. Payload: the state's bytes; SYNC, so that a bad state is told
  // 144-159: memory that sessions share. Its descriptors go beside the ring (proto/socket/descriptors.h)
  kExportMemory = 144,  // SYNC; subject: handle. Reply: SharedStorage; its descriptor's ticket is the record's sequence
  kImportMemory = 145,  // SYNC; subject: handle, bound to the memory. Payload: ImportRequest
};

// RecordHeader::flags
inline constexpr uint8_t kFlagSync = 1;  // payload starts with ReplyTarget; the executor answers whatever happens
// When complete, the stream's completion word grows to this sequence (kAllStreams: the word of the device's default
// stream).
inline constexpr uint8_t kFlagNotify = 2;
inline constexpr uint8_t kFlagMask = kFlagSync | kFlagNotify;

// header.stream of a record that speaks of every stream of its device.
inline constexpr uint16_t kAllStreams = 0xffff;

// Every record starts with this. A record's 64-bit sequence number is its place in the session's order: the first
// record is 1, kPad is not counted; both sides count, so that a repeated step stays byte for byte the same.
struct RecordHeader {
  uint32_t size;      // bytes of header and payload, a multiple of 8
  uint16_t kind;      // RecordKind
  uint16_t stream;    // stream slot
  uint8_t device;     // device index in the session
  uint8_t flags;      // kFlag*
  uint16_t reserved;  // zero
  uint32_t subject;   // what the record is about: a signature, handle, event ...; zero if nothing
};
static_assert(sizeof(RecordHeader) == 16);

// A header without its size, which the ring writes.
constexpr RecordHeader MakeHeader(RecordKind kind, uint32_t subject = 0, uint16_t stream = 0, uint8_t device = 0,
                                  uint8_t flags = 0) {
  return {0, static_cast<uint16_t>(kind), stream, device, flags, 0, subject};
}

// Where a SYNC record wants its answer: a slot of the executor's region, claimed by the client until it has read it.
struct ReplyTarget {
  uint32_t slot;
  uint32_t reserved;  // zero
};
static_assert(sizeof(ReplyTarget) == 8);

// Payload of kCall after the ReplyTarget of a SYNC one. Then follow `inputs` handles (u32), `outputs` handles (u32),
// zero padding to a multiple of 8, and `free_bytes` bytes of free values in the order of the signature's arguments.
struct CallHeader {
  uint16_t inputs;
  uint16_t outputs;
  uint32_t free_bytes;  // a multiple of 8
};
static_assert(sizeof(CallHeader) == 8);

// PyTorch's global state that changes what a kernel does. A reader ignores bytes beyond those it knows and takes the
// default (zero) for those that are missing.
struct ContextState {
  uint8_t default_dtype;  // DType
  uint8_t deterministic_algorithms;
  uint8_t deterministic_warn_only;
  uint8_t deterministic_fill;
  uint8_t matmul_precision;         // 0 highest, 1 high, 2 medium
  uint8_t backend_flags;            // 1 allow_tf32 matmul, 2 allow_tf32 conv, 4 cudnn enabled, 8 benchmark,
                                    // 16 cudnn deterministic, 32 mkldnn enabled
  uint8_t sdp_flags;                // 1 flash, 2 memory-efficient, 4 math, 8 cudnn, 16 overrideable
  uint8_t reduced_precision_flags;  // 1 fp16 reduction, 2 bf16 reduction, 4 fp16 accumulation
  uint8_t warn_always;              // each time, also where the operator would warn once
  uint8_t reserved[7];              // zero

  bool operator==(const ContextState&) const = default;
};
static_assert(sizeof(ContextState) == 16);

struct MemoryStats {
  int64_t allocated_bytes, reserved_bytes, peak_allocated_bytes, peak_reserved_bytes;
  int64_t allocations, frees, device_allocations, device_frees, retries;
  int64_t total_bytes, free_bytes, quota_bytes;  // of the device as the session may see it
};
static_assert(sizeof(MemoryStats) == 96);

// A storage in memory that a descriptor names.
struct SharedStorage {
  uint64_t descriptor_bytes;  // of all that the descriptor names
  uint64_t offset;            // of the storage in it
  uint64_t bytes;             // of the storage
  uint64_t identity[2];       // of the memory: equal for two descriptors of the same, else different while either lives
};
static_assert(sizeof(SharedStorage) == 40);

// Payload of kImportMemory.
struct ImportRequest {
  uint64_t ticket;  // under which the descriptor was sent, before the record
  SharedStorage storage;
};
static_assert(sizeof(ImportRequest) == 48);

constexpr size_t AlignUp8(size_t size) { return (size + 7) & ~size_t{7}; }

// The kind's name for messages and logs; "unknown" for a number without one.
const char* RecordKindName(RecordKind kind);

}  // namespace flagos
