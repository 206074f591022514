// SPDX-License-Identifier: Apache-2.0
// What calls depend on besides their operands: host memory, lazy bits, generators, contexts, warnings, memory.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <cstring>

#include "torch_host_driver.h"

namespace flagos::testing {
namespace {

vendor::Options WithDevices(const char* count) {
  vendor::Options options;
  options.values["devices"] = count;
  return options;
}

TEST(TorchHostMemory, HostTensorsLieInTheArenaWithoutACopy) {
  Driver driver;
  const at::Tensor a = at::arange(6, at::kFloat).reshape({2, 3});
  std::byte* arena = driver.host().arena().data();
  std::memcpy(arena + 4096, a.const_data_ptr(), a.nbytes());
  DeviceTensor x{driver.new_handle(), GeometryOfTensor(a.to(at::kDouble))};
  ASSERT_TRUE(driver.backend().allocate(x.handle, 48, 0, 0).ok());
  // Upload with another dtype, download transposed: what the executor does itself.
  ASSERT_TRUE(driver.call("aten::copy_", {Of(x), InArena(GeometryOfTensor(a), 4096, 24), Bool(false)}).error.ok());
  Geometry transposed = GeometryOfTensor(a);
  transposed.strides = {1, 2};
  ASSERT_TRUE(driver.call("aten::copy_", {InArena(transposed, 8192, 24), Of(x), Bool(false)}).error.ok());
  const float expected[] = {0, 3, 1, 4, 2, 5};
  EXPECT_EQ(std::memcmp(arena + 8192, expected, sizeof expected), 0);
}

TEST(TorchHostMemory, RangesOutsideTheArenaAreRefused) {
  Driver driver;
  const DeviceTensor x = driver.put(at::ones({4}));
  const uint64_t size = driver.host().arena().size();
  const auto code = [&](uint64_t offset, uint64_t length) {
    return driver.call("aten::copy_", {Of(x), InArena(x.geometry, offset, length), Bool(false)}).error.code;
  };
  EXPECT_EQ(code(size - 16, 16), ErrorCode::kOk);
  EXPECT_EQ(code(size - 8, 16), ErrorCode::kMalformed);
  EXPECT_EQ(code(~uint64_t{0} - 7, 16), ErrorCode::kMalformed);
  EXPECT_EQ(code(size, 0), ErrorCode::kMalformed);
  EXPECT_EQ(code(0, 12), ErrorCode::kMalformed);  // shorter than the tensor
  EXPECT_EQ(code(2, 16), ErrorCode::kMalformed);  // not aligned
}

TEST(TorchHostMemory, FiguresFollowStoragesAndResultsOfKernels) {
  Driver driver(WithDevices("2"));
  const auto figures = [&](uint32_t device) { return driver.host().figures(device).allocated_bytes.load(); };
  const int64_t before = figures(1), other = figures(0);
  const DeviceTensor x = driver.put(at::ones({1 << 17}), 1);
  EXPECT_EQ(figures(1) - before, 1 << 19);
  const Answer sum = driver.call("aten::add.Tensor", {Of(x), Of(x), Scalar(1.0)}, 1);
  EXPECT_EQ(figures(1) - before, 1 << 20);
  EXPECT_EQ(driver.backend().memory_stats(1).value().allocated_bytes, figures(1));
  driver.free(x);
  driver.free(sum.tensors[0]);
  EXPECT_EQ(figures(1), before);
  EXPECT_LT(figures(0) - other, 4096);
  EXPECT_GE(driver.host().figures(1).peak_allocated_bytes.load() - before, 1 << 20);
  driver.backend().reset_peak_memory(1);
  EXPECT_EQ(driver.host().figures(1).peak_allocated_bytes.load(), before);
  EXPECT_GE(driver.host().figures(1).reserved_bytes.load(), 1 << 20);
  driver.backend().empty_cache(1);
  EXPECT_LT(driver.host().figures(1).reserved_bytes.load(), 1 << 20);
}

TEST(TorchHostMemory, OutOfMemoryIsAnErrorOfTheCallAndNothingIsLost) {
  vendor::Options options;
  options.values["memory"] = std::to_string(64 << 20);
  Driver driver(options);
  EXPECT_EQ(driver.backend().allocate(driver.new_handle(), uint64_t{65} << 20, 0, 0).code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(driver.backend().allocate(driver.new_handle(), ~uint64_t{0} / 2, 0, 0).code, ErrorCode::kOutOfMemory);
  const DeviceTensor x = driver.put(at::ones({64}));
  const Answer answer = driver.call("aten::repeat_interleave.self_int", {Of(x), Int(1 << 20), None(), None()});
  EXPECT_EQ(answer.error.code, ErrorCode::kOutOfMemory);
  EXPECT_NE(answer.error.message.find("64.00 MiB"), std::string::npos) << answer.error.message;
  EXPECT_TRUE(at::equal(driver.get(x), at::ones({64})));
}

TEST(TorchHostMemory, AQuotaHoldsOnEachDevice) {
  Driver driver(WithDevices("2"), uint64_t{32} << 20);
  const uint32_t first = driver.new_handle();
  ASSERT_TRUE(driver.backend().allocate(first, 20 << 20, 0, 0).ok());
  ASSERT_TRUE(driver.backend().allocate(driver.new_handle(), 20 << 20, 1, 1).ok());
  const Error error = driver.backend().allocate(driver.new_handle(), 24 << 20, 0, 0);
  EXPECT_EQ(error.code, ErrorCode::kOutOfMemory);
  EXPECT_NE(error.message.find("of its quota of 32.00 MiB there, session s1 most of it"), std::string::npos)
      << error.message;
  // What is cached is given up for it.
  driver.backend().free(first, 0);
  EXPECT_TRUE(driver.backend().allocate(driver.new_handle(), 24 << 20, 0, 0).ok());
  EXPECT_EQ(driver.host().account->view(0).used, static_cast<uint64_t>(driver.host().figures(0).reserved_bytes.load()));
}

TEST(TorchHostBits, LazilyConjugatedAndNegatedOperandsAreResolved) {
  Driver driver;
  const at::Tensor a = at::randn({3, 3}, at::kComplexFloat);
  DeviceTensor conjugated = driver.put(a);
  conjugated.geometry.flags = kTensorConj;
  EXPECT_TRUE(at::equal(driver.get(driver.call("aten::mm", {Of(conjugated), Of(conjugated)}).tensors.at(0)),
                        at::mm(a.conj(), a.conj())));
  EXPECT_TRUE(at::equal(driver.get(conjugated), a.conj().resolve_conj()));
  const at::Tensor b = at::randn({3});
  DeviceTensor negated = driver.put(b);
  negated.geometry.flags = kTensorNeg;
  EXPECT_TRUE(at::equal(driver.get(driver.call("aten::abs", {Of(negated)}).tensors.at(0)), b.abs()));
  EXPECT_TRUE(at::equal(driver.get(driver.call("aten::exp", {Of(negated)}).tensors.at(0)), at::exp(-b)));
}

TEST(TorchHostBits, AWrappedNumberDoesNotPromote) {
  Driver driver;
  const DeviceTensor x = driver.put(at::ones({2}, at::kHalf));
  Value number = HostScalar(at::scalar_tensor(2.0, at::kDouble));
  number.argument.tensor.flags = kTensorWrappedNumber;
  EXPECT_EQ(driver.call("aten::mul.Tensor", {Of(x), number}).tensors.at(0).geometry.dtype, DType::kFloat16);
}

TEST(TorchHostBits, AnOutTensorThatIsAnOperandIsOneTensor) {
  Driver driver;
  const DeviceTensor x = driver.put(at::ones({5, 1})), y = driver.put(at::ones({5, 5}));
  DeviceTensor out = x;
  out.geometry.flags = kTensorSame;
  const auto failed = driver.call("aten::logical_and.out", {Of(x), Of(y), Of(out)});
  EXPECT_NE(failed.error.message.find("doesn't match the broadcast shape"), std::string::npos) << failed.error.message;
  const DeviceTensor z = driver.put(at::zeros({5, 5}));
  DeviceTensor over = z;
  over.geometry.flags = kTensorSame;
  ASSERT_TRUE(driver.call("aten::add.out", {Of(z), Of(y), Scalar(int64_t{2}), Of(over)}).error.ok());
  EXPECT_TRUE(at::equal(driver.get(z), at::full({5, 5}, 2.0)));
  Error refused = Error::Ok();
  driver.define("aten::add.Tensor", {Of(over), Of(y), Scalar(int64_t{1})}, nullptr, &refused);
  EXPECT_EQ(refused.code, ErrorCode::kMalformed);
  EXPECT_NE(refused.message.find("is no out= tensor"), std::string::npos) << refused.message;
}

// A default generator of its own for what the test computes itself.
at::Tensor Draw(uint64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  return at::empty({100}).uniform_(0, 1, generator);
}

TEST(TorchHostRandom, SeedsDrawWhatTheyDrawInProcess) {
  Driver driver(WithDevices("2"));
  for (const uint8_t device : {uint8_t{0}, uint8_t{1}}) {
    ASSERT_TRUE(driver.backend().seed_generator(device, 42).ok());
    const DeviceTensor x = driver.put(at::zeros({100}), device);
    ASSERT_TRUE(driver.call("aten::uniform_", {Of(x), Real(0), Real(1), None()}, device).error.ok());
    EXPECT_TRUE(at::equal(driver.get(x, device), Draw(42))) << int{device};
    // Without a Generator argument: the same generator goes on.
    ASSERT_TRUE(driver.backend().seed_generator(device, 7).ok());
    const DeviceTensor ones = driver.put(at::ones({100}), device);
    const Answer dropped = driver.call("aten::native_dropout", {Of(ones), Real(0.5), Bool(true)}, device);
    ASSERT_TRUE(dropped.error.ok()) << dropped.error.message;
    at::Generator generator = at::detail::createCPUGenerator(7);
    const at::Tensor kept = at::empty({100}).bernoulli_(0.5, generator);
    EXPECT_TRUE(at::equal(driver.get(dropped.tensors[0], device), kept * 2)) << int{device};
  }
}

TEST(TorchHostRandom, AnUnseededSessionStartsFromTheDocumentedSeed) {
  at::manual_seed(3);
  Driver driver;
  const DeviceTensor x = driver.put(at::zeros({100}));
  ASSERT_TRUE(driver.call("aten::uniform_", {Of(x), Real(0), Real(1), None()}).error.ok());
  EXPECT_TRUE(at::equal(driver.get(x), Draw(c10::default_rng_seed_val)));
}

TEST(TorchHostRandom, GeneratorsAreCreatedSavedAndRestored) {
  Driver driver;
  const uint32_t number = kMaxDevices + 3;
  vendor::Backend& backend = driver.backend();
  ASSERT_TRUE(backend.create_generator(number, 0).ok());
  ASSERT_TRUE(backend.seed_generator(number, 11).ok());
  const DeviceTensor x = driver.put(at::zeros({100}));
  const auto draw = [&] {
    EXPECT_TRUE(driver.call("aten::uniform_", {Of(x), Real(0), Real(1), Generator(number)}).error.ok());
    return driver.get(x);
  };
  EXPECT_TRUE(at::equal(draw(), Draw(11)));
  const auto state = backend.generator_state(number);
  ASSERT_TRUE(state.ok());
  const at::Tensor next = draw();
  ASSERT_TRUE(backend.set_generator_state(number, state.value()).ok());
  EXPECT_TRUE(at::equal(draw(), next));
  EXPECT_EQ(backend.set_generator_state(number, std::span(state.value()).first(16)).code, ErrorCode::kRuntime);
  backend.destroy_generator(number);
  EXPECT_EQ(driver.call("aten::uniform_", {Of(x), Real(0), Real(1), Generator(number)}).error.code,
            ErrorCode::kMalformed);
}

TEST(TorchHostContext, IsInForceForItsSignatures) {
  Driver driver;
  const DeviceTensor x = driver.put(at::tensor({1, 2, 3}));
  EXPECT_EQ(driver.call("aten::sqrt", {Of(x)}).outcome.outputs.at(0).geometry.dtype, DType::kFloat32);
  ContextState state = DefaultContext();
  state.default_dtype = static_cast<uint8_t>(DType::kFloat64);
  state.deterministic_algorithms = 1;
  driver.use_context(state);
  EXPECT_EQ(driver.call("aten::sqrt", {Of(x)}).outcome.outputs.at(0).geometry.dtype, DType::kFloat64);
  EXPECT_TRUE(at::globalContext().deterministicAlgorithms());
  driver.use_context(DefaultContext());
  EXPECT_EQ(driver.call("aten::sqrt", {Of(x)}).outcome.outputs.at(0).geometry.dtype, DType::kFloat32);
  EXPECT_FALSE(at::globalContext().deterministicAlgorithms());
}

TEST(TorchHostWarnings, AreTakenToTheClient) {
  c10::WarningUtils::set_warnAlways(true);
  Driver driver;
  const DeviceTensor x = driver.put(at::ones({3})), out = driver.put(at::ones({2}));
  const Answer answer = driver.call("aten::add.out", {Of(x), Of(x), Scalar(1.0), Of(out)});
  c10::WarningUtils::set_warnAlways(false);
  ASSERT_TRUE(answer.error.ok()) << answer.error.message;
  ASSERT_EQ(answer.warnings.size(), 1u);
  EXPECT_EQ(answer.warnings[0].kind, WarningKind::kUser);
  EXPECT_NE(answer.warnings[0].text.find("was resized"), std::string::npos) << answer.warnings[0].text;
}

}  // namespace
}  // namespace flagos::testing
