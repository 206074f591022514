// SPDX-License-Identifier: Apache-2.0
#include "client/forward/host_operand.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstring>

#include "client/forward/tensor_wire.h"
#include "client/session.h"

namespace flagos::client {
namespace {

// The tensor's elements in order, conjugation and negation done.
at::Tensor Materialized(c10::TensorImpl* impl) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const auto tensor = at::Tensor(c10::intrusive_ptr<c10::TensorImpl>::reclaim_copy(impl));
  return tensor.resolve_conj().resolve_neg().contiguous();
}

void PutFreeBytes(CallBuffer& buffer, const void* data, size_t size) {
  std::byte* const at = buffer.free_bytes.extend(AlignUp8(size));
  std::memset(at + size, 0, AlignUp8(size) - size);
  std::memcpy(at, data, size);
}

}  // namespace

bool EncodeHostOperand(c10::TensorImpl* impl, CallBuffer& buffer) {
  const at::Tensor tensor = Materialized(impl);
  const size_t bytes = tensor.nbytes();
  const ArgTag tag = tensor.dim() == 0       ? ArgTag::kHostScalar
                     : bytes <= kInlineBytes ? ArgTag::kInlineTensor
                                             : ArgTag::kHostTensor;
  const uint8_t flags = impl->is_wrapped_number() ? kTensorWrappedNumber : 0;
  if (!PutGeometry(buffer.signature, tag, ToWire(tensor.scalar_type()), flags, 0, 0, tensor.sizes(),
                   tensor.strides())) {
    return false;
  }
  if (tag != ArgTag::kHostTensor) {
    PutFreeBytes(buffer, tensor.const_data_ptr(), bytes);
    return true;
  }
  Session& session = Session::Get();
  if (!buffer.host) buffer.host = std::make_unique<HostBlocks>(session.arena());
  std::byte* const block = session.allocate_arena(bytes);
  buffer.host->add(block);
  std::memcpy(block, tensor.const_data_ptr(), bytes);
  Cursor(buffer.free_bytes.extend(sizeof(ArenaRange))).put(session.arena().range_of(block, bytes).value());
  return true;
}

bool LiesInArena(const c10::TensorImpl& impl) {
  return impl.has_storage() && Session::Get().arena().contains(impl.data());
}

bool EncodeSharedOperand(const c10::TensorImpl& impl, CallBuffer& buffer) {
  const size_t bytes = at::detail::computeStorageNbytes(impl.sizes(), impl.strides(), impl.itemsize());
  const auto range = Session::Get().arena().range_of(impl.data(), std::max<size_t>(bytes, 1));
  TORCH_INTERNAL_ASSERT(range, "a host tensor leaves its block of the arena");
  if (!PutGeometry(buffer.signature, ArgTag::kHostTensor, ToWire(impl.dtype().toScalarType()), WireFlags(impl), 0, 0,
                   impl.sizes(), impl.strides())) {
    return false;
  }
  Cursor(buffer.free_bytes.extend(sizeof(ArenaRange))).put(*range);
  return true;
}

}  // namespace flagos::client
