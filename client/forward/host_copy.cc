// SPDX-License-Identifier: Apache-2.0
#include "client/forward/host_copy.h"

#include <deque>
#include <utility>

#include "client/forward/host_operand.h"
#include "client/forward/staging.h"

namespace flagos::client {
namespace {

CallPlace CallCopy(const at::Tensor& to, const at::Tensor& from, CallOptions options) {
  static Operator& copy = Operator::Find("aten::copy_");
  // The executor never waits for the device in a copy: who needs the bytes waits for the call.
  torch::jit::Stack stack{to, from, /*non_blocking=*/true};
  return Call(copy, stack, options);
}

// One side lies in the arena already.
void CopyInPlace(Session& session, const at::Tensor& host, const at::Tensor& to, const at::Tensor& from,
                 bool non_blocking) {
  const CallPlace place = CallCopy(to, from, {.synchronous = !non_blocking, .notify = non_blocking});
  if (non_blocking) session.arena().hold_until(host.const_data_ptr(), place.stream, place.sequence);
}

// By one call, which is waited for. REQUIRES equal sizes.
void CopyWhole(Session& session, const at::Tensor& to, const at::Tensor& from) {
  const StagedTensor staged(session, from.sizes(), DenseStrides(to), to.scalar_type());
  CallCopy(staged.tensor(), from, {.synchronous = true});
  CopyOnHost(to, staged.tensor());
}

// Pieces on their way to the host, a few at a time.
class PiecesToHost {
 public:
  explicit PiecesToHost(Session& session) : session_(session) {}

  void copy(const at::Tensor& to, const at::Tensor& from) {
    if (under_way_.size() == kPiecesUnderWay) finish_oldest();
    StagedTensor staged = stage(to, from);
    const CallPlace place = CallCopy(staged.tensor(), from, {.notify = true});
    staged.hold_until(place);
    under_way_.push_back({to, std::move(staged), place});
  }
  void finish() {
    while (!under_way_.empty()) finish_oldest();
  }

 private:
  struct Piece {
    at::Tensor to;
    StagedTensor staged;
    CallPlace place;
  };

  // Where the arena is full of our own pieces, one of them has to be done before the next.
  StagedTensor stage(const at::Tensor& to, const at::Tensor& from) {
    const c10::DimVector strides = DenseStrides(to);
    for (; !under_way_.empty(); finish_oldest()) {
      if (auto staged = StagedTensor::Try(session_, from.sizes(), strides, to.scalar_type())) return *std::move(staged);
    }
    return {session_, from.sizes(), strides, to.scalar_type()};
  }
  void finish_oldest() {
    const Piece& oldest = under_way_.front();
    session_.wait_complete(oldest.place.stream, oldest.place.device, oldest.place.sequence);
    CopyOnHost(oldest.to, oldest.staged.tensor());
    under_way_.pop_front();
  }

  Session& session_;
  std::deque<Piece> under_way_;
};

// REQUIRES equal sizes.
void CopyPiecesToHost(Session& session, const at::Tensor& to, const at::Tensor& from) {
  const size_t most = PieceBytes(session);
  const uint64_t failures = session.page().failures.load(std::memory_order_acquire);
  PiecesToHost pieces(session);
  ForEachPiece(to, from, to.element_size(), most,
               [&](const at::Tensor& to_piece, const at::Tensor& from_piece) { pieces.copy(to_piece, from_piece); });
  pieces.finish();
  if (session.page().failures.load(std::memory_order_acquire) == failures) return;
  // Something failed meanwhile, and another thread may have been told instead of this one. Each piece is asked for by
  // itself: if it was ours, its own answer says so.
  ForEachPiece(to, from, to.element_size(), most, [&](const at::Tensor& to_piece, const at::Tensor& from_piece) {
    CopyWhole(session, to_piece, from_piece);
  });
}

}  // namespace

void CopyToDevice(const at::Tensor& to, const at::Tensor& source, bool non_blocking) {
  Session& session = Session::Get();
  at::Tensor from = source.resolve_conj().resolve_neg();
  if (session.arena().contains(from.const_data_ptr())) return CopyInPlace(session, from, to, from, non_blocking);
  from = WithoutRepetition(std::move(from));
  if (from.nbytes() <= kInlineBytes) {
    CallCopy(to, from, {});
    return;
  }
  std::deque<CallPlace> under_way;
  const auto piece = [&](const at::Tensor& to_piece, const at::Tensor& from_piece) {
    if (under_way.size() == kPiecesUnderWay) {
      session.wait_complete(under_way.front().stream, under_way.front().device, under_way.front().sequence);
      under_way.pop_front();
    }
    StagedTensor staged(session, from_piece.sizes(), DenseStrides(from_piece), from_piece.scalar_type());
    CopyOnHost(staged.tensor(), from_piece);
    const CallPlace place = CallCopy(to_piece, staged.tensor(), {.notify = true});
    staged.hold_until(place);
    under_way.push_back(place);
  };
  const size_t most = PieceBytes(session);
  if (from.nbytes() <= most) return piece(to, from);
  ForEachPiece(to, from.expand(to.sizes()), from.element_size(), most, piece);
}

void CopyToHost(const at::Tensor& to, const at::Tensor& source, bool non_blocking) {
  Session& session = Session::Get();
  if (to.is_conj() || to.is_neg()) {
    const at::Tensor plain = at::empty_strided(to.sizes(), DenseStrides(to), to.options());
    CopyToHost(plain, source, false);
    to.copy_(plain);
    return;
  }
  if (session.arena().contains(to.const_data_ptr())) return CopyInPlace(session, to, to, source, non_blocking);

  const at::Tensor from = WithoutRepetition(source);
  if (static_cast<size_t>(from.numel()) * to.element_size() > PieceBytes(session))
    return CopyPiecesToHost(session, to, source.expand(to.sizes()));
  if (from.sizes() == to.sizes()) return CopyWhole(session, to, from);
  const StagedTensor staged(session, from.sizes(), DenseStrides(from), to.scalar_type());
  CallCopy(staged.tensor(), from, {.synchronous = true});
  to.copy_(staged.tensor());
}

}  // namespace flagos::client
