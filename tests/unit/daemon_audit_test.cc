// SPDX-License-Identifier: Apache-2.0
// The audit log's parts. The chain as a whole, against an independent SHA-256, is tested in tests/e2e/test_audit.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "server/daemon/audit/log.h"
#include "tests/support/daemon_process.h"

namespace flagos::daemon {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

AuditRecord Example() {
  AuditRecord record;
  record.operation = "op-00000001-7";
  record.actor = {.uid = 1000, .pid = 4711, .user = "alice"};
  record.verb = "session.kill";
  record.target = "s3";
  record.after = {{"grace", 10}};
  record.reason = "quote \" and end";
  record.result = "accepted";
  return record;
}

// The hash is `printf %s LINE | sha256sum` of the line without it.
TEST(AuditRecord, Golden) {
  const std::string line = FormatAuditRecord(Example(), {.sequence = 6}, 1'700'000'000'123'456);
  EXPECT_EQ(line,
            R"({"sequence":7,"time":"2023-11-14T22:13:20.123456Z","operation":"op-00000001-7","actor":{"uid":1000,)"
            R"("user":"alice","pid":4711},"verb":"session.kill","target":"s3","before":null,"after":{"grace":10},)"
            R"("reason":"quote \" and end","result":"accepted","previous":")"
            R"(0000000000000000000000000000000000000000000000000000000000000000","hash":")"
            R"(baae0dc8c8b2c962725bb54ddfc30d83ae23cb5f63714b4d52c7176f7c08549f"})");
}

TEST(AuditRecord, LinksAreReadFromBytes) {
  const std::string line = FormatAuditRecord(Example(), {.sequence = 6}, 0);
  const auto link = ReadAuditLink(line);
  ASSERT_TRUE(link);
  EXPECT_EQ(link->sequence, 7u);
  EXPECT_EQ(link->previous, kNoAuditHash);
  EXPECT_TRUE(link->intact);
  for (size_t i = 0; i < line.size(); ++i) {
    std::string changed = line;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    const auto read = ReadAuditLink(changed);
    EXPECT_FALSE(read && read->intact && read->hash == link->hash) << "byte " << i;
  }
  for (const char* const none : {"", "{}", R"({"sequence":1,"hash":""})", R"({"sequence":x})"}) {
    EXPECT_FALSE(ReadAuditLink(none)) << none;
  }
}

TEST(AuditRecord, TextOfStrangersIsBounded) {
  AuditRecord record = Example();
  record.reason = std::string(100'000, 'x');
  record.after = {{"program", std::string(100'000, 'y')}, {"list", {std::string(100'000, 'z')}}};
  record.target = "\xff\n,\"hash\":\"";
  const std::string line = FormatAuditRecord(record, {}, 0);
  EXPECT_LT(line.size(), 5000u);
  EXPECT_THAT(line, Not(HasSubstr("\n")));
  const auto link = ReadAuditLink(line);
  ASSERT_TRUE(link);
  EXPECT_TRUE(link->intact);
}

class AuditLogTest : public ::testing::Test {
 protected:
  AuditLogTest() { config_.file = (fs::path(folder_.path()) / "audit.log").string(); }

  std::unique_ptr<AuditLog> open() {
    auto log = AuditLog::Open(config_);
    EXPECT_TRUE(log.ok()) << log.status();
    return log.ok() ? *std::move(log) : nullptr;
  }
  void append(int records) {
    const auto log = open();
    for (int i = 0; i < records; ++i) log->append(Example());
  }
  absl::StatusOr<AuditChain> verify() const {
    const auto head = ReadAuditHead(AuditHeadFile(config_.file, ""));
    if (!head.ok()) return head.status();
    return VerifyAudit(AuditFiles(config_.file), *head);
  }
  std::string text() const {
    std::ifstream in(config_.file);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  ::flagos::testing::TemporaryFolder folder_;
  AuditConfig config_;
};

TEST_F(AuditLogTest, GoesOnWithItsChain) {
  append(3);
  append(2);
  const auto chain = verify();
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ(chain->records, 6u);  // audit.start, too
  EXPECT_EQ(chain->unconfirmed, 0u);
}

TEST_F(AuditLogTest, RotationKeepsTheChainAndTheNewestFiles) {
  config_.max_size = 2000;
  config_.keep = 3;
  append(100);
  const auto files = AuditFiles(config_.file);
  EXPECT_THAT(files, SizeIs(4));
  for (const std::string& file : files) EXPECT_LE(fs::file_size(file), 2000u);
  const auto chain = verify();
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ(chain->ends.last.sequence, 101u);
  EXPECT_GT(chain->ends.first, 80u);
  EXPECT_EQ(files.front(), RotatedAuditFile(config_.file, chain->ends.first));
  append(1);
  EXPECT_EQ(verify()->ends.last.sequence, 102u);

  fs::remove(files[1]);
  EXPECT_THAT(std::string(verify().status().message()), HasSubstr("are missing before this one"));
  fs::remove(files[0]);
  EXPECT_THAT(std::string(verify().status().message()), HasSubstr("broken at record "));
}

TEST_F(AuditLogTest, AnEmptyFileAfterARotationIsNoGap) {
  append(3);
  fs::rename(config_.file, RotatedAuditFile(config_.file, 1));  // flagosd was killed between two steps
  append(1);
  ASSERT_TRUE(verify().ok()) << verify().status();
  EXPECT_EQ(verify()->ends.last.sequence, 5u);
}

TEST_F(AuditLogTest, ATornEndIsCutOffAndSaid) {
  append(3);
  const std::string whole = text();
  std::ofstream(config_.file, std::ios::app) << "{\"sequence\":5,\"ti";
  EXPECT_EQ(verify()->torn, 17u);
  append(0);
  EXPECT_TRUE(text().starts_with(whole + "{\"sequence\":5,"));
  EXPECT_THAT(text(), HasSubstr("\"torn_bytes\":17"));
  EXPECT_TRUE(verify().ok());
}

TEST_F(AuditLogTest, WithoutItsHeadALogIsNotTrusted) {
  append(3);
  fs::remove(AuditHeadFile(config_.file, ""));
  append(0);
  EXPECT_THAT(text(), HasSubstr("is missing, and 4 records are there"));
  ASSERT_TRUE(verify().ok());
  EXPECT_EQ(verify()->records, 1u);
}

TEST_F(AuditLogTest, AHeadWithoutItsLogIsALoss) {
  append(3);
  fs::remove(config_.file);
  EXPECT_THAT(std::string(verify().status().message()), HasSubstr("broken at record 1\n"));
  append(0);
  EXPECT_THAT(text(), HasSubstr("records 1 to 4, which the head knows, are missing"));
}

TEST_F(AuditLogTest, OneWriterAtATime) {
  const auto log = open();
  EXPECT_TRUE(absl::IsAlreadyExists(AuditLog::Open(config_).status()));
}

TEST_F(AuditLogTest, AHeadThatCannotBeWrittenIsCounted) {
  const std::string elsewhere = (fs::path(folder_.path()) / "no" / "head").string();
  config_.head = elsewhere;
  const auto log = open();
  EXPECT_TRUE(::flagos::testing::Eventually([&] { return log->failures() > 0; }));
  EXPECT_EQ(log->records(), 1u);
  fs::create_directory(fs::path(elsewhere).parent_path());
  EXPECT_TRUE(::flagos::testing::Eventually([&] { return fs::exists(elsewhere); })) << "it is tried again";
}

}  // namespace
}  // namespace flagos::daemon
