// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "server/daemon/config/file.h"
#include "server/daemon/config/options.h"
#include "tests/support/daemon_process.h"

namespace flagos::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class ConfigTest : public ::testing::Test {
 protected:
  std::vector<std::string> read(const std::string& text) {
    return ReadConfigFiles(folder_.write("flagosd.toml", text), config_);
  }
  // Runs the command line; the exit code where it ends there.
  std::optional<int> run(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "flagosd");
    auto result = ReadCommandLine(static_cast<int>(arguments.size()), arguments.data());
    if (const int* const code = std::get_if<int>(&result)) return *code;
    config_ = std::get<CommandLine>(result).config;
    return std::nullopt;
  }

  testing::TemporaryFolder folder_;
  Config config_;
};

TEST_F(ConfigTest, TheExampleHoldsTheDefaults) {
  const Config defaults;
  EXPECT_THAT(ReadConfigFiles(FLAGOS_EXAMPLE_CONFIG, config_), IsEmpty());
  EXPECT_EQ(config_.daemon.listen, defaults.daemon.listen);
  EXPECT_EQ(config_.daemon.log.format, defaults.daemon.log.format);
  EXPECT_EQ(config_.daemon.log.level, defaults.daemon.log.level);
  EXPECT_EQ(config_.daemon.idle_after, defaults.daemon.idle_after);
  EXPECT_EQ(config_.devices.vendor, defaults.devices.vendor);
  EXPECT_EQ(config_.devices.count, defaults.devices.count);
  EXPECT_EQ(config_.devices.include, defaults.devices.include);
  EXPECT_EQ(config_.devices.telemetry, defaults.devices.telemetry);
  EXPECT_EQ(config_.pool.warm, defaults.pool.warm);
  EXPECT_EQ(config_.pool.start_timeout, defaults.pool.start_timeout);
  EXPECT_EQ(config_.session.ring, defaults.session.ring);
  EXPECT_EQ(config_.session.arena, defaults.session.arena);
  EXPECT_EQ(config_.session.faulted_keep, defaults.session.faulted_keep);
  EXPECT_EQ(config_.pool.max_warm, defaults.pool.max_warm);
  EXPECT_EQ(config_.session.max_per_user, defaults.session.max_per_user);
  EXPECT_EQ(config_.session.max_leases_per_user, defaults.session.max_leases_per_user);
  EXPECT_EQ(config_.audit.max_size, defaults.audit.max_size);
  EXPECT_EQ(config_.audit.keep, defaults.audit.keep);
}

TEST_F(ConfigTest, ReadsEveryKey) {
  EXPECT_THAT(read(R"(
schema = 1
[daemon]
listen = "/tmp/x.sock"
log = "json"
log_level = "debug"
log_file = "/tmp/x.log"
idle_after = "2m"
[devices]
vendor = "null"
count = 4
include = [0, 2]
telemetry = "5s"
[pool]
warm = 3
start_timeout = "1500ms"
[session]
ring = "1MiB"
arena = "64MiB"
faulted_keep = "1h"
max_per_user = 7
[vendor.null]
libtorch = "/opt/torch"
options = { name = "x", number = 3 }
)"),
              IsEmpty());
  EXPECT_EQ(config_.daemon.listen, "/tmp/x.sock");
  EXPECT_EQ(config_.daemon.log.format, log::Format::kJson);
  EXPECT_EQ(config_.daemon.log.level, log::Level::kDebug);
  EXPECT_EQ(config_.daemon.log.file, "/tmp/x.log");
  EXPECT_EQ(config_.daemon.idle_after, 2min);
  EXPECT_EQ(config_.devices.vendor, "null");
  EXPECT_EQ(config_.devices.count, 4u);
  EXPECT_THAT(config_.devices.include, ElementsAre(0, 2));
  EXPECT_EQ(config_.devices.telemetry, 5s);
  EXPECT_EQ(config_.pool.warm, 3u);
  EXPECT_EQ(config_.pool.start_timeout, 1500ms);
  EXPECT_EQ(config_.session.ring, 1u << 20);
  EXPECT_EQ(config_.session.arena, 64u << 20);
  EXPECT_EQ(config_.session.faulted_keep, 1h);
  EXPECT_EQ(config_.session.max_per_user, 7u);
  EXPECT_EQ(config_.vendor().libtorch, "/opt/torch");
  EXPECT_THAT(config_.vendor().options, UnorderedElementsAre(std::pair("name", "x"), std::pair("number", "3")));
  EXPECT_THAT(Validate(config_), IsEmpty());
}

TEST_F(ConfigTest, NamesTheNearestKnownKey) {
  const auto errors = read(
      "schema = 1\n[pool]\nwarmm = 3\n[poool]\nwarm = 1\n[vendor.cpu]\nlibtroch = \"x\"\n[daemon]\nzzzzzzzz = 1\n");
  EXPECT_THAT(errors, UnorderedElementsAre(
                          EndsWith("flagosd.toml:3: unknown key [pool] warmm; did you mean warm?"),
                          EndsWith("flagosd.toml:4: unknown key [poool]; did you mean pool?"),
                          EndsWith("flagosd.toml:7: unknown key [vendor.cpu] libtroch; did you mean libtorch?"),
                          HasSubstr("flagosd.toml:9: unknown key [daemon] zzzzzzzz; deploy/flagosd.toml")));
}

TEST_F(ConfigTest, DemandsUnitsAndTypes) {
  const auto errors = read(R"([session]
ring = 4194304
arena = "1024"
faulted_keep = "5"
max_per_user = "many"
[pool]
warm = -1
start_timeout = 5
[daemon]
log = "xml"
log_level = 3
[devices]
include = "all"
)");
  EXPECT_THAT(errors, UnorderedElementsAre(HasSubstr(":2: [session] ring: expected a size with a unit"),
                                           HasSubstr(":3: [session] arena: \"1024\" is no size"),
                                           HasSubstr(":4: [session] faulted_keep: \"5\" is no duration"),
                                           HasSubstr(":5: [session] max_per_user: expected a whole number"),
                                           HasSubstr(":7: [pool] warm: expected a whole number"),
                                           HasSubstr(":8: [pool] start_timeout: expected a duration with a unit"),
                                           HasSubstr(":10: [daemon] log: expected \"text\" or \"json\""),
                                           HasSubstr(":11: [daemon] log_level: expected \"debug\""),
                                           HasSubstr(":13: [devices] include: expected a list")));
}

TEST_F(ConfigTest, SaysWhereAFileIsNoToml) {
  EXPECT_THAT(read("schema = 1\n[daemon\n"), ElementsAre(HasSubstr("flagosd.toml:2: ")));
  EXPECT_THAT(ReadConfigFiles(folder_.path() + "/absent.toml", config_), ElementsAre(HasSubstr("absent.toml: ")));
  EXPECT_THAT(read("schema = 2\n"), ElementsAre(HasSubstr(":1: schema: this flagosd reads schema 1 only")));
  EXPECT_THAT(read("daemon = 3\n"), ElementsAre(HasSubstr(":1: [daemon] must be a table")));
}

TEST_F(ConfigTest, AFolderIsNoFile) {
  EXPECT_THAT(ReadConfigFiles(folder_.path(), config_), ElementsAre(HasSubstr("is a directory")));
}

TEST_F(ConfigTest, DropInsHoldInLexicalOrder) {
  folder_.write("conf.d/20-second.toml", "[pool]\nwarm = 2\n");
  folder_.write("conf.d/10-first.toml", "[pool]\nwarm = 1\nstart_timeout = \"9s\"\n");
  folder_.write("conf.d/notes.txt", "not toml");
  EXPECT_THAT(read("[pool]\nwarm = 9\n[devices]\ncount = 3\n"), IsEmpty());
  EXPECT_EQ(config_.pool.warm, 2u);
  EXPECT_EQ(config_.pool.start_timeout, 9s);
  EXPECT_EQ(config_.devices.count, 3u);
}

TEST_F(ConfigTest, TellsTheMistakesOfEveryFile) {
  folder_.write("conf.d/a.toml", "[pool]\nwarm = \"x\"\n");
  EXPECT_THAT(read("[pool]\nworm = 1\n"), ElementsAre(HasSubstr("flagosd.toml:2"), HasSubstr("conf.d/a.toml:2")));
}

TEST_F(ConfigTest, ChecksTheWhole) {
  config_.session.ring = 3 << 20;
  config_.session.arena = 1;
  config_.devices.vendor = "../evil";
  config_.devices.count = 2;
  config_.devices.include = {0, 0, 5};
  config_.devices.telemetry = 10ms;
  EXPECT_THAT(Validate(config_),
              UnorderedElementsAre(HasSubstr("ring = 3MiB: must be a power of two"), HasSubstr("arena = 1B"),
                                   HasSubstr("vendor = \"../evil\""), HasSubstr("device 0 twice"),
                                   HasSubstr("telemetry = 10ms: must be 0s (never) or from 100ms to 3600s"),
                                   HasSubstr("device 5, which there is not")));
}

TEST_F(ConfigTest, AFlagBeatsTheEnvironmentWhichBeatsTheFile) {
  const std::string file = folder_.write("flagosd.toml", "[devices]\nvendor = \"a\"\ncount = 1\n[pool]\nwarm = 1\n");
  ::setenv("FLAGOSD_VENDOR", "b", 1);
  ::setenv("FLAGOSD_DEVICES", "2", 1);
  EXPECT_EQ(run({"--config", file.c_str(), "--vendor", "c", "--libtorch", "/t"}), std::nullopt);
  ::unsetenv("FLAGOSD_VENDOR");
  ::unsetenv("FLAGOSD_DEVICES");
  EXPECT_EQ(config_.devices.vendor, "c");
  EXPECT_EQ(config_.devices.count, 2u);
  EXPECT_EQ(config_.pool.warm, 1u);
  EXPECT_EQ(config_.vendor().libtorch, "/t");
}

TEST_F(ConfigTest, CheckConfigSaysOkOrEverythingThatIsWrong) {
  const std::string good = folder_.write("flagosd.toml", "schema = 1\n");
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(run({"--config", good.c_str(), "--check-config"}), kExitOk);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "ok\n");

  const std::string bad = folder_.write("flagosd.toml", "[pool]\nworm = 1\n[session]\nring = \"3MiB\"\n");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run({"--config", bad.c_str(), "--check-config"}), kExitUsage);
  const std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(told, HasSubstr("worm"));
  EXPECT_THAT(told, HasSubstr("ring = 3MiB"));
}

TEST_F(ConfigTest, RefusesWrongCommandLines) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run({"--no-such-flag"}), kExitUsage);
  EXPECT_EQ(run({"--embedded"}), kExitUsage);
  EXPECT_EQ(run({"--devices", "0"}), kExitUsage);
  EXPECT_EQ(run({"--devices", "65"}), kExitUsage);
  EXPECT_EQ(run({"--connection-fd", "3"}), kExitUsage);
  EXPECT_EQ(run({"--socket", "/tmp/x", "--log-level", "loud"}), kExitUsage);
  ::testing::internal::GetCapturedStderr();
}

}  // namespace
}  // namespace flagos::daemon
