// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <sstream>

#include "server/ctl/commands.h"
#include "server/ctl/exit_code.h"

namespace flagos::ctl {
namespace {

struct Outcome {
  int code = 0;
  std::string out, err;
};

Outcome Flagosctl(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  const int code = Run(arguments, out, err, false);
  return {code, out.str(), err.str()};
}

constexpr int kUsage = static_cast<int>(ExitCode::kUsage);

TEST(Options, MistakesAreUsageErrorsInThreeLines) {
  const std::vector<std::vector<std::string>> mistakes = {
      {},
      {"dance"},
      {"session"},
      {"session", "show"},
      {"session", "kill", "s1"},  // no reason
      {"ps", "-o", "xml"},
      {"ps", "--units", "furlongs"},
      {"ps", "--timeout", "3"},
      {"ps", "--timeout", "-3s"},
      {"ps", "--watch=soon"},
      {"device", "show", "first"},
      {"lease", "open", "--devices", "0,x"},
      {"lease", "open", "--ttl", "0s"},
  };
  for (const auto& arguments : mistakes) {
    const Outcome outcome = Flagosctl(arguments);
    EXPECT_EQ(outcome.code, kUsage);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 3) << outcome.err;
    EXPECT_EQ(outcome.err.substr(0, 11), "flagosctl: ");
  }
}

TEST(Options, HelpSucceeds) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{{"--help"}, {"session", "kill", "--help"}}) {
    const Outcome outcome = Flagosctl(arguments);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_NE(outcome.out.find("Usage"), std::string::npos);
  }
}

TEST(Options, AreUnderstoodBeforeAndBehindTheVerb) {
  // Both reach for a socket that is not there.
  const int unreachable = static_cast<int>(ExitCode::kUnreachable);
  EXPECT_EQ(Flagosctl({"-H", "/nonexistent/socket", "ps"}).code, unreachable);
  EXPECT_EQ(Flagosctl({"ps", "-H", "/nonexistent/socket", "-o", "json", "--fields", "sid,owner", "--sort=-age"}).code,
            unreachable);
  EXPECT_EQ(Flagosctl({"session", "list", "--all", "--socket", "/nonexistent/socket"}).code, unreachable);
}

TEST(Options, TheSocketComesFromTheEndpoint) {
  EXPECT_EQ(*DefaultSocket(nullptr), "/run/flagos/flagosd.sock");
  EXPECT_EQ(*DefaultSocket(""), "/run/flagos/flagosd.sock");
  EXPECT_EQ(*DefaultSocket("embedded"), "/run/flagos/flagosd.sock");
  EXPECT_EQ(*DefaultSocket("unix:///tmp/x.sock"), "/tmp/x.sock");
  for (const char* const endpoint : {"unix://", "tcp://host:1", "/tmp/x.sock"}) {
    EXPECT_EQ(DefaultSocket(endpoint).status().code(), absl::StatusCode::kInvalidArgument) << endpoint;
  }
}

TEST(Errors, OfOneLineAreSetApart) {
  std::ostringstream out;
  PrintFailure(out, absl::NotFoundError("there is no session \"s1\"; `flagosctl ps` shows the sessions"));
  EXPECT_EQ(out.str(), "flagosctl: there is no session \"s1\"\n  `flagosctl ps` shows the sessions\n");
}

TEST(ExitCodes, AreThoseOfTheManual) {
  const auto code = [](absl::StatusCode status) { return static_cast<int>(ExitCodeOf(absl::Status(status, "x"))); };
  EXPECT_EQ(code(absl::StatusCode::kOk), 0);
  EXPECT_EQ(code(absl::StatusCode::kInternal), 1);
  EXPECT_EQ(code(absl::StatusCode::kInvalidArgument), 2);
  EXPECT_EQ(code(absl::StatusCode::kUnavailable), 3);
  EXPECT_EQ(code(absl::StatusCode::kNotFound), 4);
  EXPECT_EQ(code(absl::StatusCode::kPermissionDenied), 5);
  EXPECT_EQ(code(absl::StatusCode::kFailedPrecondition), 6);
  EXPECT_EQ(code(absl::StatusCode::kDeadlineExceeded), 7);
  EXPECT_EQ(static_cast<int>(ExitCodeOf(Partial("what", "why", "advice"))), 8);
}

TEST(Completion, ListsEveryCommandWithItsOptions) {
  for (const std::string shell : {"bash", "zsh"}) {
    const Outcome outcome = Flagosctl({"completion", shell});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    for (const char* const line : {"flagosctl device\"", "\"list show\"", "flagosctl runtime install\"", "--from"}) {
      EXPECT_NE(outcome.out.find(line), std::string::npos) << shell << ": " << line;
    }
  }
}

}  // namespace
}  // namespace flagos::ctl
