// SPDX-License-Identifier: Apache-2.0
#include "torch_host_driver.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <utility>

#include "vendors/cpu/vendor.h"
#include "vendors/torch/dtypes.h"

namespace flagos::testing {
namespace {

constexpr size_t kOffered = 16;  // handles of a synchronous call

// Answers are read after they came; a second one, or none at all, fails the test.
struct Mail {
  std::mutex mutex;
  std::condition_variable came;
  int answers = 0;
  Error error;
  std::vector<Warning> warnings;
  std::vector<std::byte> body;
};

class MailResponder final : public vendor::Responder {
 public:
  explicit MailResponder(std::shared_ptr<Mail> mail) : mail_(std::move(mail)) {}
  ~MailResponder() override {
    const std::lock_guard lock(mail_->mutex);
    EXPECT_EQ(mail_->answers, 1);
    mail_->came.notify_all();
  }
  void respond(const Error& error, std::span<const Warning> warnings, std::span<const std::byte> body) override {
    const std::lock_guard lock(mail_->mutex);
    ++mail_->answers;
    mail_->error = error;
    mail_->warnings.assign(warnings.begin(), warnings.end());
    mail_->body.assign(body.begin(), body.end());
    mail_->came.notify_all();
  }

 private:
  const std::shared_ptr<Mail> mail_;
};

template <class T>
std::vector<std::byte> Bytes(const T& value) {
  const auto* from = reinterpret_cast<const std::byte*>(&value);
  return {from, from + sizeof value};
}

std::vector<std::byte> Padded(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  std::vector<std::byte> bytes(AlignUp8(dense.nbytes()));
  std::memcpy(bytes.data(), dense.const_data_ptr(), dense.nbytes());
  return bytes;
}

Value Tagged(ArgTag tag) {
  Value value;
  value.argument.tag = tag;
  return value;
}

std::pair<std::string, std::string> Split(const std::string& name) {
  const size_t dot = name.find('.');
  return {name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1)};
}

OperatorDefinition DefinitionOf(const std::string& name) {
  OperatorDefinition definition;
  std::tie(definition.name, definition.overload) = Split(name);
  const auto handle =
      c10::Dispatcher::singleton().findSchemaOrThrow(definition.name.c_str(), definition.overload.c_str());
  definition.arguments = static_cast<uint16_t>(handle.schema().arguments().size());
  for (const c10::Argument& value : handle.schema().returns()) {
    const bool written = value.alias_info() != nullptr && value.alias_info()->isWrite();
    const bool tensor = value.type()->kind() == c10::TypeKind::TensorType;
    definition.returns.push_back(written  ? ReturnKind::kMutatedArgument
                                 : tensor ? ReturnKind::kTensor
                                          : ReturnKind::kValue);
  }
  return definition;
}

}  // namespace

void RecordingHost::fail(uint64_t sequence, const Error& error) {
  const std::lock_guard lock(mutex_);
  failures_.push_back({sequence, error});
}
void RecordingHost::warn(std::vector<Warning> warnings) {
  const std::lock_guard lock(mutex_);
  warnings_.insert(warnings_.end(), warnings.begin(), warnings.end());
}
void RecordingHost::count_misprediction() {
  const std::lock_guard lock(mutex_);
  ++mispredictions_;
}
std::vector<RecordingHost::Failed> RecordingHost::failures() const {
  const std::lock_guard lock(mutex_);
  return failures_;
}
std::vector<Warning> RecordingHost::warnings() const {
  const std::lock_guard lock(mutex_);
  return warnings_;
}
int RecordingHost::mispredictions() const {
  const std::lock_guard lock(mutex_);
  return mispredictions_;
}

Value None() { return Tagged(ArgTag::kNone); }
Value Of(const DeviceTensor& tensor) {
  Value value = Tagged(ArgTag::kTensor);
  value.argument.tensor = tensor.geometry;
  value.handles = {tensor.handle};
  return value;
}
Value Scalar(int64_t number) {
  Value value = Tagged(ArgTag::kScalar);
  value.free = Bytes(number);
  return value;
}
Value Scalar(double number) {
  Value value = Tagged(ArgTag::kScalar);
  value.argument.scalar = ScalarKind::kDouble;
  value.free = Bytes(number);
  return value;
}
Value Int(int64_t number) {
  Value value = Tagged(ArgTag::kInt);
  value.argument.integer = number;
  return value;
}
Value Bool(bool truth) {
  Value value = Tagged(ArgTag::kBool);
  value.argument.integer = truth;
  return value;
}
Value Real(double number) {
  Value value = Tagged(ArgTag::kDouble);
  value.free = Bytes(number);
  return value;
}
Value Text(const std::string& text) {
  Value value = Tagged(ArgTag::kString);
  value.argument.text = text;
  return value;
}
Value Ints(std::vector<int64_t> numbers) {
  Value value = Tagged(ArgTag::kIntList);
  value.argument.integers = std::move(numbers);
  return value;
}
Value DTypeOf(DType dtype) {
  Value value = Tagged(ArgTag::kDType);
  value.argument.integer = static_cast<int64_t>(dtype);
  return value;
}
Value List(const std::vector<DeviceTensor>& tensors) {
  Value value = Tagged(ArgTag::kTensorList);
  for (const DeviceTensor& tensor : tensors) {
    value.argument.list.push_back(Of(tensor).argument);
    value.handles.push_back(tensor.handle);
  }
  return value;
}
Value OptionalList(const std::vector<std::optional<DeviceTensor>>& tensors) {
  Value value = Tagged(ArgTag::kOptionalTensorList);
  for (const auto& tensor : tensors) {
    value.argument.list.push_back(tensor ? Of(*tensor).argument : None().argument);
    if (tensor) value.handles.push_back(tensor->handle);
  }
  return value;
}
Value HostScalar(const at::Tensor& tensor) {
  Value value = Tagged(ArgTag::kHostScalar);
  value.argument.tensor = GeometryOfTensor(tensor);
  value.free = Padded(tensor);
  return value;
}
Value Inline(const at::Tensor& tensor) {
  Value value = Tagged(ArgTag::kInlineTensor);
  value.argument.tensor = GeometryOfTensor(tensor.contiguous());
  value.free = Padded(tensor);
  return value;
}
Value InArena(Geometry geometry, uint64_t offset, uint64_t length) {
  Value value = Tagged(ArgTag::kHostTensor);
  value.argument.tensor = std::move(geometry);
  value.free = Bytes(ArenaRange{0, 0, offset, length});
  return value;
}
Value Generator(uint32_t number) {
  Value value = Tagged(ArgTag::kGenerator);
  value.free = Bytes(uint64_t{number});
  return value;
}

Geometry GeometryOfTensor(const at::Tensor& tensor) {
  Geometry geometry;
  geometry.dtype = torch_host::ToDType(tensor.scalar_type());
  geometry.offset = tensor.storage_offset();
  geometry.sizes = tensor.sizes().vec();
  geometry.strides = tensor.strides().vec();
  return geometry;
}

ContextState DefaultContext() {
  ContextState state{};
  state.default_dtype = static_cast<uint8_t>(DType::kFloat32);
  state.deterministic_fill = 1;
  state.backend_flags = 4 | 32;
  state.sdp_flags = 31;
  return state;
}

// Of a lease of its own.
std::unique_ptr<LeaseAccount> AccountOf(uint64_t quota, uint32_t device_count) {
  auto page = CreateLeasePage();
  std::vector<uint32_t> devices;
  for (uint32_t device = 0; device < device_count; ++device) {
    LeasePageOf(page.value().mapping).quota[device].store(quota);
    devices.push_back(device);
  }
  return std::move(LeaseAccount::Join(std::move(page.value().fd), 1, std::move(devices)).value());
}

Driver::Driver(vendor::Options options, uint64_t quota)
    : host_(std::make_unique<RecordingHost>()), vendor_(std::make_unique<cpu::CpuVendor>()) {
  const auto devices = vendor_->start(options);
  EXPECT_TRUE(devices.ok()) << devices.error().message;
  if (quota != 0) host_->account = AccountOf(quota, static_cast<uint32_t>(devices.value().size()));
  auto backend = vendor_->open(*host_);
  EXPECT_TRUE(backend.ok()) << backend.error().message;
  backend_ = std::move(backend).value();
  EXPECT_TRUE(backend_->define_context(0, DefaultContext()).ok());
}

Driver::~Driver() = default;

void Driver::use_context(const ContextState& state) {
  context_ = contexts_++;
  EXPECT_TRUE(backend_->define_context(context_, state).ok());
}

uint8_t Driver::device_of(uint16_t stream) const {
  const auto found = streams.find(stream);
  return found == streams.end() ? static_cast<uint8_t>(stream) : found->second;
}

std::string Driver::key(const std::string& name, const std::vector<Value>& values, const Outcome* expected) {
  Signature signature;
  signature.context = context_;
  for (const Value& value : values) signature.arguments.push_back(value.argument);
  if (expected != nullptr) {
    signature.predicted = true;
    signature.expected = *expected;
  }
  ByteWriter bytes;
  EncodeSignature(bytes, signature);
  return name + std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

uint32_t Driver::define(const std::string& name, const std::vector<Value>& values, const Outcome* expected,
                        Error* error) {
  if (!operators_.contains(name)) {
    const auto number = static_cast<uint32_t>(operators_.size());
    operators_[name] = number;
    OperatorDefinition definition = DefinitionOf(name);
    if (const auto chosen = libraries.find(name); chosen != libraries.end()) definition.library = chosen->second;
    const Error defined = backend_->define_operator(number, definition);
    EXPECT_TRUE(defined.ok() || error != nullptr) << defined.message;
  }
  const std::string text = key(name, values, expected);
  if (const auto found = signatures_.find(text); found != signatures_.end()) return found->second.number;
  Signature signature;
  signature.op = operators_[name];
  signature.context = context_;
  for (const Value& value : values) signature.arguments.push_back(value.argument);
  if (expected != nullptr) {
    signature.predicted = true;
    signature.expected = *expected;
  }
  // As it comes from a client: through the codec, which derives counts.
  ByteWriter bytes;
  EncodeSignature(bytes, signature);
  auto decoded = DecodeSignature(bytes.bytes());
  EXPECT_TRUE(decoded.ok());
  const auto number = static_cast<uint32_t>(signatures_.size());
  signatures_[text] = {number, expected != nullptr ? std::optional(*expected) : std::nullopt};
  const Error defined = backend_->define_signature(number, std::move(decoded).value());
  EXPECT_TRUE(defined.ok() || error != nullptr) << defined.message;
  if (error != nullptr) *error = defined;
  return number;
}

void Driver::run(uint32_t signature, const std::vector<Value>& values, const std::vector<uint32_t>& outputs,
                 uint16_t stream, std::unique_ptr<vendor::Responder> responder) {
  std::vector<uint32_t> inputs;
  std::vector<std::byte> free;
  for (const Value& value : values) {
    inputs.insert(inputs.end(), value.handles.begin(), value.handles.end());
    free.insert(free.end(), value.free.begin(), value.free.end());
  }
  vendor::Call call{signature, inputs, outputs, free, ++sequence_, stream, device_of(stream)};
  backend_->call(call, std::move(responder));
  // The ring's bytes are reused at once.
  std::fill(free.begin(), free.end(), std::byte{0xee});
}

std::vector<DeviceTensor> Driver::bind(const Outcome& outcome, const std::vector<uint32_t>& handles) const {
  std::vector<DeviceTensor> tensors;
  const auto add = [&](const Output& output) {
    if (output.tag == OutputTag::kTensor) tensors.push_back({handles[tensors.size()], output.geometry});
  };
  for (const Output& output : outcome.outputs) {
    add(output);
    for (const Output& item : output.list) add(item);
  }
  return tensors;
}

Answer Driver::call(const std::string& name, const std::vector<Value>& values, uint16_t stream) {
  const uint32_t number = define(name, values, nullptr);
  std::vector<uint32_t> handles;
  for (size_t i = 0; i < kOffered; ++i) handles.push_back(new_handle());
  const auto mail = std::make_shared<Mail>();
  run(number, values, handles, stream, std::make_unique<MailResponder>(mail));
  std::unique_lock lock(mail->mutex);
  EXPECT_TRUE(mail->came.wait_for(lock, std::chrono::seconds(20), [&] { return mail->answers > 0; })) << name;
  Answer answer{mail->error, mail->warnings, {}, {}};
  if (!answer.error.ok()) return answer;
  ByteReader in(mail->body);
  EXPECT_TRUE(DecodeOutcome(in, answer.outcome) && in.done());
  answer.tensors = bind(answer.outcome, handles);
  signatures_[key(name, values, nullptr)].outcome = answer.outcome;
  return answer;
}

std::vector<DeviceTensor> Driver::send(const std::string& name, const std::vector<Value>& values, uint16_t stream) {
  const uint32_t number = define(name, values, nullptr);
  const auto& outcome = signatures_[key(name, values, nullptr)].outcome;
  EXPECT_TRUE(outcome.has_value()) << name << " was not called before";
  std::vector<uint32_t> handles;
  for (size_t i = 0; i < OutputHandles(*outcome); ++i) handles.push_back(new_handle());
  run(number, values, handles, stream, nullptr);
  return bind(*outcome, handles);
}

std::vector<DeviceTensor> Driver::predict(const std::string& name, const std::vector<Value>& values,
                                          const Outcome& expected, uint16_t stream) {
  const uint32_t number = define(name, values, &expected);
  std::vector<uint32_t> handles;
  for (size_t i = 0; i < OutputHandles(expected); ++i) handles.push_back(new_handle());
  run(number, values, handles, stream, nullptr);
  return bind(expected, handles);
}

void Driver::raw(const vendor::Call& call) { backend_->call(call, nullptr); }

DeviceTensor Driver::put(const at::Tensor& tensor, uint8_t device) {
  const at::Tensor dense = tensor.contiguous();
  DeviceTensor made{new_handle(), GeometryOfTensor(dense)};
  made.geometry.device = device;
  EXPECT_LE(dense.nbytes(), host_->arena().size());
  EXPECT_TRUE(backend_->allocate(made.handle, dense.nbytes(), device, device).ok());
  std::memcpy(host_->arena().data(), dense.const_data_ptr(), dense.nbytes());
  const Answer answer =
      call("aten::copy_", {Of(made), InArena(GeometryOfTensor(dense), 0, dense.nbytes()), Bool(false)}, device);
  EXPECT_TRUE(answer.error.ok()) << answer.error.message;
  EXPECT_TRUE(answer.warnings.empty());
  return made;
}

at::Tensor Driver::get(const DeviceTensor& tensor, uint16_t stream) {
  const at::Tensor host = at::empty(tensor.geometry.sizes, torch_host::ToScalarType(tensor.geometry.dtype));
  const Answer answer =
      call("aten::copy_", {InArena(GeometryOfTensor(host), 0, host.nbytes()), Of(tensor), Bool(false)}, stream);
  EXPECT_TRUE(answer.error.ok()) << answer.error.message;
  std::memcpy(host.mutable_data_ptr(), host_->arena().data(), host.nbytes());
  return host;
}

void Driver::wait(uint16_t stream) {
  std::atomic<bool> done{false};
  backend_->fence(stream, device_of(stream), [&](const Error& error) {
    EXPECT_TRUE(error.ok());
    done = true;
    done.notify_all();
  });
  done.wait(false);
}

}  // namespace flagos::testing
