// SPDX-License-Identifier: Apache-2.0
// A signature: everything about a call but its handles and free values. Sent whole once (kDefineSignature), then named
// by number. The client writes the bytes on its hot path and looks them up as they are; the executor decodes them once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "proto/wire/bytes.h"
#include "proto/wire/error.h"
#include "proto/wire/types.h"

namespace flagos {

// One byte before each argument. "free: N" says that each call carries N bytes for it, in the order of the arguments.
enum class ArgTag : uint8_t {
  kNone = 0,                 // None; in a list: an undefined tensor
  kTensor = 1,               // on a device; its handle is the next input of the call
  kHostScalar = 2,           // zero-dimensional CPU tensor by value. free: AlignUp8(element size)
  kHostTensor = 3,           // CPU tensor whose bytes lie in the arena. free: ArenaRange
  kInlineTensor = 4,         // small contiguous CPU tensor. free: AlignUp8(its bytes)
  kScalar = 5,               // ScalarKind. free: 8, complex 16
  kFixedScalar = 6,          // ScalarKind and 16 bytes of value, where the output's geometry depends on it
  kInt = 7,                  // i64
  kDouble = 8,               // free: 8
  kBool = 9,                 // u8
  kString = 10,              // u32 length, bytes
  kIntList = 11,             // u32 count, i64 each
  kDoubleList = 12,          // u32 count, f64 each
  kBoolList = 13,            // u32 count, u8 each
  kTensorList = 14,          // u32 count, then a tensor tag with its body for each
  kOptionalTensorList = 15,  // the same, kNone allowed
  kScalarList = 16,          // u32 count, ScalarKind each. free: 8 or 16 each
  kDevice = 17,              // DeviceKind, u8 index (255: none)
  kDType = 18,               // DType
  kLayout = 19,              // Layout
  kMemoryFormat = 20,        // MemoryFormat
  kGenerator = 21,           // free: 8 (u32 generator number, u32 zero)
  kSparseTensor = 22,        // SparseShape, then its components, kTensor each; also in lists of tensors
};
inline constexpr uint8_t kArgTagCount = 23;

// kUnsigned: an integer above 2^63 - 1.
enum class ScalarKind : uint8_t { kInt = 0, kDouble = 1, kBool = 2, kComplex = 3, kUnsigned = 4 };
inline constexpr uint8_t kScalarKindCount = 5;
constexpr bool IsIntegral(ScalarKind kind) {
  return kind == ScalarKind::kInt || kind == ScalarKind::kBool || kind == ScalarKind::kUnsigned;
}
constexpr size_t ScalarBytes(ScalarKind kind) { return kind == ScalarKind::kComplex ? 16 : 8; }

// Bits of a tensor.
inline constexpr uint8_t kTensorWrappedNumber = 1;  // a Python number that became a tensor
inline constexpr uint8_t kTensorConj = 2;           // lazily conjugated
inline constexpr uint8_t kTensorNeg = 4;            // lazily negated
// Of an out= argument: the very tensor that stands before among the arguments with the same handle and geometry, and
// not another one of the same bytes. PyTorch lets such a tensor not be resized.
inline constexpr uint8_t kTensorSame = 8;
inline constexpr uint8_t kTensorFlagMask = 15;

// Bytes of an arena, as a call names them. `segment` is 0 in version 1.
struct ArenaRange {
  uint32_t segment;
  uint32_t reserved;
  uint64_t offset;
  uint64_t length;
};
static_assert(sizeof(ArenaRange) == 24);

// A tensor's geometry. On the wire: u8 dtype, u8 flags, u8 device, u8 dimensions, i64 offset, i64 sizes[], i64
// strides[]; offset, sizes and strides count elements.
struct Geometry {
  DType dtype = DType::kUndefined;
  uint8_t flags = 0;
  uint8_t device = 0;
  int64_t offset = 0;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;

  bool operator==(const Geometry&) const = default;
  int64_t numel() const;
  // Bytes that a storage must have for this tensor to lie within it; 0 when it has no elements. Never overflows for a
  // geometry that DecodeGeometry accepted.
  uint64_t required_bytes() const;
};

// Writes the wire form from raw parts.
inline void EncodeGeometry(ByteWriter& out, DType dtype, uint8_t flags, uint8_t device, int64_t offset,
                           std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  out.put(static_cast<uint8_t>(dtype));
  out.put(flags);
  out.put(device);
  out.put(static_cast<uint8_t>(sizes.size()));
  out.put(offset);
  out.append(sizes.data(), sizes.size_bytes());
  out.append(strides.data(), strides.size_bytes());
}
void EncodeGeometry(ByteWriter& out, const Geometry& geometry);

// Refuses unknown dtypes and flags, negative sizes, strides and offsets, more than kMaxDimensions, and any geometry
// whose extent in bytes does not fit 62 bits. A failed reader stays failed.
bool DecodeGeometry(ByteReader& in, Geometry& geometry);

// A sparse tensor but for its components. On the wire: u8 layout, u8 dtype, u8 flags (1: coalesced), u8 sparse
// dimensions, u8 dense dimensions, u8 dimensions, i64 sizes[].
struct SparseShape {
  Layout layout = Layout::kSparse;
  DType dtype = DType::kUndefined;  // of its values
  bool coalesced = false;           // kSparse only
  uint8_t sparse_dim = 0;
  uint8_t dense_dim = 0;
  std::vector<int64_t> sizes;

  bool operator==(const SparseShape&) const = default;
};

// Indices and values, or compressed indices, plain indices and values; 0 for layouts that are not sparse.
constexpr size_t SparseComponents(Layout layout) {
  switch (layout) {
    case Layout::kSparse: return 2;
    case Layout::kSparseCsr:
    case Layout::kSparseCsc:
    case Layout::kSparseBsr:
    case Layout::kSparseBsc: return 3;
    default: return 0;
  }
}

void EncodeSparseShape(ByteWriter& out, const SparseShape& shape);

// Refuses layouts that are not sparse, and what DecodeGeometry refuses of dtype and sizes. COO: sparse and dense
// dimensions are all there are. Compressed: two are sparse, and nothing is coalesced.
bool DecodeSparseShape(ByteReader& in, SparseShape& shape);

// What a call returns or expects to return.
enum class OutputTag : uint8_t {
  kUndefined = 0,  // an undefined tensor
  kTensor = 1,     // new storage: takes the next output handle. Geometry, u64 storage bytes
  kAlias = 2,      // u16 input number: shares that input's storage. Geometry, u64 storage bytes
  kList = 3,       // u32 count, then kUndefined, kTensor or kAlias each
  kInt = 4,        // i64
  kDouble = 5,     // f64
  kBool = 6,       // u8
  kComplex = 7,    // two f64
  kNone = 8,
  kDType = 9,    // DType
  kSparse = 10,  // SparseShape, then its components, kTensor or kAlias each; never predicted
};
inline constexpr uint8_t kOutputTagCount = 11;

struct Output {
  OutputTag tag = OutputTag::kUndefined;
  Geometry geometry;           // kTensor, kAlias
  uint64_t storage_bytes = 0;  // kTensor, kAlias
  uint16_t alias = 0;          // kAlias
  std::vector<Output> list;    // kList; components of kSparse
  SparseShape sparse;          // kSparse
  int64_t integer = 0;         // kInt (an unsigned one above 2^63 by its bits), kBool, kDType
  double real = 0, imaginary = 0;

  bool operator==(const Output&) const = default;
};

// An input that the call resized (out= tensors): its geometry and storage bytes afterwards.
struct Resized {
  uint16_t input = 0;
  Geometry geometry;
  uint64_t storage_bytes = 0;

  bool operator==(const Resized&) const = default;
};

struct Outcome {
  // Of the returns that are not ReturnKind::kMutatedArgument, in their order; then a kSparse for each sparse argument
  // that the call may write, as it is afterwards.
  std::vector<Output> outputs;
  std::vector<Resized> resized;

  bool operator==(const Outcome&) const = default;
};

// Wire form: u16 count, outputs; u16 count, resized inputs.
void EncodeOutcome(ByteWriter& out, const Outcome& outcome);
bool DecodeOutcome(ByteReader& in, Outcome& outcome);
// Handles that a call with this outcome takes.
size_t OutputHandles(const Outcome& outcome);
// Such an outcome depends on data, so it says nothing of the next call.
bool HasSparse(const Outcome& outcome);

struct Argument {
  ArgTag tag = ArgTag::kNone;
  Geometry tensor;             // kTensor, kHostScalar, kHostTensor, kInlineTensor
  std::vector<Argument> list;  // kTensorList, kOptionalTensorList: tensor arguments or kNone; kSparseTensor: components
  SparseShape sparse;          // kSparseTensor
  ScalarKind scalar = ScalarKind::kInt;
  std::vector<ScalarKind> scalars;  // kScalarList
  int64_t integer = 0;              // kInt, kBool, kDevice index, kDType, kLayout, kMemoryFormat, kFixedScalar
  double real = 0, imaginary = 0;   // kFixedScalar
  DeviceKind device = DeviceKind::kHost;
  std::string text;
  std::vector<int64_t> integers;  // kIntList, kBoolList
  std::vector<double> reals;      // kDoubleList
};

// Wire form: u32 operator, u32 context, u16 arguments, u16 1 where an expected outcome follows the arguments else 0;
// the arguments; the outcome that the client predicts and has already acted on.
struct Signature {
  uint32_t op = 0;
  uint32_t context = 0;
  std::vector<Argument> arguments;
  bool predicted = false;
  Outcome expected;

  size_t inputs = 0;      // handles that a call carries; derived
  size_t free_bytes = 0;  // bytes of free values that a call carries; derived
  bool sparse = false;    // has a sparse argument, and so no prediction; derived
};

Result<Signature> DecodeSignature(std::span<const std::byte> bytes);
void EncodeSignature(ByteWriter& out, const Signature& signature);

}  // namespace flagos
