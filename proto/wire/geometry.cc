// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "proto/wire/signature.h"

namespace flagos {
namespace {

constexpr uint64_t kMaxExtent = kMaxElements;

// total += a * b, or false where the sum exceeds kMaxExtent.
bool AddProduct(uint64_t& total, uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(total, product, &total) &&
         total <= kMaxExtent;
}

// required_bytes with overflow told: false where the extent does not fit.
bool Extent(const Geometry& geometry, uint64_t& bytes) {
  auto last = static_cast<uint64_t>(geometry.offset);
  bool empty = false;
  for (size_t i = 0; i < geometry.sizes.size(); ++i) {
    const auto size = static_cast<uint64_t>(geometry.sizes[i]);
    if (size == 0) {
      empty = true;
    } else if (!AddProduct(last, size - 1, static_cast<uint64_t>(geometry.strides[i]))) {
      return false;
    }
  }
  uint64_t total = 0;
  if (!AddProduct(total, last + 1, ElementSize(geometry.dtype))) return false;
  bytes = empty ? 0 : total;
  return true;
}

// The number of elements fits too: with zero strides the extent says nothing about it.
bool CountFits(const Geometry& geometry) {
  uint64_t count = 1;
  for (const int64_t size : geometry.sizes) {
    if (size == 0) return true;
    uint64_t next = 0;
    if (!AddProduct(next, count, static_cast<uint64_t>(size))) return false;
    count = next;
  }
  return true;
}

}  // namespace

int64_t Geometry::numel() const {
  int64_t count = 1;
  for (const int64_t size : sizes) {
    if (size == 0) return 0;
    count *= size;
  }
  return count;
}

uint64_t Geometry::required_bytes() const {
  uint64_t bytes = 0;
  return Extent(*this, bytes) ? bytes : std::numeric_limits<uint64_t>::max();
}

void EncodeGeometry(ByteWriter& out, const Geometry& geometry) {
  EncodeGeometry(out, geometry.dtype, geometry.flags, geometry.device, geometry.offset, geometry.sizes,
                 geometry.strides);
}

bool DecodeGeometry(ByteReader& in, Geometry& geometry) {
  const auto dtype = in.get<uint8_t>();
  geometry.flags = in.get<uint8_t>();
  geometry.device = in.get<uint8_t>();
  const auto dimensions = in.get<uint8_t>();
  geometry.offset = in.get<int64_t>();
  if (!in.ok() || dtype == 0 || dtype >= kDTypeCount || dimensions > kMaxDimensions || geometry.offset < 0 ||
      geometry.device >= kMaxDevices || (geometry.flags & ~kTensorFlagMask) != 0) {
    in.fail();
    return false;
  }
  geometry.dtype = static_cast<DType>(dtype);
  geometry.sizes.resize(dimensions);
  geometry.strides.resize(dimensions);
  bool valid = true;
  for (auto* values : {&geometry.sizes, &geometry.strides}) {
    for (int64_t& value : *values) {
      value = in.get<int64_t>();
      valid = valid && value >= 0;
    }
  }
  uint64_t bytes = 0;
  if (!in.ok() || !valid || !CountFits(geometry) || !Extent(geometry, bytes)) {
    in.fail();
    return false;
  }
  return true;
}

}  // namespace flagos
