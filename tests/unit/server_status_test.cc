// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "proto/socket/unix_socket.h"
#include "server/common/fd.h"
#include "server/common/status.h"
#include "server/common/strings.h"

namespace flagos {
namespace {

TEST(StatusTest, KeepsClassAndTextOfWireErrors) {
  for (int code = 0; code <= static_cast<int>(ErrorCode::kTimeout); ++code) {
    const Error error = MakeError(static_cast<ErrorCode>(code), code == 0 ? "" : "what; what to do");
    const absl::Status status = ToStatus(error);
    EXPECT_EQ(status.ok(), code == 0);
    EXPECT_EQ(FromStatus(status).message, error.message);
    // The class survives any number of turns.
    EXPECT_EQ(ToStatus(FromStatus(status)).ok(), status.ok());
  }
  EXPECT_EQ(FromStatus(ToStatus(MakeError(ErrorCode::kPermission, "x"))).code, ErrorCode::kPermission);
  EXPECT_EQ(FromStatus(ToStatus(MakeError(ErrorCode::kNotFound, "x"))).code, ErrorCode::kNotFound);
}

TEST(StatusTest, SaysWhatFailedWhyAndWhatToDo) {
  const absl::Status status = SystemError(EACCES, "cannot open x", "ask its owner");
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_EQ(MessageOf(status), "cannot open x: Permission denied; ask its owner");
}

TEST(StringsTest, ShowsOnlyWhatIsPrintable) {
  EXPECT_EQ(Printable("a\x1b[31m\n\xff~ b"), "a?[31m??~ b");
  EXPECT_EQ(Cat("a", 1, std::string("b"), uint64_t{2}), "a1b2");
}

class RecordReaderTest : public ::testing::Test {
 protected:
  RecordReaderTest() {
    auto pair = UnixPair();
    ours_ = std::move(pair.value().first);
    theirs_ = std::move(pair.value().second);
  }
  void send(std::string_view text) {
    ASSERT_EQ(::send(theirs_.get(), text.data(), text.size(), 0), ssize_t(text.size()));
  }
  UniqueFd ours_, theirs_;
  RecordReader reader_{4};
};

TEST_F(RecordReaderTest, CollectsARecordFromPieces) {
  EXPECT_EQ(reader_.read(ours_.get()), RecordReader::Status::kMore);
  send("ab");
  EXPECT_EQ(reader_.read(ours_.get()), RecordReader::Status::kMore);
  send("cdef");
  EXPECT_EQ(reader_.read(ours_.get()), RecordReader::Status::kRecord);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(reader_.bytes().data()), 4), "abcd");
  reader_.next(2);
  EXPECT_EQ(reader_.read(ours_.get()), RecordReader::Status::kRecord);
}

TEST_F(RecordReaderTest, TellsAnEndBetweenRecordsFromOneWithin) {
  theirs_.reset();
  EXPECT_EQ(reader_.read(ours_.get()), RecordReader::Status::kClosed);
}

TEST_F(RecordReaderTest, TellsAnEndWithinARecord) {
  send("ab");
  theirs_.reset();
  EXPECT_EQ(reader_.read(ours_.get()), RecordReader::Status::kBroken);
}

TEST_F(RecordReaderTest, TakesNoDescriptors) {
  const size_t before = CountOpenFiles();
  const int fd = STDERR_FILENO;
  const std::byte bytes[4] = {};
  ASSERT_TRUE(SendRecord(theirs_.get(), bytes, std::span(&fd, 1)).ok());
  EXPECT_EQ(reader_.read(ours_.get()), RecordReader::Status::kRecord);
  EXPECT_EQ(CountOpenFiles(), before);
}

}  // namespace
}  // namespace flagos
