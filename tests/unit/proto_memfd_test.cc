// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "proto/shm/layout.h"
#include "proto/shm/memfd.h"
#include "tests/unit/proto_child.h"

namespace flagos {
namespace {

UniqueFd Region(uint64_t bytes = 2 * kPage) {
  auto region = CreateRegion("test", bytes);
  EXPECT_TRUE(region.ok()) << region.error().message;
  return std::move(region).value();
}

std::string PathOf(const UniqueFd& fd) { return "/proc/self/fd/" + std::to_string(fd.get()); }

ErrorCode MapError(int fd, uint64_t min_bytes) {
  const auto mapping = Mapping::Map(fd, Access::kReadWrite, min_bytes);
  return mapping.ok() ? ErrorCode::kOk : mapping.error().code;
}

TEST(Memfd, IsRoundedUpToPagesZeroAndCloseOnExec) {
  const UniqueFd fd = Region(kPage + 1);
  struct stat status {};
  ASSERT_EQ(::fstat(fd.get(), &status), 0);
  EXPECT_EQ(status.st_size, static_cast<off_t>(2 * kPage));
  EXPECT_NE(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  auto mapping = Mapping::Map(fd.get(), Access::kReadWrite, kPage);
  ASSERT_TRUE(mapping.ok());
  ASSERT_EQ(mapping.value().size(), 2 * kPage);
  for (size_t i = 0; i < mapping.value().size(); ++i) ASSERT_EQ(mapping.value().data()[i], std::byte{0});
}

TEST(Memfd, CannotBeTruncatedOrGrown) {
  const UniqueFd fd = Region();
  EXPECT_EQ(::ftruncate(fd.get(), 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::ftruncate(fd.get(), 3 * kPage), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_WRITE), -1) << "a peer cannot seal it against our writing either";
}

TEST(Memfd, MapsWhatIsWritten) {
  const UniqueFd fd = Region();
  auto read_only = ReopenReadOnly(fd.get());
  ASSERT_TRUE(read_only.ok());
  auto writer = Mapping::Map(fd.get(), Access::kReadWrite, kPage);
  auto reader = Mapping::Map(read_only.value().get(), Access::kReadOnly, kPage);
  ASSERT_TRUE(writer.ok() && reader.ok());
  writer.value().data()[kPage + 5] = std::byte{42};
  EXPECT_EQ(reader.value().data()[kPage + 5], std::byte{42});
}

TEST(Memfd, MapRefusesWhatAPeerCouldTruncate) {
  const UniqueFd unsealed(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), kPage), 0);
  EXPECT_EQ(MapError(unsealed.get(), kPage), ErrorCode::kMalformed);
  ASSERT_EQ(::fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
  EXPECT_EQ(MapError(unsealed.get(), kPage), ErrorCode::kMalformed) << "sealed against growing only";
  ASSERT_EQ(::fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_EQ(MapError(unsealed.get(), kPage), ErrorCode::kOk);
}

TEST(Memfd, MapRefusesWhatIsTooShortOrNoMemfd) {
  EXPECT_EQ(MapError(Region(kPage).get(), kPage + 1), ErrorCode::kMalformed);
  EXPECT_EQ(MapError(Region(kPage).get(), kPage), ErrorCode::kOk);
  EXPECT_EQ(MapError(-1, 0), ErrorCode::kMalformed);
  const UniqueFd null(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(MapError(null.get(), 0), ErrorCode::kMalformed);
  const UniqueFd file(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file) {
    ASSERT_EQ(::ftruncate(file.get(), kPage), 0);
    EXPECT_EQ(MapError(file.get(), kPage), ErrorCode::kMalformed);
  }
  const UniqueFd empty(::memfd_create("empty", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::fcntl(empty.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK), 0);
  EXPECT_EQ(MapError(empty.get(), 0), ErrorCode::kMalformed);
}

TEST(Memfd, AReadOnlyDescriptorCannotBecomeWritable) {
  const UniqueFd fd = Region();
  auto read_only = ReopenReadOnly(fd.get());
  ASSERT_TRUE(read_only.ok());
  const int reader = read_only.value().get();
  EXPECT_EQ(MapError(reader, kPage), ErrorCode::kUnavailable);
  EXPECT_EQ(::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, reader, 0), MAP_FAILED);
  EXPECT_EQ(errno, EACCES);
  EXPECT_EQ(::pwrite(reader, "x", 1, 0), -1);
  auto mapping = Mapping::Map(reader, Access::kReadOnly, kPage);
  ASSERT_TRUE(mapping.ok());
  EXPECT_EQ(::mprotect(mapping.value().data(), kPage, PROT_READ | PROT_WRITE), -1);
  EXPECT_EQ(errno, EACCES);
}

TEST(Memfd, AnotherUserCannotOpenItAgainForWriting) {
  const UniqueFd fd = Region();
  struct stat status {};
  ASSERT_EQ(::fstat(fd.get(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0400u);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  testing::Child other([&] {
    if (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0) return 2;
    const bool writable = ::open(PathOf(fd).c_str(), O_RDWR) >= 0;
    const bool readable = ::open(PathOf(fd).c_str(), O_RDONLY) >= 0;
    return writable || readable ? 1 : 0;
  });
  EXPECT_EQ(other.wait(), 0);
}

TEST(Memfd, AForkedChildHasNoMapping) {
  const UniqueFd fd = Region();
  auto mapping = Mapping::Map(fd.get(), Access::kReadWrite, kPage);
  ASSERT_TRUE(mapping.ok());
  void* const at = mapping.value().data();
  unsigned char resident = 0;
  ASSERT_EQ(::mincore(at, kPage, &resident), 0);
  testing::Child child([at] {
    unsigned char there = 0;
    return ::mincore(at, kPage, &there) == -1 && errno == ENOMEM ? 0 : 1;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(Memfd, AForkedChildMayKeepAMappingOfItsOwn) {
  const UniqueFd fd = Region();
  auto mapped = Mapping::Map(fd.get(), Access::kReadWrite, 2 * kPage);
  ASSERT_TRUE(mapped.ok());
  const Mapping& mapping = mapped.value();
  mapping.inherit();
  mapping.data()[0] = mapping.data()[kPage] = std::byte{1};
  testing::Child child([&] {
    mapping.make_private(fd.get());
    mapping.data()[0] = std::byte{2};
    return mapping.data()[0] == std::byte{2} && mapping.data()[kPage] == std::byte{1} ? 0 : 1;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(mapping.data()[0], std::byte{1}) << "the child wrote into its parent's region";
  testing::Child other([&] {
    mapping.drop();
    unsigned char there = 0;
    return ::mincore(mapping.data(), kPage, &there) == -1 && errno == ENOMEM ? 0 : 1;
  });
  EXPECT_EQ(other.wait(), 0);
}

TEST(UniqueFd, ClosesOnceAndMoves) {
  UniqueFd first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int number = first.get();
  UniqueFd second = std::move(first);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(second.get(), number);
  second = UniqueFd();
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

}  // namespace
}  // namespace flagos
