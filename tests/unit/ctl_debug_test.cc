// SPDX-License-Identifier: Apache-2.0
// The parts of a debug bundle. tests/e2e/test_debug_bundle.py opens a whole one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "server/ctl/debug/redact.h"
#include "server/ctl/debug/system.h"

namespace flagos::ctl {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Redact, Tokens) {
  const std::string token(64, 'a');
  EXPECT_EQ(Redact("lease l1 " + token + " is", {}), "lease l1 [redacted] is");
  EXPECT_EQ(Redact(token + token, {}), "[redacted]") << "and what is longer";
  const std::string shorter(63, 'a');
  EXPECT_EQ(Redact(shorter, {}), shorter);
}

TEST(Redact, SecretsThatAreKnown) {
  EXPECT_EQ(Redact("url=https://u:hunter22@host", {"hunter22"}), "url=https://u:[redacted]@host");
  EXPECT_EQ(Redact("text", {""}), "text");
}

TEST(Redact, ValuesWhoseNamesSaySo) {
  EXPECT_EQ(Redact("DB_PASSWORD=x1 y", {}), "DB_PASSWORD=[redacted] y");
  EXPECT_EQ(Redact(R"({"api_key": "abc", "b": 1})", {}), R"({"api_key": "[redacted]", "b": 1})");
  EXPECT_EQ(Redact("token: abc\nnext", {}), "token: [redacted]\nnext");
  for (const char* const innocent : {"FLAGOS_TOKEN names a lease", "the token \"x\" is none", "", "=", "tokens"}) {
    EXPECT_EQ(Redact(innocent, {}), innocent);
  }
}

TEST(Redact, FindsSecretsInTheEnvironment) {
  ::setenv("MY_SECRET_THING", "dont-tell", 1);
  ::setenv("MY_TOKEN", "1", 1);
  EXPECT_THAT(SecretsOfEnvironment(), Contains("dont-tell"));
  EXPECT_THAT(SecretsOfEnvironment(), Not(Contains("1"))) << "that would be everywhere";
  ::unsetenv("MY_SECRET_THING");
  ::unsetenv("MY_TOKEN");
}

TEST(System, HasTheKernelAndNoEnvironment) {
  ::setenv("MY_VARIABLE", "a-value-of-the-environment", 1);
  const std::string text = DescribeSystem();
  EXPECT_THAT(text, HasSubstr("kernel: Linux "));
  EXPECT_THAT(text, HasSubstr("Max open files"));
  EXPECT_THAT(text, Not(HasSubstr("a-value-of-the-environment")));
  ::unsetenv("MY_VARIABLE");
}

}  // namespace
}  // namespace flagos::ctl
