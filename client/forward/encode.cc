// SPDX-License-Identifier: Apache-2.0
#include "client/forward/encode.h"

#include <ATen/core/op_registration/adaption.h>

#include <algorithm>

#include "client/device.h"
#include "client/forward/host_operand.h"
#include "client/forward/sparse.h"
#include "client/forward/tensor_wire.h"
#include "client/forward/types.h"
#include "client/generator.h"
#include "client/handles.h"

namespace flagos::client {
namespace {

class Encoder {
 public:
  Encoder(const Operator& op, Arguments arguments, CallBuffer& out) : op_(op), arguments_(arguments), out_(out) {}

  void header(uint32_t context, size_t arguments) {
    Cursor at(out_.signature.extend(12));
    at.put(op_.number);
    at.put(context);
    at.put(static_cast<uint16_t>(arguments));
    at.put(uint16_t{0});
  }

  void argument(const ArgumentPlan& plan, size_t index, const c10::IValue& value) {
    if (value.isNone()) return tag(ArgTag::kNone);
    switch (plan.kind) {
      case ArgumentKind::kTensor: return tensor(plan, index, value.unsafeToTensorImpl());
      case ArgumentKind::kTensorList: return tensors(plan, index, value, ArgTag::kTensorList);
      case ArgumentKind::kOptionalTensorList: return tensors(plan, index, value, ArgTag::kOptionalTensorList);
      case ArgumentKind::kScalar: return scalar(value);
      case ArgumentKind::kFixedScalar: return fixed_scalar(value);
      case ArgumentKind::kInt: return tagged(ArgTag::kInt, integer(value, index));
      case ArgumentKind::kDouble: return real(value, index);
      case ArgumentKind::kBool: return tagged(ArgTag::kBool, static_cast<uint8_t>(value.toBool()));
      case ArgumentKind::kString: return string(value.toStringRef());
      case ArgumentKind::kIntList: return integers(value, index);
      case ArgumentKind::kDoubleList: return reals(value);
      case ArgumentKind::kBoolList: return bools(value);
      case ArgumentKind::kScalarList: return scalars(value);
      case ArgumentKind::kDevice: return device(value.toDevice(), index);
      case ArgumentKind::kDType: return tagged(ArgTag::kDType, checked(value.toScalarType(), index));
      case ArgumentKind::kLayout: return tagged(ArgTag::kLayout, checked(ToWire(value.toLayout()), index));
      case ArgumentKind::kMemoryFormat:
        return tagged(ArgTag::kMemoryFormat, checked(ToWire(value.toMemoryFormat()), index));
      case ArgumentKind::kGenerator: return generator(value.toGenerator());
      case ArgumentKind::kUnsupported: refuse(index, "its type cannot be sent to a device server");
    }
  }

 private:
  void tag(ArgTag tag) { out_.signature.push(static_cast<std::byte>(tag)); }
  template <class T>
  void tagged(ArgTag tag, T value) {
    Cursor at(out_.signature.extend(1 + sizeof value));
    at.put(tag);
    at.put(value);
  }
  template <class T>
  void free_value(T value) {
    static_assert(sizeof value == 8);
    Cursor(out_.free_bytes.extend(8)).put(value);
  }

  [[noreturn, gnu::noinline]] void refuse(size_t index, const char* why) {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "flagos: '", op_.name, "' cannot run on this device with its argument '",
                                op_.handle.schema().arguments()[index].name(), "': ", why, ".");
  }

  void tensor(const ArgumentPlan& plan, size_t index, c10::TensorImpl* impl) {
    if (!IsPlainDeviceTensor(*impl)) return other_tensor(plan, index, impl);
    const auto device = static_cast<int16_t>(impl->device().index());
    if (out_.device != device) [[unlikely]] {
      if (out_.device >= 0 && !op_.spans_devices) refuse_device(index, impl);
      if (out_.device < 0) out_.device = device;
    }
    uint32_t handle = HandleOf(impl->unsafe_storage());
    if (handle == 0 && impl->unsafe_storage().nbytes() != 0) [[unlikely]]
      return addressed_tensor(plan, index, impl);
    if (handle == 0 && plan.written) handle = EnsureHandle(*impl->unsafe_storage().unsafeGetStorageImpl());
    uint8_t flags = 0;
    if (plan.written) {
      note_written();
      if (plan.out) flags = compare(handle, impl);
    }
    out_.inputs.push(handle);
    out_.tensors.push(impl);
    if (!PutTensor(out_.signature, ArgTag::kTensor, *impl, flags)) [[unlikely]]
      refuse_geometry(index, impl);
  }

  // An out= argument with the operands before it.
  uint8_t compare(uint32_t handle, const c10::TensorImpl* impl) {
    for (size_t i = 0; i < out_.tensors.size(); ++i) {
      if (out_.tensors[i] == impl) {
        out_.inputs[i] = handle;  // which it may have got only now
        out_.same = true;
        return kTensorSame;
      }
      out_.covered = out_.covered || out_.inputs[i] == handle;
    }
    return 0;
  }

  [[noreturn, gnu::noinline]] void refuse_geometry(size_t index, const c10::TensorImpl* impl) {
    TORCH_CHECK(static_cast<size_t>(impl->dim()) <= kMaxDimensions, "only tensors with up to ", kMaxDimensions,
                " dims are supported");
    refuse(index, "its data type or number of elements cannot be sent to a device server");
  }

  // REQUIRES that the tensor is pushed next.
  void note_written() {
    if (const size_t input = out_.inputs.size(); input < 64) out_.written |= uint64_t{1} << input;
  }

  // A tensor made of an address on the device: its storage knows no handle.
  [[gnu::noinline]] void addressed_tensor(const ArgumentPlan& plan, size_t index, c10::TensorImpl* impl) {
    const auto found = LocateAddress(impl->unsafe_storage().data());
    if (!found || found->offset % impl->itemsize() != 0) refuse(index, "its memory is no tensor's of this session");
    if (plan.written) note_written();
    out_.inputs.push(found->handle);
    out_.tensors.push(impl);
    const int64_t offset = impl->storage_offset() + static_cast<int64_t>(found->offset / impl->itemsize());
    if (!PutGeometry(out_.signature, ArgTag::kTensor, ToWire(impl->dtype().toScalarType()), WireFlags(*impl),
                     static_cast<uint8_t>(impl->device().index()), offset, impl->sizes(), impl->strides())) {
      refuse(index, "its data type cannot be sent to a device server");
    }
  }

  // Whatever is not a dense tensor on the device.
  [[gnu::noinline]] void other_tensor(const ArgumentPlan& plan, size_t index, c10::TensorImpl* impl) {
    if (impl == c10::UndefinedTensorImpl::singleton()) return tag(ArgTag::kNone);
    if (impl->device_type() == c10::kPrivateUse1) {
      if (IsSparse(*impl)) return sparse_tensor(plan, index, impl);
      refuse(index, impl->is_quantized()
                        ? "it is quantized (QuantizedPrivateUse1), and the device has plain numbers "
                          "only. Call .dequantize() on the CPU before"
                        : "it is nested (NestedTensorPrivateUse1) or otherwise special; the device has "
                          "dense and sparse tensors only. Call .to_padded_tensor() on the CPU before");
    }
    if (impl->device_type() == c10::kMeta)
      refuse(index, "it is a meta tensor and has no data. Use .to_empty(device=...)");
    if (impl->device_type() != c10::kCPU) refuse_device(index, impl);
    if (IsSparse(*impl)) refuse_device(index, impl);
    if (impl->layout() != c10::kStrided) refuse(index, "it is a CPU tensor of a layout that the device cannot read");
    const bool shared = plan.host == HostTensor::kShared && LiesInArena(*impl);
    if (!shared && (plan.written || (impl->dim() != 0 && plan.host == HostTensor::kRefused)))
      refuse_device(index, impl);
    if (!(shared ? EncodeSharedOperand(*impl, out_) : EncodeHostOperand(impl, out_))) {
      refuse(index, "its data type cannot be sent to a device server");
    }
    (plan.written ? out_.host_written : out_.host_read) += static_cast<uint64_t>(impl->numel()) * impl->itemsize();
  }

  // Its components cross as other tensors do, behind what they are components of. That the call may write it, the
  // outcome tells: a component is not written, it is replaced.
  [[gnu::noinline]] void sparse_tensor(const ArgumentPlan& plan, size_t index, c10::TensorImpl* impl) {
    if (const char* const why = PutSparseShape(out_.signature, *impl)) refuse(index, why);
    out_.sparse.push({impl, plan.written});
    constexpr ArgumentPlan kComponent{ArgumentKind::kTensor, HostTensor::kRefused, false, false};
    for (const at::Tensor& component : ComponentsOf(*impl)) {
      c10::TensorImpl* const part = component.unsafeGetTensorImpl();
      if (!IsPlainDeviceTensor(*part)) refuse(index, "its indices or values are no dense tensors of the device");
      tensor(kComponent, index, part);
    }
  }

  [[noreturn, gnu::noinline]] void refuse_device(size_t index, c10::TensorImpl* impl) {
    // PyTorch brings a call here for its generator too, and then that is what is wrong.
    TORCH_CHECK(!impl->is_cpu() || !only_generator_is_ours(),
                "Expected a 'cpu' device type for generator but found 'flagos'");
    const auto known = out_.device >= 0 ? out_.device : CurrentDevice();
    const c10::Device common(c10::kPrivateUse1, static_cast<c10::DeviceIndex>(known));
    c10::impl::common_device_check_failure(common, at::Tensor(c10::intrusive_ptr<c10::TensorImpl>::reclaim_copy(impl)),
                                           op_.name.c_str(), op_.handle.schema().arguments()[index].name().c_str());
    TORCH_INTERNAL_ASSERT(false);
  }

  bool only_generator_is_ours() const {
    const auto ours = [](const at::Tensor& tensor) { return tensor.defined() && tensor.device().is_privateuseone(); };
    bool generator = false;
    for (const c10::IValue& value : arguments_) {
      if (value.isTensor() && ours(value.toTensor())) return false;
      if (value.isTensorList() && std::ranges::any_of(value.toTensorVector(), ours)) return false;
      generator = generator || value.isGenerator();
    }
    return generator;
  }

  void list(ArgTag kind, size_t count, size_t index) {
    if (count > kMaxListLength) refuse(index, "the list is too long");
    tagged(kind, static_cast<uint32_t>(count));
  }
  void tensors(const ArgumentPlan& plan, size_t index, const c10::IValue& value, ArgTag kind) {
    const auto items = value.toListRef();
    list(kind, items.size(), index);
    for (const c10::IValue& item : items) {
      if (item.isNone()) {
        tag(ArgTag::kNone);
      } else {
        tensor(plan, index, item.unsafeToTensorImpl());
      }
    }
  }

  // Writes a scalar's free bytes and returns its kind.
  ScalarKind scalar_value(const c10::IValue& value) {
    if (value.isInt()) {
      free_value(value.toInt());
      return ScalarKind::kInt;
    }
    if (value.isDouble()) {
      free_value(value.toDouble());
      return ScalarKind::kDouble;
    }
    if (value.isBool()) {
      free_value(int64_t{value.toBool()});
      return ScalarKind::kBool;
    }
    if (value.isUnsigned()) {  // above 2^63
      free_value(value.toUInt());
      return ScalarKind::kUnsigned;
    }
    const auto complex = value.toComplexDouble();
    free_value(complex.real());
    free_value(complex.imag());
    return ScalarKind::kComplex;
  }
  void scalar(const c10::IValue& value) { tagged(ArgTag::kScalar, scalar_value(value)); }
  void fixed_scalar(const c10::IValue& value) {
    Cursor at(out_.signature.extend(18));
    at.put(ArgTag::kFixedScalar);
    if (value.isInt() || value.isBool()) {
      at.put(value.isInt() ? ScalarKind::kInt : ScalarKind::kBool);
      at.put(value.isInt() ? value.toInt() : int64_t{value.toBool()});
      at.put(uint64_t{0});
    } else if (value.isUnsigned()) {
      at.put(ScalarKind::kUnsigned);
      at.put(value.toUInt());
      at.put(uint64_t{0});
    } else {
      at.put(value.isDouble() ? ScalarKind::kDouble : ScalarKind::kComplex);
      const c10::complex<double> number = value.isDouble() ? value.toDouble() : value.toComplexDouble();
      at.put(number.real());
      at.put(number.imag());
    }
  }
  void scalars(const c10::IValue& value) {
    const auto items = value.toListRef();
    tagged(ArgTag::kScalarList, static_cast<uint32_t>(items.size()));
    for (const c10::IValue& item : items) {
      const ScalarKind kind = scalar_value(item);
      out_.signature.push(static_cast<std::byte>(kind));
    }
  }

  int64_t integer(const c10::IValue& value, size_t index) {
    if (!value.isInt()) [[unlikely]]
      refuse(index, "it is a symbolic size; the device needs real ones");
    return value.toInt();
  }
  void real(const c10::IValue& value, size_t index) {
    if (!value.isDouble() && !value.isInt()) [[unlikely]]
      refuse(index, "it is a symbolic number; the device needs real ones");
    tag(ArgTag::kDouble);
    free_value(value.isDouble() ? value.toDouble() : static_cast<double>(value.toInt()));
  }
  void string(const std::string& text) {
    Cursor at(out_.signature.extend(5 + text.size()));
    at.put(ArgTag::kString);
    at.put(static_cast<uint32_t>(text.size()));
    at.put(text.data(), text.size());
  }
  void integers(const c10::IValue& value, size_t index) {
    const auto items = value.toListRef();
    list(ArgTag::kIntList, items.size(), index);
    Cursor at(out_.signature.extend(items.size() * 8));
    for (const c10::IValue& item : items) at.put(integer(item, index));
  }
  void reals(const c10::IValue& value) {
    const auto items = value.toListRef();
    tagged(ArgTag::kDoubleList, static_cast<uint32_t>(items.size()));
    Cursor at(out_.signature.extend(items.size() * 8));
    for (const c10::IValue& item : items) at.put(item.toDouble());
  }
  void bools(const c10::IValue& value) {
    const auto items = value.toListRef();
    tagged(ArgTag::kBoolList, static_cast<uint32_t>(items.size()));
    Cursor at(out_.signature.extend(items.size()));
    for (const c10::IValue& item : items) at.put(static_cast<uint8_t>(item.toBool()));
  }

  // A device as an argument also says where the call runs, if no operand does.
  void device(c10::Device device, size_t index) {
    Cursor at(out_.signature.extend(3));
    at.put(ArgTag::kDevice);
    uint8_t number = 255;
    if (device.is_privateuseone()) {
      number = static_cast<uint8_t>(ResolveDevice(device).index());
      if (out_.device < 0) out_.device = number;
      at.put(DeviceKind::kFlagos);
    } else if (device.is_cpu() || device.is_meta()) {
      at.put(device.is_cpu() ? DeviceKind::kHost : DeviceKind::kMeta);
    } else {
      refuse(index, "the device server does not know that device");
    }
    at.put(number);
  }
  void generator(const at::Generator& generator) {
    TORCH_CHECK(generator.device().is_privateuseone(), "Expected a '", c10::DeviceTypeName(c10::kPrivateUse1, true),
                "' device type for generator but found '", c10::DeviceTypeName(generator.device().type(), true), "'");
    tag(ArgTag::kGenerator);
    free_value(uint64_t{GeneratorNumber(generator)});
  }

  uint8_t checked(c10::ScalarType type, size_t index) {
    const DType dtype = ToWire(type);
    if (dtype == DType::kUndefined) [[unlikely]]
      refuse(index, c10::isQIntType(type) ? "tensors of it are quantized (QuantizedPrivateUse1), and the device has "
                                            "plain numbers only. Quantize on the CPU"
                                          : "the device server does not know that data type");
    return static_cast<uint8_t>(dtype);
  }
  uint8_t checked(Layout layout, size_t index) {
    if (static_cast<uint8_t>(layout) >= kLayoutCount) refuse(index, "the device server does not know that layout");
    return static_cast<uint8_t>(layout);
  }
  uint8_t checked(MemoryFormat format, size_t index) {
    if (static_cast<uint8_t>(format) >= kMemoryFormatCount)
      refuse(index, "the device server does not know that format");
    return static_cast<uint8_t>(format);
  }

  const Operator& op_;
  const Arguments arguments_;
  CallBuffer& out_;
};

}  // namespace

void EncodeCall(const Operator& op, uint32_t context, Arguments arguments, CallBuffer& buffer) {
  Encoder encoder(op, arguments, buffer);
  encoder.header(context, arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) encoder.argument(op.arguments[i], i, arguments[i]);
  if (buffer.device < 0) buffer.device = static_cast<int16_t>(CurrentDevice());
}

}  // namespace flagos::client
