// SPDX-License-Identifier: Apache-2.0
#include "proto/socket/descriptors.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <span>

#include "proto/socket/unix_socket.h"

namespace flagos {
namespace {

ptrdiff_t OpenDescriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

uint64_t Inode(int fd) {
  struct stat status {};
  EXPECT_EQ(fstat(fd, &status), 0);
  return status.st_ino;
}

class Descriptors : public ::testing::Test {
 protected:
  void SetUp() override {
    auto pair = UnixPair();
    ASSERT_TRUE(pair.ok());
    std::tie(left, right) = std::move(pair).value();
    for (UniqueFd& region : regions) {
      auto made = CreateRegion("test", 4096);
      ASSERT_TRUE(made.ok());
      region = std::move(made).value();
    }
  }
  UniqueFd left, right;
  std::array<UniqueFd, 2> regions;
};

TEST_F(Descriptors, ArriveUnderTheirTickets) {
  ASSERT_TRUE(SendDescriptor(left.get(), 7, regions[0].get()).ok());
  ASSERT_TRUE(SendDescriptor(left.get(), 9, regions[1].get()).ok());
  const auto first = TakeDescriptor(right.get(), 7), second = TakeDescriptor(right.get(), 9);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(Inode(first.value().get()), Inode(regions[0].get()));
  EXPECT_EQ(Inode(second.value().get()), Inode(regions[1].get()));
}

TEST_F(Descriptors, OthersArePassedOverAndClosed) {
  const auto before = OpenDescriptors();
  ASSERT_TRUE(SendDescriptor(left.get(), 1, regions[0].get()).ok());
  ASSERT_TRUE(SendDescriptor(left.get(), 2, regions[1].get()).ok());
  const auto taken = TakeDescriptor(right.get(), 2);
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(Inode(taken.value().get()), Inode(regions[1].get()));
  EXPECT_EQ(OpenDescriptors(), before + 1);
}

TEST_F(Descriptors, NoneIsAnErrorAndNoWait) {
  EXPECT_EQ(TakeDescriptor(right.get(), 1).error().code, ErrorCode::kMalformed);
  left.reset();
  EXPECT_EQ(TakeDescriptor(right.get(), 1).error().code, ErrorCode::kMalformed);
}

TEST_F(Descriptors, AHostilePeerIsRefused) {
  const auto before = OpenDescriptors();
  const uint64_t ticket = 3;
  const auto bytes = std::as_bytes(std::span(&ticket, 1));
  ASSERT_TRUE(SendRecord(left.get(), bytes).ok());  // without a descriptor
  EXPECT_EQ(TakeDescriptor(right.get(), ticket).error().code, ErrorCode::kMalformed);
  ASSERT_TRUE(SendRecord(left.get(), bytes, std::array{regions[0].get(), regions[1].get()}).ok());
  EXPECT_EQ(TakeDescriptor(right.get(), ticket).error().code, ErrorCode::kMalformed);
  ASSERT_TRUE(SendRecord(left.get(), bytes.first(5), std::array{regions[0].get()}).ok());
  EXPECT_EQ(TakeDescriptor(right.get(), ticket).error().code, ErrorCode::kMalformed);
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(Descriptors, SendingNeverBlocks) {
  Error error;
  for (int sent = 0; sent < 100'000 && error.ok(); ++sent) error = SendDescriptor(left.get(), 1, regions[0].get());
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace flagos
