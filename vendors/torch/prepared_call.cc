// SPDX-License-Identifier: Apache-2.0
#include "vendors/torch/prepared_call.h"

#include <limits>
#include <string>
#include <utility>

#include "proto/wire/records.h"
#include "vendors/torch/dtypes.h"
#include "vendors/torch/failures.h"
#include "vendors/torch/parameter.h"
#include "vendors/torch/sparse.h"

namespace flagos::torch_host {
namespace {

template <class T, class From>
c10::IValue ListOf(const std::vector<From>& values) {
  c10::List<T> list;
  list.reserve(values.size());
  for (const From& value : values) list.push_back(static_cast<T>(value));
  return list;
}

bool IsComplex(DType dtype) {
  return dtype == DType::kComplex32 || dtype == DType::kComplex64 || dtype == DType::kComplex128;
}

class Preparer {
 public:
  Preparer(PreparedCall& call, const DeviceRuntime& runtime) : call_(call), op_(*call.op), runtime_(runtime) {}

  void argument(size_t index, const Argument& argument) {
    const auto& schema = op_.handle.schema().arguments()[index];
    const Parameter parameter = *ParameterOf(schema);
    if (!Fits(parameter, argument.tag)) refuse(index, "is of another kind than the operator takes");
    index_ = index;
    Slot slot;
    fill(slot, argument, parameter);
    call_.slots.push_back(std::move(slot));
  }
  uint64_t free_bytes() const { return free_; }

 private:
  [[noreturn]] void refuse(size_t index, const char* why) const {
    throw Refusal(ErrorCode::kMalformed, "argument '" + op_.handle.schema().arguments()[index].name() + "' of " +
                                             op_.name + " " + why + "; use a client and an executor of one version");
  }
  uint32_t take(size_t bytes) { return static_cast<uint32_t>(std::exchange(free_, free_ + bytes)); }

  void fill(Slot& slot, const Argument& argument, const Parameter& parameter) {
    switch (argument.tag) {
      case ArgTag::kNone:
        if (parameter.base == Parameter::Base::kGenerator) slot.kind = Slot::Kind::kDefaultGenerator;
        if (parameter.base == Parameter::Base::kTensor && !parameter.optional) slot.value = at::Tensor();
        break;
      case ArgTag::kTensor:
      case ArgTag::kHostScalar:
      case ArgTag::kHostTensor:
      case ArgTag::kInlineTensor:
      case ArgTag::kSparseTensor:
        slot.kind = Slot::Kind::kTensor;
        slot.first = add_tensor(argument);
        slot.count = 1;
        break;
      case ArgTag::kTensorList:
      case ArgTag::kOptionalTensorList:
        slot.kind = argument.tag == ArgTag::kTensorList ? Slot::Kind::kTensorList : Slot::Kind::kOptionalTensorList;
        slot.first = static_cast<uint32_t>(call_.tensors.size());
        slot.count = static_cast<uint32_t>(argument.list.size());
        for (const Argument& item : argument.list) add_tensor(item);
        break;
      case ArgTag::kScalar:
        slot.kind = Slot::Kind::kScalar;
        slot.scalar = argument.scalar;
        slot.free_offset = take(ScalarBytes(argument.scalar));
        break;
      case ArgTag::kScalarList:
        slot.kind = Slot::Kind::kScalarList;
        slot.free_offset = take(0);
        slot.scalars = argument.scalars;
        for (const ScalarKind kind : argument.scalars) take(ScalarBytes(kind));
        break;
      case ArgTag::kDouble:
        slot.kind = Slot::Kind::kDouble;
        slot.free_offset = take(8);
        break;
      case ArgTag::kGenerator:
        slot.kind = Slot::Kind::kGenerator;
        slot.free_offset = take(8);
        break;
      case ArgTag::kDevice: device(slot, argument); break;
      case ArgTag::kFixedScalar: slot.value = fixed_scalar(argument); break;
      case ArgTag::kInt: slot.value = argument.integer; break;
      case ArgTag::kBool: slot.value = argument.integer != 0; break;
      case ArgTag::kString: slot.value = argument.text; break;
      case ArgTag::kIntList: slot.value = ListOf<int64_t>(argument.integers); break;
      case ArgTag::kBoolList: slot.value = ListOf<bool>(argument.integers); break;
      case ArgTag::kDoubleList: slot.value = ListOf<double>(argument.reals); break;
      case ArgTag::kDType: slot.value = ToScalarType(static_cast<DType>(argument.integer)); break;
      case ArgTag::kLayout: slot.value = ToLayout(static_cast<Layout>(argument.integer)); break;
      case ArgTag::kMemoryFormat: slot.value = ToMemoryFormat(static_cast<MemoryFormat>(argument.integer)); break;
    }
  }

  c10::IValue fixed_scalar(const Argument& argument) const {
    switch (argument.scalar) {
      case ScalarKind::kInt: return argument.integer;
      case ScalarKind::kUnsigned: return static_cast<uint64_t>(argument.integer);
      case ScalarKind::kBool: return argument.integer != 0;
      case ScalarKind::kDouble: return argument.real;
      case ScalarKind::kComplex: return c10::complex<double>(argument.real, argument.imaginary);
    }
    return {};
  }

  void device(Slot& slot, const Argument& argument) {
    switch (argument.device) {
      case DeviceKind::kHost: slot.value = c10::Device(c10::kCPU); return;
      case DeviceKind::kMeta: slot.value = c10::Device(c10::kMeta); return;
      case DeviceKind::kFlagos: break;
    }
    constexpr int64_t kNoIndex = 255;
    if (argument.integer == kNoIndex) {
      slot.kind = Slot::Kind::kCallDevice;
    } else if (argument.integer < runtime_.device_count()) {
      slot.value = runtime_.device(static_cast<uint8_t>(argument.integer));
    } else {
      refuse(index_, "names a device that is not there");
    }
  }

  uint32_t add_tensor(const Argument& argument) {
    const auto number = static_cast<uint32_t>(call_.tensors.size());
    PreparedTensor& tensor = call_.tensors.emplace_back();
    tensor.tag = argument.tag;
    if (argument.tag == ArgTag::kNone) return number;
    if (argument.tag == ArgTag::kSparseTensor) {
      tensor.input = add_sparse(argument);
      return number;
    }
    describe(tensor, argument);
    const bool written = op_.written[index_];
    if (argument.tag == ArgTag::kHostTensor) {
      tensor.copy = !op_.moves_bytes && !written;
      call_.copies = call_.copies || tensor.copy;
      call_.uses_arena = true;
    }
    if ((argument.tensor.flags & kTensorSame) != 0) {
      if (argument.tag != ArgTag::kTensor || !op_.resizable[index_]) refuse(index_, "is no out= tensor");
      tensor.geometry.flags = argument.tensor.flags & ~kTensorSame;
      tensor.same = call_.same = true;
    }
    if (written && argument.tag == ArgTag::kTensor) {
      tensor.written = true;
      call_.written.push_back(number);
    }
    if (op_.resizable[index_] && argument.tag == ArgTag::kTensor) {
      tensor.resizable = true;
      call_.resizable.push_back(number);
    }
    return number;
  }

  uint32_t add_sparse(const Argument& argument) {
    if (const char* const wrong = CheckComponents(argument.sparse, argument.list)) refuse(index_, wrong);
    const auto number = static_cast<uint32_t>(call_.sparse.size());
    PreparedSparse& sparse = call_.sparse.emplace_back();
    sparse.shape = argument.sparse;
    sparse.written = op_.written[index_];
    sparse.components.resize(argument.list.size());
    for (size_t i = 0; i < argument.list.size(); ++i) {
      sparse.components[i].tag = ArgTag::kTensor;
      describe(sparse.components[i], argument.list[i]);
    }
    call_.plain = false;
    return number;
  }

  // Geometry, and where in a call its bytes are named.
  void describe(PreparedTensor& tensor, const Argument& argument) {
    tensor.geometry = argument.tensor;
    tensor.bytes = argument.tensor.required_bytes();
    switch (argument.tag) {
      case ArgTag::kTensor: tensor.input = inputs_++; break;
      case ArgTag::kHostScalar: tensor.free_offset = take(AlignUp8(ElementSize(argument.tensor.dtype))); break;
      case ArgTag::kInlineTensor: tensor.free_offset = take(AlignUp8(tensor.bytes)); break;
      default: tensor.free_offset = take(sizeof(ArenaRange)); break;
    }
    const uint8_t flags = argument.tensor.flags;
    if ((flags & kTensorWrappedNumber) && !argument.tensor.sizes.empty()) refuse(index_, "is no wrapped number");
    if ((flags & kTensorConj) && !IsComplex(argument.tensor.dtype)) refuse(index_, "is conjugated but not complex");
    call_.plain = call_.plain && (flags & (kTensorConj | kTensorNeg)) == 0;
  }

  PreparedCall& call_;
  const Operator& op_;
  const DeviceRuntime& runtime_;
  size_t index_ = 0;
  uint32_t inputs_ = 0;
  uint64_t free_ = 0;  // fits 32 bits in the end, or the signature is refused
};

// Decided once, so that a call looks at one flag.
void ChooseKernel(PreparedCall& call) {
  call.direct = call.plain;
  KernelRoute* const route = call.op->route.get();
  if (route == nullptr || route->kernel == nullptr || !call.plain) return;
  if (route->kernel->takes != nullptr) {
    std::vector<c10::ScalarType> dtypes;
    for (const PreparedTensor& tensor : call.tensors) {
      const bool number = (tensor.geometry.flags & kTensorWrappedNumber) != 0;
      if (tensor.tag != ArgTag::kNone && !number) dtypes.push_back(ToScalarType(tensor.geometry.dtype));
    }
    if (!route->kernel->takes(dtypes)) return;
  }
  call.route = route;
  call.direct = false;
}

}  // namespace

Result<std::shared_ptr<PreparedCall>> Prepare(Signature signature, std::shared_ptr<const Operator> op,
                                              const DeviceRuntime& runtime) {
  auto call = std::make_shared<PreparedCall>();
  call->op = std::move(op);
  call->context = signature.context;
  call->inputs = signature.inputs;
  const size_t parameters = call->op->handle.schema().arguments().size();
  if (signature.arguments.size() != parameters) {
    return MakeError(ErrorCode::kMalformed, "a signature of " + call->op->name + " has " +
                                                std::to_string(signature.arguments.size()) + " arguments of " +
                                                std::to_string(parameters) + "; send every argument");
  }
  try {
    Preparer preparer(*call, runtime);
    for (size_t i = 0; i < parameters; ++i) preparer.argument(i, signature.arguments[i]);
    call->free_bytes = preparer.free_bytes();
    ChooseKernel(*call);
    call->lends = !call->copies && !call->same && call->sparse.empty() && call->op->keeps_tensors;
    if (call->free_bytes > std::numeric_limits<uint32_t>::max()) {
      return MakeError(ErrorCode::kOutOfRange, "a call of " + call->op->name +
                                                   " carries more than 4 GiB by value; put "
                                                   "host tensors into the arena");
    }
  } catch (...) {
    return CurrentError();
  }
  if (signature.predicted) {
    call->predicted = true;
    call->output_handles = OutputHandles(signature.expected);
    call->expected = std::move(signature.expected);
  }
  return call;
}

}  // namespace flagos::torch_host
