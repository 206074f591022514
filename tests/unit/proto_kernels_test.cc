// SPDX-License-Identifier: Apache-2.0
#include "proto/wire/kernels.h"

#include <gtest/gtest.h>

#include "proto/wire/types.h"
#include "tests/unit/proto_bytes.h"

namespace flagos {
namespace {

const std::vector<KernelLibraryInfo> kLibraries = {{"fast", "sums", "", {"aten::sum", "aten::dot.out"}},
                                                   {"broken-1", "", "cannot be used", {}}};
const std::vector<KernelFigures> kFigures = {{3, "fast", 7}, {9, "native", 0}};

TEST(LibraryName, IsAWordThatAFileCanHave) {
  EXPECT_TRUE(IsLibraryName("native"));
  EXPECT_TRUE(IsLibraryName("a-B_9"));
  EXPECT_TRUE(IsLibraryName(std::string(kMaxLibraryName, 'a')));
  for (const std::string& name :
       {std::string(), std::string(kMaxLibraryName + 1, 'a'), std::string("../a"), std::string("a b"),
        std::string("a.so"), std::string("a\x1b"), std::string("a\0", 2)}) {
    EXPECT_FALSE(IsLibraryName(name)) << name;
  }
}

TEST(KernelLibraries, RoundTripAndRefuseEveryTruncation) {
  ByteWriter out;
  EncodeKernelLibraries(out, kLibraries);
  const auto back = DecodeKernelLibraries(out.bytes());
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back.value(), kLibraries);
  for (size_t size = 0; size < out.size(); ++size)
    EXPECT_FALSE(DecodeKernelLibraries(out.bytes().first(size)).ok()) << size;
}

TEST(KernelLibraries, RefuseNamesAndCountsThatCannotBe) {
  const auto decodes = [](const KernelLibraryInfo& library) {
    ByteWriter out;
    EncodeKernelLibraries(out, std::span(&library, 1));
    return DecodeKernelLibraries(out.bytes()).ok();
  };
  EXPECT_TRUE(decodes({"a", "", "", {}}));
  EXPECT_FALSE(decodes({"", "", "", {}}));
  EXPECT_FALSE(decodes({"a/b", "", "", {}}));
  EXPECT_FALSE(decodes({"a", "", "", {std::string(5000, 'x')}}));
  EXPECT_FALSE(DecodeKernelLibraries(testing::Bytes(uint32_t{0xffffffff})).ok());
  ByteWriter many;
  many.put(uint32_t{1});
  for (const char* const text : {"a", "", ""}) many.put_string(text);
  many.put(kMaxOperators + 1);
  many.append(std::vector<std::byte>(4 * (kMaxOperators + 1)).data(), 4 * (kMaxOperators + 1));
  EXPECT_FALSE(DecodeKernelLibraries(many.bytes()).ok());
}

TEST(KernelFigures, RoundTripAndRefuseEveryTruncation) {
  ByteWriter out;
  EncodeKernelFigures(out, kFigures);
  const auto back = DecodeKernelFigures(out.bytes());
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back.value(), kFigures);
  for (size_t size = 0; size < out.size(); ++size)
    EXPECT_FALSE(DecodeKernelFigures(out.bytes().first(size)).ok()) << size;
  EXPECT_FALSE(DecodeKernelFigures(testing::Bytes(uint32_t{kMaxOperators + 1})).ok());
  EXPECT_FALSE(DecodeKernelFigures(testing::Bytes(uint32_t{1}, uint32_t{0}, uint32_t{1}, '/', uint64_t{0})).ok());
}

}  // namespace
}  // namespace flagos
