// SPDX-License-Identifier: Apache-2.0
#include "server/ctl/message_json.h"

#include <absl/strings/strip.h>
#include <google/protobuf/descriptor.h>

namespace flagos::ctl {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Value 0 of every enumeration is PREFIX_UNSPECIFIED.
std::string EnumName(const EnumValueDescriptor* value) {
  const absl::string_view prefix = absl::StripSuffix(value->type()->value(0)->name(), "UNSPECIFIED");
  return std::string(absl::StripPrefix(value->name(), prefix));
}

// The value of a field, or of its entry `index` where it is repeated.
Json Value(const Message& message, const FieldDescriptor* field, int index) {
  const Reflection& reflection = *message.GetReflection();
  const bool repeated = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return repeated ? reflection.GetRepeatedInt32(message, field, index) : reflection.GetInt32(message, field);
    case FieldDescriptor::CPPTYPE_INT64:
      return repeated ? reflection.GetRepeatedInt64(message, field, index) : reflection.GetInt64(message, field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return repeated ? reflection.GetRepeatedUInt32(message, field, index) : reflection.GetUInt32(message, field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return repeated ? reflection.GetRepeatedUInt64(message, field, index) : reflection.GetUInt64(message, field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return repeated ? reflection.GetRepeatedDouble(message, field, index) : reflection.GetDouble(message, field);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return repeated ? reflection.GetRepeatedFloat(message, field, index) : reflection.GetFloat(message, field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return repeated ? reflection.GetRepeatedBool(message, field, index) : reflection.GetBool(message, field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumName(repeated ? reflection.GetRepeatedEnum(message, field, index)
                               : reflection.GetEnum(message, field));
    case FieldDescriptor::CPPTYPE_STRING:
      return repeated ? reflection.GetRepeatedString(message, field, index) : reflection.GetString(message, field);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJson(repeated ? reflection.GetRepeatedMessage(message, field, index)
                             : reflection.GetMessage(message, field));
  }
  return {};
}

}  // namespace

Json ToJson(const Message& message) {
  Json object = Json::object();
  const auto* const type = message.GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* const field = type->field(i);
    Json& value = object[field->name()];
    if (!field->is_repeated()) {
      if (!field->has_presence() || message.GetReflection()->HasField(message, field)) value = Value(message, field, 0);
      continue;
    }
    value = Json::array();
    const int size = message.GetReflection()->FieldSize(message, field);
    for (int index = 0; index < size; ++index) value.push_back(Value(message, field, index));
  }
  return object;
}

}  // namespace flagos::ctl
