// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <climits>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "server/common/log.h"
#include "server/common/log_sink.h"

namespace flagos::log {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int64_t kTime = 1'700'000'000'123;  // 2023-11-14T22:13:20.123Z

TEST(LogTest, WritesLogfmtThatQuotesWhatNeedsIt) {
  EXPECT_EQ(FormatLine(Format::kText, kTime, Level::kInfo, "session started", {{"session", "s1"}, {"pid", 4711}}),
            R"(time=2023-11-14T22:13:20.123Z level=info msg="session started" session=s1 pid=4711)");
  EXPECT_EQ(FormatLine(Format::kText, kTime, Level::kWarn, "x", {{"a", "q\"\n="}, {"b", ""}, {"c", true}, {"d", 0.5}}),
            R"(time=2023-11-14T22:13:20.123Z level=warn msg=x a="q\"\n=" b="" c=true d=0.5)");
}

TEST(LogTest, WritesJsonWhateverBytesThereAre) {
  EXPECT_EQ(
      FormatLine(Format::kJson, kTime, Level::kError, "no", {{"text", "a\x80z\x01"}, {"big", UINT64_MAX}}),
      "{\"time\":\"2023-11-14T22:13:20.123Z\",\"level\":\"error\",\"msg\":\"no\",\"text\":\"a\xEF\xBF\xBDz\\u0001\","
      "\"big\":18446744073709551615}");
}

TEST(LogTest, ParsesNames) {
  EXPECT_EQ(ParseLevel("warn"), Level::kWarn);
  EXPECT_EQ(ParseLevel("warning"), std::nullopt);
  EXPECT_EQ(ParseFormat("json"), Format::kJson);
  EXPECT_EQ(ParseFormat("JSON"), std::nullopt);
}

TEST(LogFormatTest, ALineThatIsTooLongKeepsItsForm) {
  for (const char* unit : {"x", "\n", "\xff", "\u4f60"}) {
    std::string text = "what ";
    while (text.size() < 20'000) text += unit;
    text += " why";
    const std::string line = FormatLine(Format::kJson, 0, Level::kError, "it failed", {{"error", text}, {"n", 7}});
    EXPECT_LE(line.size(), kMaxLine);
    const auto parsed = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(parsed.is_object()) << line;
    EXPECT_EQ(parsed.at("n"), 7);
    EXPECT_THAT(parsed.at("error").get<std::string>(), ::testing::StartsWith("what "));
    EXPECT_THAT(parsed.at("error").get<std::string>(), ::testing::EndsWith(" why"));
  }
}

class LogFileTest : public ::testing::Test {
 protected:
  LogFileTest() : path_(::testing::TempDir() + "flagos-log-" + std::to_string(::getpid())) {}
  ~LogFileTest() override {
    EXPECT_TRUE(Start({}).ok());
    ::unlink(path_.c_str());
  }
  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  const std::string path_;
};

TEST_F(LogFileTest, KeepsToItsLevel) {
  ASSERT_TRUE(Start({.level = Level::kWarn, .format = Format::kJson, .file = path_}).ok());
  Info("quiet");
  Warn("loud", {{"n", 1}});
  EXPECT_THAT(text(), Not(HasSubstr("quiet")));
  EXPECT_THAT(text(), HasSubstr(R"("msg":"loud","n":1})"));
}

TEST_F(LogFileTest, RelaysLinesOfOtherPrograms) {
  ASSERT_TRUE(Start({.level = Level::kInfo, .format = Format::kText, .file = path_}).ok());
  Relay(R"({"time":"2020-01-01T00:00:00Z","level":"warn","msg":"from there","n":{"deep":[1]}})", {{"executor", "e1"}});
  Relay(R"({"level":"debug","msg":"hidden"})", {{"executor", "e1"}});
  Relay("plain [words", {{"executor", "e1"}});
  Relay(R"({"level":7,"msg":[]})", {{"executor", "e1"}});
  Relay(R"({"level":"info","msg":"x","a\nlevel=error msg=forged b":1})", {{"executor", "e1"}});
  EXPECT_THAT(text(), HasSubstr("msg=x a_level_error_msg_forged_b=1 executor=e1"));
  EXPECT_THAT(text(), HasSubstr(R"(level=warn msg="from there" n="{\"deep\":[1]}" executor=e1)"));
  EXPECT_THAT(text(), Not(HasSubstr("2020")));
  EXPECT_THAT(text(), Not(HasSubstr("hidden")));
  EXPECT_THAT(text(), HasSubstr(R"(level=info msg="plain [words" executor=e1)"));
  EXPECT_THAT(text(), HasSubstr(R"(msg="{\"level\":7,\"msg\":[]}")"));
}

TEST_F(LogFileTest, IsOpenedAnewByItsName) {
  ASSERT_TRUE(Start({.file = path_}).ok());
  Info("before");
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  Info("lost with the file");
  ASSERT_TRUE(Reopen().ok());
  Info("after");
  EXPECT_THAT(text(), HasSubstr("msg=after"));
  EXPECT_THAT(text(), Not(HasSubstr("before")));
}

TEST_F(LogFileTest, SaysWhatIsWrongWithTheFile) {
  const absl::Status status = Start({.file = "/no/such/folder/log"});
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("/no/such/folder/log: No such file or directory; choose a file"));
}

TEST(LogSinkTest, CountsWhatAFullDiskDoesNotTake) {
  ASSERT_TRUE(Start({.file = "/dev/full"}).ok());
  for (int i = 0; i < 3; ++i) Info("lost");
  EXPECT_EQ(Dropped(), 3u);
  ASSERT_TRUE(Start({}).ok());
}

TEST(LogSinkTest, NeverWaitsForAPipeAndTellsWhatWasLost) {
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  UniqueFd reader(pipe[0]);
  DroppingSink sink(UniqueFd(pipe[1]), [](uint64_t count) { return "lost " + std::to_string(count); });
  const std::string line(1000, 'x');
  const auto write = [&](const std::string& text) {
    sink.log(spdlog::details::log_msg("test", spdlog::level::info, text));
  };
  for (int i = 0; i < 200; ++i) write(line);  // more than a pipe holds, and nobody reads
  const uint64_t dropped = sink.dropped();
  EXPECT_GT(dropped, 100u);
  EXPECT_LT(dropped, 200u);

  std::string read(1 << 17, '\0');
  ASSERT_GT(::read(reader.get(), read.data(), read.size()), 0);
  write("after");
  std::string rest(PIPE_BUF, '\0');
  rest.resize(static_cast<size_t>(::read(reader.get(), rest.data(), rest.size())));
  EXPECT_EQ(rest, "lost " + std::to_string(dropped) + "\nafter\n");
}

TEST(LogSinkTest, CutsLinesThatAPipeWouldNotTakeWhole) {
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  UniqueFd reader(pipe[0]);
  DroppingSink sink(UniqueFd(pipe[1]), [](uint64_t) { return std::string(); });
  sink.log(spdlog::details::log_msg("test", spdlog::level::info, std::string(10 * PIPE_BUF, 'x')));
  std::string text(20 * PIPE_BUF, '\0');
  EXPECT_EQ(::read(reader.get(), text.data(), text.size()), PIPE_BUF);
  EXPECT_THAT(text, StartsWith("xxx"));
  EXPECT_EQ(text[PIPE_BUF - 1], '\n');
}

}  // namespace
}  // namespace flagos::log
