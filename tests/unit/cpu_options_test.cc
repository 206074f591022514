// SPDX-License-Identifier: Apache-2.0
#include "vendors/cpu/options.h"

#include <gtest/gtest.h>

namespace flagos::cpu {
namespace {

TEST(CpuOptions, HaveDefaults) {
  const auto read = ReadOptions({});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().devices, std::vector<uint32_t>({0}));
  EXPECT_EQ(read.value().memory, PhysicalMemory());
  EXPECT_GT(PhysicalMemory(), uint64_t{1} << 20);
  EXPECT_EQ(read.value().threads, 0);
}

TEST(CpuOptions, ChooseDevicesOfTheNode) {
  vendor::Options options{
      {1, 3}, {{"devices", "4"}, {"memory", "1048576"}, {"threads", "2"}, {"kernels", "/a:/b"}, {"routes", "/c"}}};
  const auto read = ReadOptions(options);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().devices, std::vector<uint32_t>({1, 3}));
  EXPECT_EQ(read.value().memory, 1048576u);
  EXPECT_EQ(read.value().threads, 2);
}

TEST(CpuOptions, MistakesAreNamed) {
  const auto message = [](const vendor::Options& options) { return ReadOptions(options).error().message; };
  EXPECT_NE(message({{}, {{"device", "2"}}}).find("\"device\""), std::string::npos);
  EXPECT_NE(message({{}, {{"devices", "0"}}}).find("from 1 to 64"), std::string::npos);
  EXPECT_NE(message({{}, {{"memory", "4GiB"}}}).find("\"4GiB\""), std::string::npos);
  EXPECT_NE(message({{2}, {{"devices", "2"}}}).find("no device 2"), std::string::npos);
}

}  // namespace
}  // namespace flagos::cpu
