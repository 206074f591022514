// SPDX-License-Identifier: Apache-2.0
#include "client/forward/operator.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "client/forward/routing.h"

namespace flagos::client {
namespace {

std::atomic<uint32_t> next_number{0};

bool Contains(std::span<const std::string_view> words, std::string_view name) {
  return std::ranges::any_of(words, [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

HostTensor HostTensors(std::string_view name) {
  // PyTorch moves index tensors and lengths to where it needs them.
  constexpr std::array<std::string_view, 4> kNames = {"aten::index.", "aten::index_put", "aten::_index_put_impl_",
                                                      "aten::_ctc_loss"};
  const auto starts = [&](std::string_view prefix) { return name.starts_with(prefix); };
  if (std::ranges::any_of(kNames, starts)) return HostTensor::kTaken;
  return name == "aten::copy_" ? HostTensor::kShared : HostTensor::kRefused;
}

// Random numbers whose parameters PyTorch checks.
bool IsDistribution(std::string_view name) {
  constexpr std::array<std::string_view, 8> kNames = {"uniform",     "normal", "log_normal", "bernoulli",
                                                      "exponential", "cauchy", "geometric",  "random"};
  if (!name.starts_with("aten::")) return false;
  name.remove_prefix(6);
  name = name.substr(0, name.find('.'));
  if (name.ends_with('_')) name.remove_suffix(1);
  return std::ranges::find(kNames, name) != kNames.end();
}

bool SizesFollowScalars(std::string_view name) {
  return name.starts_with("aten::arange") || name.starts_with("aten::range");
}

// The flags are costly to read at every call, so only for operators that multiply matrices, convolve or attend, and for
// those of which nothing is known.
bool ReadsAllContext(std::string_view name) {
  constexpr std::array<std::string_view, 17> kWords = {"mm",     "mv",        "dot",  "addr", "matmul", "linear",
                                                       "conv",   "attention", "sdp",  "lstm", "gru",    "rnn",
                                                       "linalg", "cdist",     "norm", "ctc",  "einsum"};
  return !name.starts_with("aten::") || Contains(kWords, name);
}

ArgumentKind ListKind(const c10::Type& element) {
  switch (element.kind()) {
    case c10::TypeKind::TensorType: return ArgumentKind::kTensorList;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType: return ArgumentKind::kIntList;
    case c10::TypeKind::FloatType: return ArgumentKind::kDoubleList;
    case c10::TypeKind::BoolType: return ArgumentKind::kBoolList;
    case c10::TypeKind::NumberType: return ArgumentKind::kScalarList;
    case c10::TypeKind::OptionalType:
      return element.castRaw<c10::OptionalType>()->getElementType()->kind() == c10::TypeKind::TensorType
                 ? ArgumentKind::kOptionalTensorList
                 : ArgumentKind::kUnsupported;
    default: return ArgumentKind::kUnsupported;
  }
}

ArgumentKind KindOf(const c10::Type& type, bool fixed_scalars) {
  switch (type.kind()) {
    case c10::TypeKind::OptionalType:
      return KindOf(*type.castRaw<c10::OptionalType>()->getElementType(), fixed_scalars);
    case c10::TypeKind::ListType: return ListKind(*type.castRaw<c10::ListType>()->getElementType());
    case c10::TypeKind::TensorType: return ArgumentKind::kTensor;
    case c10::TypeKind::NumberType: return fixed_scalars ? ArgumentKind::kFixedScalar : ArgumentKind::kScalar;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType: return ArgumentKind::kInt;
    case c10::TypeKind::FloatType:
    case c10::TypeKind::SymFloatType: return ArgumentKind::kDouble;
    case c10::TypeKind::BoolType:
    case c10::TypeKind::SymBoolType: return ArgumentKind::kBool;
    case c10::TypeKind::StringType: return ArgumentKind::kString;
    case c10::TypeKind::DeviceObjType: return ArgumentKind::kDevice;
    case c10::TypeKind::ScalarTypeType: return ArgumentKind::kDType;
    case c10::TypeKind::LayoutType: return ArgumentKind::kLayout;
    case c10::TypeKind::MemoryFormatType: return ArgumentKind::kMemoryFormat;
    case c10::TypeKind::GeneratorType: return ArgumentKind::kGenerator;
    default: return ArgumentKind::kUnsupported;
  }
}

bool IsWritten(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

std::vector<ArgumentPlan> PlanArguments(const c10::FunctionSchema& schema, std::string_view name) {
  std::vector<ArgumentPlan> plans;
  const HostTensor host = HostTensors(name);
  for (const c10::Argument& argument : schema.arguments()) {
    const ArgumentKind kind = KindOf(*argument.real_type(), SizesFollowScalars(name));
    // What is indexed has to be on the device itself.
    const bool refused = host == HostTensor::kTaken && (plans.empty() || IsWritten(argument));
    plans.push_back({kind, refused ? HostTensor::kRefused : host, IsWritten(argument), argument.is_out()});
  }
  return plans;
}

std::vector<ReturnPlan> PlanReturns(const c10::FunctionSchema& schema) {
  std::vector<ReturnPlan> plans;
  for (const c10::Argument& value : schema.returns()) {
    ReturnPlan plan{ReturnKind::kValue, 0};
    const auto kind = value.type()->kind();
    if (kind == c10::TypeKind::TensorType) {
      plan.kind = ReturnKind::kTensor;
    } else if (kind == c10::TypeKind::ListType &&
               ListKind(*value.type()->castRaw<c10::ListType>()->getElementType()) == ArgumentKind::kTensorList) {
      plan.kind = ReturnKind::kTensorList;
    }
    if (IsWritten(value)) {
      const auto& arguments = schema.arguments();
      for (size_t i = 0; i < arguments.size(); ++i) {
        if (!IsWritten(arguments[i])) continue;
        if (arguments[i].alias_info()->beforeSets() != value.alias_info()->beforeSets()) continue;
        plan = {ReturnKind::kMutatedArgument, static_cast<uint16_t>(i)};
      }
    }
    plans.push_back(plan);
  }
  return plans;
}

// The numbers that fused attention returns beside tensors are lengths of its operands.
bool ReturnsLengths(std::string_view name) { return name.starts_with("aten::_scaled_dot_product_"); }

// PyTorch's own operators say so with tags. Others seldom do, so their results may always depend on it. What validates
// has only its error for a result.
bool DependsOnData(const c10::OperatorHandle& handle, const std::vector<ReturnPlan>& returns) {
  const bool own = handle.operator_name().name.starts_with("aten::");
  return handle.operator_name().name.starts_with("aten::_validate") || handle.hasTag(at::Tag::dynamic_output_shape) ||
         handle.hasTag(at::Tag::data_dependent_output) || std::ranges::any_of(returns, [&](const ReturnPlan& plan) {
           return (plan.kind == ReturnKind::kValue && !ReturnsLengths(handle.operator_name().name)) ||
                  (!own && plan.kind != ReturnKind::kMutatedArgument);
         });
}

}  // namespace

Operator::Operator(const c10::OperatorHandle& operator_handle)
    : handle(operator_handle),
      name(FullOperatorName(operator_handle.operator_name().name, operator_handle.operator_name().overload_name)),
      number(next_number.fetch_add(1, std::memory_order_relaxed)),
      arguments(PlanArguments(operator_handle.schema(), name)),
      returns(PlanReturns(operator_handle.schema())),
      depends_on_data(DependsOnData(operator_handle, returns)),
      reads_all_context(ReadsAllContext(name)),
      spans_devices(name == "aten::copy_"),
      is_power(name.starts_with("aten::pow")),
      is_distribution(IsDistribution(name)),
      makes_sparse(name.find("sparse") != std::string::npos || name.starts_with("aten::_spdiags")),
      predictor(FindPredictor(name)) {
  TORCH_CHECK(number < kMaxOperators, "flagos: more than ", kMaxOperators, " operators in use; '", name,
              "' cannot be forwarded. Register fewer custom operators.");
}

namespace {

struct Operators {
  std::mutex mutex;
  std::unordered_map<c10::OperatorName, std::unique_ptr<Operator>> by_name;  // GUARDED_BY(mutex)
};
Operators& Registry() {
  static Operators& operators = *new Operators;
  return operators;
}

}  // namespace

Operator& Operator::Of(const c10::OperatorHandle& handle) {
  Operators& operators = Registry();
  const std::lock_guard lock(operators.mutex);
  std::unique_ptr<Operator>& found = operators.by_name[handle.operator_name()];
  if (!found) found.reset(new Operator(handle));
  return *found;
}

std::vector<Operator*> Operator::All() {
  Operators& operators = Registry();
  const std::lock_guard lock(operators.mutex);
  std::vector<Operator*> all;
  all.reserve(operators.by_name.size());
  for (const auto& [name, op] : operators.by_name) all.push_back(op.get());
  return all;
}

Operator& Operator::Find(const char* name, const char* overload) {
  return Of(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload));
}

OperatorDefinition Operator::definition() const {
  OperatorDefinition definition;
  definition.name = handle.operator_name().name;
  definition.overload = handle.operator_name().overload_name;
  definition.arguments = static_cast<uint16_t>(arguments.size());
  for (const ReturnPlan& plan : returns) definition.returns.push_back(plan.kind);
  definition.library = Routing::Get().library_of(name);
  return definition;
}

}  // namespace flagos::client
