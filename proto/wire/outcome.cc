// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "proto/wire/signature.h"

namespace flagos {
namespace {

void EncodeOutput(ByteWriter& out, const Output& output) {
  out.put(static_cast<uint8_t>(output.tag));
  switch (output.tag) {
    case OutputTag::kUndefined:
    case OutputTag::kNone: break;
    case OutputTag::kAlias: out.put(output.alias); [[fallthrough]];
    case OutputTag::kTensor:
      EncodeGeometry(out, output.geometry);
      out.put(output.storage_bytes);
      break;
    case OutputTag::kList:
      out.put(static_cast<uint32_t>(output.list.size()));
      for (const Output& item : output.list) EncodeOutput(out, item);
      break;
    case OutputTag::kInt: out.put(output.integer); break;
    case OutputTag::kDouble: out.put(output.real); break;
    case OutputTag::kBool:
    case OutputTag::kDType: out.put(static_cast<uint8_t>(output.integer)); break;
    case OutputTag::kComplex:
      out.put(output.real);
      out.put(output.imaginary);
      break;
    case OutputTag::kSparse:
      EncodeSparseShape(out, output.sparse);
      for (const Output& component : output.list) EncodeOutput(out, component);
      break;
  }
}

bool DecodeOutput(ByteReader& in, Output& output, bool in_list);

bool DecodeSparse(ByteReader& in, Output& output) {
  if (!DecodeSparseShape(in, output.sparse)) return false;
  output.list.resize(SparseComponents(output.sparse.layout));
  for (Output& component : output.list) {
    if (!DecodeOutput(in, component, true)) return false;
    if (component.tag == OutputTag::kUndefined || component.geometry.device != output.list.front().geometry.device) {
      in.fail();
      return false;
    }
  }
  if (output.list.back().geometry.dtype != output.sparse.dtype) in.fail();
  return in.ok();
}

bool DecodeOutput(ByteReader& in, Output& output, bool in_list) {
  const auto tag = in.get<uint8_t>();
  output.tag = static_cast<OutputTag>(tag);
  if (!in.ok() || tag >= kOutputTagCount || (in_list && tag > static_cast<uint8_t>(OutputTag::kAlias))) {
    in.fail();
    return false;
  }
  switch (output.tag) {
    case OutputTag::kUndefined:
    case OutputTag::kNone: break;
    case OutputTag::kAlias: output.alias = in.get<uint16_t>(); [[fallthrough]];
    case OutputTag::kTensor:
      if (!DecodeGeometry(in, output.geometry)) return false;
      output.storage_bytes = in.get<uint64_t>();
      if (in.ok() && output.storage_bytes < output.geometry.required_bytes()) in.fail();
      break;
    case OutputTag::kList: {
      const auto count = in.get<uint32_t>();
      if (count > kMaxListLength || count > in.remaining()) {
        in.fail();
        return false;
      }
      output.list.resize(count);
      for (Output& item : output.list) {
        if (!DecodeOutput(in, item, true)) return false;
      }
      break;
    }
    case OutputTag::kInt: output.integer = in.get<int64_t>(); break;
    case OutputTag::kDouble: output.real = in.get<double>(); break;
    case OutputTag::kBool: output.integer = in.get<uint8_t>() != 0; break;
    case OutputTag::kDType:
      output.integer = in.get<uint8_t>();
      if (output.integer >= kDTypeCount) in.fail();
      break;
    case OutputTag::kComplex:
      output.real = in.get<double>();
      output.imaginary = in.get<double>();
      break;
    case OutputTag::kSparse: return DecodeSparse(in, output);
  }
  return in.ok();
}

}  // namespace

void EncodeOutcome(ByteWriter& out, const Outcome& outcome) {
  out.put(static_cast<uint16_t>(outcome.outputs.size()));
  for (const Output& output : outcome.outputs) EncodeOutput(out, output);
  out.put(static_cast<uint16_t>(outcome.resized.size()));
  for (const Resized& resized : outcome.resized) {
    out.put(resized.input);
    EncodeGeometry(out, resized.geometry);
    out.put(resized.storage_bytes);
  }
}

bool DecodeOutcome(ByteReader& in, Outcome& outcome) {
  const auto outputs = in.get<uint16_t>();
  if (outputs > in.remaining()) in.fail();
  outcome.outputs.resize(in.ok() ? outputs : 0);
  for (Output& output : outcome.outputs) {
    if (!DecodeOutput(in, output, false)) return false;
  }
  const auto resized = in.get<uint16_t>();
  if (resized > in.remaining()) in.fail();
  outcome.resized.resize(in.ok() ? resized : 0);
  for (Resized& item : outcome.resized) {
    item.input = in.get<uint16_t>();
    if (!DecodeGeometry(in, item.geometry)) return false;
    item.storage_bytes = in.get<uint64_t>();
    if (item.storage_bytes < item.geometry.required_bytes()) in.fail();
  }
  return in.ok();
}

size_t OutputHandles(const Outcome& outcome) {
  size_t handles = 0;
  for (const Output& output : outcome.outputs) {
    if (output.tag == OutputTag::kTensor) ++handles;
    for (const Output& item : output.list) {
      if (item.tag == OutputTag::kTensor) ++handles;
    }
  }
  return handles;
}

bool HasSparse(const Outcome& outcome) {
  return std::ranges::any_of(outcome.outputs, [](const Output& output) { return output.tag == OutputTag::kSparse; });
}

}  // namespace flagos
