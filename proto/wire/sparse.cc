// SPDX-License-Identifier: Apache-2.0
#include "proto/wire/signature.h"

namespace flagos {
namespace {

constexpr uint8_t kCoalesced = 1;

bool CountFits(const std::vector<int64_t>& sizes) {
  int64_t count = 1;
  bool fits = true;
  for (const int64_t size : sizes) {
    if (size == 0) return true;
    fits = fits && !__builtin_mul_overflow(count, size, &count) && count <= kMaxElements;
  }
  return fits;
}

bool DimensionsFit(const SparseShape& shape) {
  const size_t known = size_t{shape.sparse_dim} + shape.dense_dim;
  if (shape.layout == Layout::kSparse) return known == shape.sizes.size();
  constexpr uint8_t kCompressedDimensions = 2;
  return shape.sparse_dim == kCompressedDimensions && known <= shape.sizes.size();  // the others are batches
}

}  // namespace

void EncodeSparseShape(ByteWriter& out, const SparseShape& shape) {
  out.put(static_cast<uint8_t>(shape.layout));
  out.put(static_cast<uint8_t>(shape.dtype));
  out.put(shape.coalesced ? kCoalesced : uint8_t{0});
  out.put(shape.sparse_dim);
  out.put(shape.dense_dim);
  out.put(static_cast<uint8_t>(shape.sizes.size()));
  out.append(shape.sizes.data(), shape.sizes.size() * sizeof(int64_t));
}

bool DecodeSparseShape(ByteReader& in, SparseShape& shape) {
  const auto layout = in.get<uint8_t>();
  const auto dtype = in.get<uint8_t>();
  const auto flags = in.get<uint8_t>();
  shape.sparse_dim = in.get<uint8_t>();
  shape.dense_dim = in.get<uint8_t>();
  const auto dimensions = in.get<uint8_t>();
  if (!in.ok() || layout >= kLayoutCount || dtype == 0 || dtype >= kDTypeCount || dimensions > kMaxDimensions ||
      (flags & ~kCoalesced) != 0) {
    in.fail();
    return false;
  }
  shape.layout = static_cast<Layout>(layout);
  shape.dtype = static_cast<DType>(dtype);
  shape.coalesced = flags == kCoalesced;
  shape.sizes.resize(dimensions);
  bool valid = SparseComponents(shape.layout) != 0 && (!shape.coalesced || shape.layout == Layout::kSparse);
  for (int64_t& size : shape.sizes) {
    size = in.get<int64_t>();
    valid = valid && size >= 0;
  }
  if (!in.ok() || !valid || !DimensionsFit(shape) || !CountFits(shape.sizes)) {
    in.fail();
    return false;
  }
  return true;
}

}  // namespace flagos
