// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "proto/wire/signature.h"
#include "tests/unit/proto_bytes.h"

namespace flagos {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

Geometry Make(DType dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides, int64_t offset = 0) {
  return {dtype, 0, 0, offset, std::move(sizes), std::move(strides)};
}

bool Decodes(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  Geometry geometry;
  const bool good = DecodeGeometry(in, geometry);
  EXPECT_EQ(good, in.ok()) << "a refused geometry leaves the reader failed";
  return good;
}

bool Survives(const Geometry& geometry) {
  ByteWriter out;
  EncodeGeometry(out, geometry);
  ByteReader in(out.bytes());
  Geometry back;
  return DecodeGeometry(in, back) && in.done() && back == geometry;
}

TEST(Geometry, RoundTrips) {
  EXPECT_TRUE(Survives(Make(DType::kFloat32, {}, {})));
  EXPECT_TRUE(Survives(Make(DType::kBFloat16, {2, 3, 4}, {12, 4, 1}, 7)));
  EXPECT_TRUE(Survives(Make(DType::kInt64, {0, 5}, {5, 1})));
  EXPECT_TRUE(
      Survives(Make(DType::kUint64, std::vector<int64_t>(kMaxDimensions, 1), std::vector<int64_t>(kMaxDimensions, 0))));
  Geometry flagged = Make(DType::kComplex64, {3}, {1});
  flagged.flags = kTensorFlagMask;
  flagged.device = kMaxDevices - 1;
  EXPECT_TRUE(Survives(flagged));
}

TEST(Geometry, CountsElementsAndBytes) {
  EXPECT_EQ(Make(DType::kFloat32, {}, {}).numel(), 1);
  EXPECT_EQ(Make(DType::kFloat32, {}, {}).required_bytes(), 4u);
  EXPECT_EQ(Make(DType::kFloat32, {2, 3}, {3, 1}).required_bytes(), 24u);
  EXPECT_EQ(Make(DType::kFloat32, {2, 3}, {1, 2}, 10).required_bytes(), 64u) << "a transposed view behind an offset";
  EXPECT_EQ(Make(DType::kFloat64, {1000, 1000}, {0, 0}).required_bytes(), 8u) << "an expanded scalar";
  EXPECT_EQ(Make(DType::kFloat64, {1000, 0, 1000}, {1, 1, 1}).numel(), 0);
  EXPECT_EQ(Make(DType::kFloat64, {1000, 0, 1000}, {1, 1, 1}, 50).required_bytes(), 0u);
}

TEST(Geometry, RequiredBytesSaturateRatherThanOverflow) {
  EXPECT_EQ(Make(DType::kFloat64, {kLargest}, {kLargest}).required_bytes(), std::numeric_limits<uint64_t>::max());
}

TEST(Geometry, RefusesWhatDoesNotFit) {
  using testing::Bytes;
  const auto one = [](uint8_t dtype, uint8_t flags, uint8_t device, int64_t offset, int64_t size, int64_t stride) {
    return Bytes(dtype, flags, device, uint8_t{1}, offset, size, stride);
  };
  const auto float32 = static_cast<uint8_t>(DType::kFloat32);
  EXPECT_TRUE(Decodes(one(float32, 0, 0, 0, 4, 1)));
  EXPECT_FALSE(Decodes(one(0, 0, 0, 0, 4, 1))) << "undefined dtype";
  EXPECT_FALSE(Decodes(one(kDTypeCount, 0, 0, 0, 4, 1))) << "unknown dtype";
  EXPECT_FALSE(Decodes(one(float32, kTensorFlagMask + 1, 0, 0, 4, 1))) << "unknown flag";
  EXPECT_FALSE(Decodes(one(float32, 0, kMaxDevices, 0, 4, 1))) << "no such device";
  EXPECT_FALSE(Decodes(one(float32, 0, 0, -1, 4, 1))) << "negative offset";
  EXPECT_FALSE(Decodes(one(float32, 0, 0, 0, -1, 1))) << "negative size";
  EXPECT_FALSE(Decodes(one(float32, 0, 0, 0, 4, -1))) << "negative stride";
  EXPECT_FALSE(Decodes(one(float32, 0, 0, kLargest, 4, 1))) << "offset beyond 62 bits";
  EXPECT_FALSE(Decodes(one(float32, 0, 0, 0, 3, kLargest))) << "extent overflows";
  EXPECT_FALSE(Decodes(one(float32, 0, 0, 0, (int64_t{1} << 60) + 1, 1))) << "extent beyond 62 bits, in bytes only";
  EXPECT_FALSE(Decodes(one(float32, 0, 0, 0, kLargest, 0))) << "number of elements beyond 62 bits, in no memory";
}

TEST(Geometry, TheLargestExtentIsKept) {
  // 2^62 bytes of one-byte elements, and not one more.
  EXPECT_TRUE(Survives(Make(DType::kUint8, {int64_t{1} << 62}, {1})));
  EXPECT_FALSE(Survives(Make(DType::kUint8, {int64_t{1} << 62}, {1}, 1)));
}

TEST(Geometry, RefusesOverflowAcrossDimensions) {
  // Each factor is small; only their product is not.
  EXPECT_FALSE(Survives(Make(DType::kUint8, std::vector<int64_t>(7, 1024), std::vector<int64_t>(7, 0))));
  EXPECT_TRUE(Survives(Make(DType::kUint8, std::vector<int64_t>(6, 1024), std::vector<int64_t>(6, 0))));
  EXPECT_FALSE(Survives(Make(DType::kUint8, {2, 2, 2}, {int64_t{1} << 61, int64_t{1} << 61, int64_t{1} << 61})));
}

TEST(Geometry, RefusesTooManyDimensionsAndTruncation) {
  std::vector<std::byte> bytes =
      testing::Bytes(uint8_t{7}, uint8_t{0}, uint8_t{0}, uint8_t{kMaxDimensions + 1}, int64_t{0});
  bytes.resize(bytes.size() + 16 * (kMaxDimensions + 1));
  EXPECT_FALSE(Decodes(bytes));

  ByteWriter out;
  EncodeGeometry(out, Make(DType::kInt8, {2, 3}, {3, 1}));
  for (size_t size = 0; size < out.size(); ++size) EXPECT_FALSE(Decodes(out.bytes().first(size))) << size;
}

}  // namespace
}  // namespace flagos
