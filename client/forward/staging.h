// SPDX-License-Identifier: Apache-2.0
// Host memory of the arena through which copies go.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/DimVector.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

#include "client/forward/call.h"
#include "client/session.h"

namespace flagos::client {

// Large copies go in pieces of this many bytes, a few of which are under way at a time: enough to keep both sides busy,
// few enough to stay in the processor's caches and not to fill the arena.
// Less where the arena is small.
inline constexpr size_t kPieceBytes = 4u << 20;
inline constexpr size_t kPiecesUnderWay = 4;
inline size_t PieceBytes(const Session& session) {
  return std::min(kPieceBytes, session.connection().arena.size() / (2 * kPiecesUnderWay));
}

// A block of the arena for one piece, and the CPU tensor that it is. Goes back to the arena when this ends, once the
// executor is done with it.
class StagedTensor {
 public:
  // Waits for room where the executor still holds some, and throws where that does not help.
  StagedTensor(Session& session, c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype);
  // Nullopt where there is no room at once.
  static std::optional<StagedTensor> Try(Session& session, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                                         c10::ScalarType dtype);
  ~StagedTensor() {
    if (block_ != nullptr) session_->arena().free(block_);
  }
  StagedTensor(StagedTensor&& other) noexcept
      : session_(other.session_), block_(std::exchange(other.block_, nullptr)), tensor_(std::move(other.tensor_)) {}
  StagedTensor& operator=(StagedTensor&&) = delete;

  const at::Tensor& tensor() const { return tensor_; }
  // The executor uses the block until that call is complete.
  void hold_until(CallPlace place) { session_->arena().hold_until(block_, place.stream, place.sequence); }

 private:
  StagedTensor(Session& session, std::byte* block, c10::IntArrayRef sizes, c10::IntArrayRef strides,
               c10::ScalarType dtype);

  Session* session_;
  std::byte* block_;
  at::Tensor tensor_;
};

// Sizes and strides under which the tensor's elements lie one after the other: its own strides where it is dense.
c10::DimVector DenseStrides(const at::Tensor& tensor);

// Without the repetitions that expand() makes (a stride of 0): what has to cross.
at::Tensor WithoutRepetition(at::Tensor tensor);

// Copies between CPU tensors of equal sizes and data type.
void CopyOnHost(const at::Tensor& to, const at::Tensor& from);

// Calls `piece` for parts of both tensors, at most `most` bytes each where that is possible, which together are the
// whole. REQUIRES equal sizes. `bytes`: of an element as it is staged.
void ForEachPiece(const at::Tensor& to, const at::Tensor& from, size_t bytes, size_t most,
                  const std::function<void(const at::Tensor& to, const at::Tensor& from)>& piece);

}  // namespace flagos::client
