// SPDX-License-Identifier: Apache-2.0
#include "proto/wire/signature.h"

#include <algorithm>

#include "proto/wire/records.h"

namespace flagos {
namespace {

bool IsTensorTag(ArgTag tag) {
  return tag == ArgTag::kTensor || tag == ArgTag::kHostScalar || tag == ArgTag::kHostTensor ||
         tag == ArgTag::kInlineTensor;
}

// Inline tensors are small by definition; a larger one comes through the arena.
constexpr uint64_t kMaxInlineBytes = 1u << 16;

class Decoder {
 public:
  Decoder(ByteReader& in, Signature& signature) : in_(in), signature_(signature) {}

  bool argument(Argument& argument) {
    const auto tag = in_.get<uint8_t>();
    if (!in_.ok() || tag >= kArgTagCount) return refuse();
    argument.tag = static_cast<ArgTag>(tag);
    switch (argument.tag) {
      case ArgTag::kNone: return true;
      case ArgTag::kTensor:
      case ArgTag::kHostScalar:
      case ArgTag::kHostTensor:
      case ArgTag::kInlineTensor: return tensor(argument);
      case ArgTag::kScalar:
        if (!scalar_kind(argument.scalar)) return false;
        signature_.free_bytes += ScalarBytes(argument.scalar);
        return true;
      case ArgTag::kFixedScalar: return fixed_scalar(argument);
      case ArgTag::kInt: argument.integer = in_.get<int64_t>(); return in_.ok();
      case ArgTag::kDouble:
      case ArgTag::kGenerator: signature_.free_bytes += 8; return true;
      case ArgTag::kBool: argument.integer = in_.get<uint8_t>() != 0; return in_.ok();
      case ArgTag::kString: argument.text = in_.get_string(); return in_.ok();
      case ArgTag::kIntList: return values<int64_t>(argument.integers);
      case ArgTag::kBoolList: return values<uint8_t>(argument.integers);
      case ArgTag::kDoubleList: return values<double>(argument.reals);
      case ArgTag::kTensorList:
      case ArgTag::kOptionalTensorList: return tensor_list(argument);
      case ArgTag::kScalarList: return scalar_list(argument);
      case ArgTag::kDevice: return device(argument);
      case ArgTag::kDType: return number(argument, kDTypeCount);
      case ArgTag::kLayout: return number(argument, kLayoutCount);
      case ArgTag::kMemoryFormat: return number(argument, kMemoryFormatCount);
      case ArgTag::kSparseTensor: return sparse(argument);
    }
    return refuse();
  }

 private:
  bool refuse() {
    in_.fail();
    return false;
  }
  bool tensor(Argument& argument) {
    if (!DecodeGeometry(in_, argument.tensor)) return false;
    switch (argument.tag) {
      case ArgTag::kTensor: ++signature_.inputs; return true;
      case ArgTag::kHostScalar:
        if (!argument.tensor.sizes.empty() || argument.tensor.offset != 0) return refuse();
        signature_.free_bytes += AlignUp8(ElementSize(argument.tensor.dtype));
        return true;
      case ArgTag::kInlineTensor:
        if (argument.tensor.required_bytes() > kMaxInlineBytes) return refuse();
        signature_.free_bytes += AlignUp8(argument.tensor.required_bytes());
        return true;
      default: signature_.free_bytes += sizeof(ArenaRange); return true;
    }
  }
  // Components of one device, of which the last is the values.
  bool sparse(Argument& argument) {
    signature_.sparse = true;
    if (!DecodeSparseShape(in_, argument.sparse)) return false;
    argument.list.resize(SparseComponents(argument.sparse.layout));
    for (Argument& component : argument.list) {
      component.tag = static_cast<ArgTag>(in_.get<uint8_t>());
      if (component.tag != ArgTag::kTensor) return refuse();
      if (!tensor(component)) return false;
      if (component.tensor.device != argument.list.front().tensor.device) return refuse();
    }
    return argument.list.back().tensor.dtype == argument.sparse.dtype || refuse();
  }
  bool scalar_kind(ScalarKind& kind) {
    const auto number = in_.get<uint8_t>();
    if (number >= kScalarKindCount) return refuse();
    kind = static_cast<ScalarKind>(number);
    return in_.ok();
  }
  bool fixed_scalar(Argument& argument) {
    if (!scalar_kind(argument.scalar)) return false;
    if (IsIntegral(argument.scalar)) {
      argument.integer = in_.get<int64_t>();
      in_.get<uint64_t>();
    } else {
      argument.real = in_.get<double>();
      argument.imaginary = in_.get<double>();
    }
    return in_.ok();
  }
  // A list's count, refused where the bytes that are left cannot hold it: no allocation on a peer's word alone.
  bool count(size_t element_bytes, uint32_t& count) {
    count = in_.get<uint32_t>();
    if (count > kMaxListLength || uint64_t{count} * element_bytes > in_.remaining()) return refuse();
    return in_.ok();
  }
  template <class T, class To>
  bool values(std::vector<To>& into) {
    uint32_t n = 0;
    if (!count(sizeof(T), n)) return false;
    into.resize(n);
    for (To& value : into) value = static_cast<To>(in_.get<T>());
    return in_.ok();
  }
  bool tensor_list(Argument& argument) {
    uint32_t n = 0;
    if (!count(1, n)) return false;
    argument.list.resize(n);
    for (Argument& item : argument.list) {
      const auto tag = in_.get<uint8_t>();
      item.tag = static_cast<ArgTag>(tag);
      if (!in_.ok()) return false;
      if (item.tag == ArgTag::kNone && argument.tag == ArgTag::kOptionalTensorList) continue;
      if (item.tag == ArgTag::kSparseTensor) {
        if (!sparse(item)) return false;
        continue;
      }
      if (tag >= kArgTagCount || !IsTensorTag(item.tag)) return refuse();
      if (!tensor(item)) return false;
    }
    return true;
  }
  bool scalar_list(Argument& argument) {
    uint32_t n = 0;
    if (!count(1, n)) return false;
    argument.scalars.resize(n);
    for (ScalarKind& kind : argument.scalars) {
      if (!scalar_kind(kind)) return false;
      signature_.free_bytes += ScalarBytes(kind);
    }
    return true;
  }
  bool device(Argument& argument) {
    const auto kind = in_.get<uint8_t>();
    argument.integer = in_.get<uint8_t>();
    if (kind > static_cast<uint8_t>(DeviceKind::kMeta)) return refuse();
    argument.device = static_cast<DeviceKind>(kind);
    return in_.ok();
  }
  bool number(Argument& argument, uint8_t limit) {
    argument.integer = in_.get<uint8_t>();
    if (argument.integer >= limit) return refuse();
    return in_.ok();
  }

  ByteReader& in_;
  Signature& signature_;
};

// Every alias and resized input is one of the call's.
bool RefersTo(const Outcome& outcome, size_t inputs) {
  const auto exists = [inputs](const Output& output) {
    return output.tag != OutputTag::kAlias || output.alias < inputs;
  };
  return std::ranges::all_of(
             outcome.outputs,
             [&](const Output& output) { return exists(output) && std::ranges::all_of(output.list, exists); }) &&
         std::ranges::all_of(outcome.resized, [&](const Resized& resized) { return resized.input < inputs; });
}

void EncodeArgument(ByteWriter& out, const Argument& argument) {
  out.put(static_cast<uint8_t>(argument.tag));
  switch (argument.tag) {
    case ArgTag::kNone:
    case ArgTag::kDouble:
    case ArgTag::kGenerator: break;
    case ArgTag::kTensor:
    case ArgTag::kHostScalar:
    case ArgTag::kHostTensor:
    case ArgTag::kInlineTensor: EncodeGeometry(out, argument.tensor); break;
    case ArgTag::kScalar: out.put(static_cast<uint8_t>(argument.scalar)); break;
    case ArgTag::kFixedScalar:
      out.put(static_cast<uint8_t>(argument.scalar));
      if (IsIntegral(argument.scalar)) {
        out.put(argument.integer);
        out.put(uint64_t{0});
      } else {
        out.put(argument.real);
        out.put(argument.imaginary);
      }
      break;
    case ArgTag::kInt: out.put(argument.integer); break;
    case ArgTag::kBool:
    case ArgTag::kDType:
    case ArgTag::kLayout:
    case ArgTag::kMemoryFormat: out.put(static_cast<uint8_t>(argument.integer)); break;
    case ArgTag::kString: out.put_string(argument.text); break;
    case ArgTag::kIntList:
      out.put(static_cast<uint32_t>(argument.integers.size()));
      for (const int64_t value : argument.integers) out.put(value);
      break;
    case ArgTag::kBoolList:
      out.put(static_cast<uint32_t>(argument.integers.size()));
      for (const int64_t value : argument.integers) out.put(static_cast<uint8_t>(value != 0));
      break;
    case ArgTag::kDoubleList:
      out.put(static_cast<uint32_t>(argument.reals.size()));
      for (const double value : argument.reals) out.put(value);
      break;
    case ArgTag::kTensorList:
    case ArgTag::kOptionalTensorList:
      out.put(static_cast<uint32_t>(argument.list.size()));
      for (const Argument& item : argument.list) EncodeArgument(out, item);
      break;
    case ArgTag::kSparseTensor:
      EncodeSparseShape(out, argument.sparse);
      for (const Argument& component : argument.list) EncodeArgument(out, component);
      break;
    case ArgTag::kScalarList:
      out.put(static_cast<uint32_t>(argument.scalars.size()));
      for (const ScalarKind kind : argument.scalars) out.put(static_cast<uint8_t>(kind));
      break;
    case ArgTag::kDevice:
      out.put(static_cast<uint8_t>(argument.device));
      out.put(static_cast<uint8_t>(argument.integer));
      break;
  }
}

}  // namespace

Result<Signature> DecodeSignature(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  Signature signature;
  signature.op = in.get<uint32_t>();
  signature.context = in.get<uint32_t>();
  const auto arguments = in.get<uint16_t>();
  const auto predicted = in.get<uint16_t>();
  bool good = in.ok() && predicted <= 1 && arguments <= in.remaining();
  if (good) {
    signature.predicted = predicted == 1;
    signature.arguments.resize(arguments);
    Decoder decoder(in, signature);
    for (Argument& argument : signature.arguments) good = good && decoder.argument(argument);
  }
  if (good && signature.predicted) {
    good = !signature.sparse && DecodeOutcome(in, signature.expected) && !HasSparse(signature.expected) &&
           RefersTo(signature.expected, signature.inputs);
  }
  // Records are padded to eight bytes, so up to seven zero bytes may follow.
  if (!good || !in.ok() || in.remaining() > 7 || signature.inputs > UINT16_MAX) {
    return MakeError(ErrorCode::kMalformed,
                     "a signature does not decode: the client and the executor disagree about the protocol, or the "
                     "client's memory is damaged; restart the job with client and flagosd of one version");
  }
  return signature;
}

void EncodeSignature(ByteWriter& out, const Signature& signature) {
  out.put(signature.op);
  out.put(signature.context);
  out.put(static_cast<uint16_t>(signature.arguments.size()));
  out.put(static_cast<uint16_t>(signature.predicted ? 1 : 0));
  for (const Argument& argument : signature.arguments) EncodeArgument(out, argument);
  if (signature.predicted) EncodeOutcome(out, signature.expected);
}

}  // namespace flagos
