// SPDX-License-Identifier: Apache-2.0
#include "client/forward/sparse_results.h"

#include <algorithm>

#include "client/forward/results.h"
#include "client/forward/sparse.h"
#include "client/forward/types.h"

namespace flagos::client {
namespace {

at::Tensor Hold(c10::TensorImpl* impl) { return at::Tensor(c10::intrusive_ptr<c10::TensorImpl>::reclaim_copy(impl)); }

// An alias of a whole input is that input.
bool IsWhole(const c10::TensorImpl& input, const Geometry& geometry) {
  return input.dtype() == c10::scalarTypeToTypeMeta(FromWire(geometry.dtype)) && input.sizes() == geometry.sizes &&
         input.strides() == geometry.strides && input.storage_offset() == geometry.offset && geometry.flags == 0 &&
         !input.is_conj() && !input.is_neg();
}

// Those of `old` that are still what they were stay the tensors that they are.
Components MakeComponents(const CallBuffer& buffer, const Output& output, const Components& old,
                          ResultHandles& handles) {
  Components components;
  for (const Output& component : output.list) {
    const auto kept = std::ranges::find_if(old, [&](const at::Tensor& tensor) {
      return component.tag == OutputTag::kAlias && tensor.unsafeGetTensorImpl() == buffer.tensors[component.alias] &&
             IsWhole(*tensor.unsafeGetTensorImpl(), component.geometry);
    });
    components.push_back(kept != old.end() ? *kept : MakeTensor(buffer, component, handles));
  }
  return components;
}

bool IsUnchanged(const c10::TensorImpl& impl, const SparseShape& shape, const Components& old,
                 const Components& components) {
  const auto same = [](const at::Tensor& a, const at::Tensor& b) { return a.is_same(b); };
  return impl.sizes() == shape.sizes && IsCoalesced(impl) == shape.coalesced &&
         std::ranges::equal(old, components, same);
}

}  // namespace

bool FitsWrittenSparse(const CallBuffer& buffer, const Outcome& outcome, size_t first) {
  for (const SparseOperand& operand : buffer.sparse.span()) {
    if (!operand.written) continue;
    if (first == outcome.outputs.size()) return false;
    const Output& output = outcome.outputs[first++];
    const auto exists = [&](const Output& part) {
      return part.tag != OutputTag::kAlias || part.alias < buffer.tensors.size();
    };
    if (output.tag != OutputTag::kSparse || output.sparse.layout != ToWire(operand.impl->layout()) ||
        output.sparse.dtype != ToWire(operand.impl->dtype().toScalarType()) ||
        !std::ranges::all_of(output.list, exists)) {
      return false;
    }
  }
  return first == outcome.outputs.size();
}

at::Tensor MakeSparseResult(const CallBuffer& buffer, const Output& output, ResultHandles& handles) {
  return MakeSparse(output.sparse, MakeComponents(buffer, output, {}, handles));
}

WrittenSparse::WrittenSparse(const CallBuffer& buffer) {
  for (const SparseOperand& operand : buffer.sparse.span()) kept_.push_back(Hold(operand.impl));
  for (c10::TensorImpl* const impl : buffer.tensors.span()) kept_.push_back(Hold(impl));
}

void WrittenSparse::update(const CallBuffer& buffer, const Outcome& outcome, ResultHandles& handles) const {
  const auto written = std::ranges::count_if(buffer.sparse.span(), &SparseOperand::written);
  auto output = outcome.outputs.end() - written;
  for (const SparseOperand& operand : buffer.sparse.span()) {
    if (!operand.written) continue;
    const Components old = ComponentsOf(*operand.impl);
    const Components components = MakeComponents(buffer, *output, old, handles);
    // A detached tensor must not change its structure, so nothing is set that is there already.
    if (!IsUnchanged(*operand.impl, output->sparse, old, components))
      ReplaceComponents(*operand.impl, output->sparse, components);
    ++output;
  }
}

}  // namespace flagos::client
