// SPDX-License-Identifier: Apache-2.0
// Kernel libraries of a hosted libtorch: which kernel runs, who decides, and what is refused.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "torch_host_driver.h"
#include "vendors/cpu/vendor.h"

namespace flagos::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

vendor::Options WithKernels(const std::string& routes = {}) {
  vendor::Options options;
  options.values["kernels"] = FLAGOS_TEST_KERNELS;
  if (!routes.empty()) options.values["routes"] = routes;
  return options;
}

// A file of routes, for as long as it lives.
class RouteFile {
 public:
  explicit RouteFile(const std::string& text) : path_("/tmp/flagos-test-routes-" + std::to_string(::getpid())) {
    std::ofstream(path_) << text;
  }
  ~RouteFile() { std::remove(path_.c_str()); }
  RouteFile(const RouteFile&) = delete;
  RouteFile& operator=(const RouteFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

std::string KernelOf(Driver& driver, const std::string& op, const std::vector<Value>& values) {
  return driver.backend().kernel_of(driver.define(op, values, nullptr));
}

at::Tensor Product(Driver& driver, const at::Tensor& a, const at::Tensor& b) {
  const Answer answer = driver.call("aten::mul.Tensor", {Of(driver.put(a)), Of(driver.put(b))});
  EXPECT_TRUE(answer.error.ok()) << answer.error.message;
  return driver.get(answer.tensors.at(0));
}

TEST(TorchHostKernels, AChosenLibraryRunsTheCalls) {
  Driver driver(WithKernels());
  driver.libraries["aten::mul.Tensor"] = "marked";
  const at::Tensor a = at::randn({3, 4}), b = at::randn({4});
  const std::vector<Value> values = {Of(driver.put(a)), Of(driver.put(b))};
  ASSERT_TRUE(driver.call("aten::mul.Tensor", values).error.ok());
  const auto later = driver.send("aten::mul.Tensor", values);
  EXPECT_TRUE(at::equal(driver.get(later[0]), a * b + 1000));
  EXPECT_EQ(KernelOf(driver, "aten::mul.Tensor", values), "marked");
  const auto figures = driver.backend().kernel_figures();
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_EQ(figures[0].library, "marked");
  EXPECT_EQ(figures[0].calls, 2u);
  EXPECT_EQ(driver.host().mispredictions(), 0);
}

TEST(TorchHostKernels, ABoxedKernelRunsToo) {
  Driver driver(WithKernels());
  driver.libraries["aten::sigmoid"] = "marked";
  const at::Tensor a = at::randn({5});
  const Answer answer = driver.call("aten::sigmoid", {Of(driver.put(a))});
  ASSERT_TRUE(answer.error.ok()) << answer.error.message;
  EXPECT_TRUE(at::equal(driver.get(answer.tensors[0]), at::sigmoid(a) + 1000));
}

TEST(TorchHostKernels, WithoutAChoiceTheVendorsOwnRun) {
  Driver driver(WithKernels());
  driver.libraries["aten::mul.Tensor"] = "native";
  const at::Tensor a = at::randn({4});
  EXPECT_TRUE(at::equal(Product(driver, a, a), a * a));
  const Answer answer = driver.call("aten::sigmoid", {Of(driver.put(a))});
  EXPECT_TRUE(at::equal(driver.get(answer.tensors.at(0)), at::sigmoid(a)));
  EXPECT_TRUE(driver.backend().kernel_figures().empty());
}

TEST(TorchHostKernels, AnOperatorThatTheLibraryLacksRunsNativelyAndShows) {
  Driver driver(WithKernels());
  driver.libraries["aten::add.Tensor"] = "marked";
  const at::Tensor a = at::randn({4});
  const std::vector<Value> values = {Of(driver.put(a)), Of(driver.put(a)), Scalar(int64_t{1})};
  const Answer answer = driver.call("aten::add.Tensor", values);
  ASSERT_TRUE(answer.error.ok()) << answer.error.message;
  EXPECT_TRUE(at::equal(driver.get(answer.tensors[0]), a + a));
  EXPECT_EQ(KernelOf(driver, "aten::add.Tensor", values), "native");
  const auto figures = driver.backend().kernel_figures();
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_EQ(figures[0].library, "marked");
  EXPECT_EQ(figures[0].calls, 0u);
}

TEST(TorchHostKernels, CallsThatAKernelDoesNotTakeRunNatively) {
  Driver driver(WithKernels());
  driver.libraries["aten::dot"] = "accurate";
  driver.libraries["aten::mul.Tensor"] = "marked";
  const auto dot = [&](const at::Tensor& a) {
    const std::vector<Value> values = {Of(driver.put(a)), Of(driver.put(a))};
    const Answer answer = driver.call("aten::dot", values);
    EXPECT_TRUE(answer.error.ok()) << answer.error.message;
    return KernelOf(driver, "aten::dot", values);
  };
  EXPECT_EQ(dot(at::randn({9})), "accurate");
  EXPECT_EQ(dot(at::randn({9}, at::kDouble)), "native");
  Value negative = Of(driver.put(at::randn({9})));
  negative.argument.tensor.flags = kTensorNeg;
  EXPECT_TRUE(driver.call("aten::mul.Tensor", {negative, negative}).error.ok());
  EXPECT_EQ(KernelOf(driver, "aten::mul.Tensor", {negative, negative}), "native") << "a lazily negated tensor";
  for (const KernelFigures& figure : driver.backend().kernel_figures())
    EXPECT_EQ(figure.calls, figure.library == "accurate" ? 1u : 0u);
}

TEST(TorchHostKernels, CountsWhatIsQueued) {
  Driver driver(WithKernels());
  driver.libraries["aten::mul.Tensor"] = "marked";
  constexpr uint16_t kStream = 70;
  ASSERT_TRUE(driver.backend().create_stream(kStream, 0, 0).ok());
  driver.streams[kStream] = 0;
  const at::Tensor a = at::randn({64});
  const std::vector<Value> values = {Of(driver.put(a)), Of(driver.put(a))};
  driver.call("aten::mul.Tensor", values, kStream);
  for (int i = 0; i < 5; ++i) driver.send("aten::mul.Tensor", values, kStream);
  EXPECT_EQ(driver.backend().kernel_figures().at(0).calls, 6u);
}

TEST(TorchHostKernels, ConfiguredRoutesHoldForWhoChoosesNothing) {
  const RouteFile file("mul = marked\nsigmoid = marked\n");
  Driver driver(WithKernels(file.path()));
  driver.libraries["aten::sigmoid"] = "native";
  const at::Tensor a = at::randn({4});
  EXPECT_TRUE(at::equal(Product(driver, a, a), a * a + 1000));
  const Answer answer = driver.call("aten::sigmoid", {Of(driver.put(a))});
  EXPECT_TRUE(at::equal(driver.get(answer.tensors.at(0)), at::sigmoid(a)));
}

TEST(TorchHostKernels, RefusesWhatIsNotThere) {
  Driver driver(WithKernels());
  const auto refusal = [&](const std::string& op, const std::string& library, const std::vector<Value>& values) {
    driver.libraries[op] = library;
    Error error;
    driver.define(op, values, nullptr, &error);
    return error.message;
  };
  const DeviceTensor x = driver.put(at::ones({2}));
  EXPECT_THAT(refusal("aten::exp", "fast", {Of(x)}),
              AllOf(HasSubstr("aten::exp: there is no kernel library 'fast'"), HasSubstr("marked")));
  EXPECT_THAT(refusal("aten::sin", "misfit", {Of(x)}), HasSubstr("schema"));
  EXPECT_THAT(refusal("aten::_foreach_copy_", "marked", {List({x}), List({x}), Bool(false)}),
              HasSubstr("makes storages, views or copies"));
}

TEST(TorchHostKernels, ListsThemWithWhatIsWrong) {
  Driver driver(WithKernels());
  std::map<std::string, KernelLibraryInfo> listed;
  for (const KernelLibraryInfo& library : driver.backend().kernel_libraries()) listed[library.name] = library;
  EXPECT_EQ(listed["marked"].error, "");
  EXPECT_EQ(listed["marked"].description, "adds 1000");
  EXPECT_THAT(listed["marked"].operators,
              ElementsAre("aten::mul.Tensor", "aten::neg", "aten::sigmoid", "aten::uniform_"));
  EXPECT_THAT(listed["accurate"].operators, Contains("aten::sum.dim_IntList"));
  EXPECT_THAT(listed["misfit"].error, AllOf(HasSubstr("libflagos_kernels_misfit.so cannot be used"),
                                            HasSubstr("aten::mul.Tensor has a kernel of another schema")));
  EXPECT_THAT(listed["outdated"].error, HasSubstr("built for version 2 of the interface"));
  EXPECT_THAT(listed["foreign"].error, HasSubstr("built for torch 1.13.0"));
  EXPECT_THAT(listed["renamed"].error, HasSubstr("it is the library 'other'"));
  EXPECT_THAT(listed["elsewhere"].error, AllOf(HasSubstr("for cuda"), HasSubstr("cpu")));
  EXPECT_THAT(listed["nothing"].error, HasSubstr("exports no flagos_kernels()"));
}

TEST(TorchHostKernels, AMistakeInConfiguredRoutesKeepsTheVendorFromStarting) {
  const auto complaint = [](const vendor::Options& options) {
    cpu::CpuVendor vendor;
    const auto started = vendor.start(options);
    return started.ok() ? std::string() : started.error().message;
  };
  const auto of_text = [&](const std::string& text) {
    const RouteFile file(text);
    return complaint(WithKernels(file.path()));
  };
  EXPECT_THAT(of_text("mul = marked\nsum = fast\n"), HasSubstr(":2: there is no kernel library 'fast'"));
  EXPECT_THAT(of_text("mul = misfit\n"), AllOf(HasSubstr(":1: the kernel library"), HasSubstr("cannot be used")));
  EXPECT_THAT(of_text("mule = marked\n"), HasSubstr(":1: PyTorch has no operator 'aten::mule'"));
  EXPECT_THAT(of_text("copy_ = marked\n"), HasSubstr("makes storages, views or copies"));
  EXPECT_THAT(complaint(WithKernels("/nonexistent")), HasSubstr("the vendor's option routes"));
  EXPECT_THAT(complaint({{}, {{"kernels", "/nonexistent"}}}),
              AllOf(HasSubstr("/nonexistent cannot be read"), HasSubstr("option kernels")));
}

TEST(TorchHostKernels, DrawFromTheDevicesGenerator) {
  const auto draw = [](Driver& driver) {
    EXPECT_TRUE(driver.backend().seed_generator(0, 7).ok());
    const DeviceTensor x = driver.put(at::zeros({100}));
    EXPECT_TRUE(driver.call("aten::uniform_", {Of(x), Real(0), Real(1), None()}).error.ok());
    return std::pair(driver.get(x), driver.backend().generator_state(0).value());
  };
  Driver native(WithKernels());
  const auto expected = draw(native);
  Driver driver(WithKernels());
  driver.libraries["aten::uniform_"] = "marked";
  const auto drawn = draw(driver);
  EXPECT_TRUE(at::equal(drawn.first, -expected.first));
  EXPECT_EQ(drawn.second, expected.second);
}

TEST(TorchHostKernels, AnErrorOfAKernelKeepsItsKind) {
  Driver driver(WithKernels());
  driver.libraries["aten::neg"] = "marked";
  const Answer answer = driver.call("aten::neg", {Of(driver.put(at::ones({2})))});
  EXPECT_EQ(answer.error.code, ErrorCode::kValue);
  EXPECT_THAT(answer.error.message, HasSubstr("marked neg refuses"));
}

}  // namespace
}  // namespace flagos::testing
