// SPDX-License-Identifier: Apache-2.0
// The parts of one call on their way into the ring. Reused by its thread, so that a steady caller allocates nothing.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "client/arena.h"
#include "client/forward/scratch.h"

namespace flagos::client {

// Arena blocks that hold host operands of one call. They go back to the arena when this ends, or, where the executor
// was told of them, once it is done with them.
class HostBlocks {
 public:
  explicit HostBlocks(Arena& arena) : arena_(arena) {}
  ~HostBlocks() {
    for (std::byte* const block : blocks_) arena_.free(block);
  }
  HostBlocks(const HostBlocks&) = delete;
  HostBlocks& operator=(const HostBlocks&) = delete;

  void add(std::byte* block) { blocks_.push_back(block); }
  bool empty() const { return blocks_.empty(); }
  void hold_until(uint16_t stream, uint64_t sequence) {
    for (const std::byte* const block : blocks_) arena_.hold_until(block, stream, sequence);
  }

 private:
  Arena& arena_;
  std::vector<std::byte*> blocks_;
};

// A sparse argument. Its components are inputs of the call like other tensors.
struct SparseOperand {
  c10::TensorImpl* impl;
  bool written;  // the call may give it other components
};

struct CallBuffer {
  Scratch<std::byte> signature;       // proto/wire/signature.h, without a predicted outcome
  Scratch<uint32_t> inputs;           // handles
  Scratch<c10::TensorImpl*> tensors;  // the tensor of each handle; the caller's stack owns it
  uint64_t written = 0;               // bit i: the call writes to tensor i, of the first 64
  Scratch<SparseOperand> sparse;
  bool same = false;       // an out= argument is an operand too: the same tensor
  bool covered = false;    // one lies on the bytes of an operand: another tensor
  uint64_t host_read = 0;  // bytes of host tensors that the call reads, and that it writes
  uint64_t host_written = 0;
  Scratch<std::byte> free_bytes;
  std::unique_ptr<HostBlocks> host;  // null: no operand lies in the arena
  int16_t device = -1;               // index; -1: no operand on a device

  void clear() {
    signature.clear();
    inputs.clear();
    tensors.clear();
    written = 0;
    sparse.clear();
    same = false;
    covered = false;
    host_read = host_written = 0;
    free_bytes.clear();
    host.reset();
    device = -1;
  }
};

// The thread's buffer for the time of one call; a call within a call (a host operand that is made ready) gets its own.
class CallBufferLease {
 public:
  CallBufferLease() : pool_(thread_pool()) {
    if (pool_.depth == pool_.buffers.size()) [[unlikely]]
      pool_.buffers.push_back(std::make_unique<CallBuffer>());
    buffer_ = pool_.buffers[pool_.depth++].get();
    buffer_->clear();
  }
  ~CallBufferLease() {
    buffer_->host.reset();
    --pool_.depth;
  }
  CallBufferLease(const CallBufferLease&) = delete;
  CallBufferLease& operator=(const CallBufferLease&) = delete;
  CallBuffer& operator*() { return *buffer_; }

 private:
  struct Pool {
    std::vector<std::unique_ptr<CallBuffer>> buffers;
    size_t depth = 0;
  };
  // Found through a pointer that needs no guard: one look at the thread's memory a call.
  static Pool& thread_pool() {
    static thread_local constinit Pool* known = nullptr;
    if (known == nullptr) [[unlikely]]
      known = &MakeThreadPool();
    return *known;
  }
  [[gnu::noinline]] static Pool& MakeThreadPool() {
    thread_local Pool pool;
    return pool;
  }

  Pool& pool_;
  CallBuffer* buffer_;
};

}  // namespace flagos::client
