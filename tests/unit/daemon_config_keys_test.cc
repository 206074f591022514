// SPDX-License-Identifier: Apache-2.0
// Where values come from, and which of them a running flagosd takes over.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "server/daemon/config/options.h"
#include "server/daemon/config/view.h"
#include "tests/support/daemon_process.h"

namespace flagos::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ConfigKeysTest : public ::testing::Test {
 protected:
  void TearDown() override {
    ::unsetenv("FLAGOSD_WARM");
    ::unsetenv("FLAGOSD_LOG_LEVEL");
  }
  Config run(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "flagosd");
    auto result = ReadCommandLine(static_cast<int>(arguments.size()), arguments.data());
    if (std::holds_alternative<int>(result)) throw std::runtime_error("the command line is refused");
    return std::get<CommandLine>(result).config;
  }
  static ConfigEntry entry(const Config& config, const std::string& key) {
    for (ConfigEntry& entry : Entries(config)) {
      if (entry.key == key) return entry;
    }
    return {};
  }
  std::vector<std::string> load(const std::string& text, Config& config) {
    return SourcesOf(folder_.write("flagosd.toml", text)).load(config);
  }

  testing::TemporaryFolder folder_;
};

TEST_F(ConfigKeysTest, EveryValueSaysWhereItComesFrom) {
  const std::string file = folder_.write(
      "flagosd.toml", "[pool]\nwarm = 2\nmax_warm = 7\n[session]\nring = \"1MiB\"\n[daemon]\nlog_level = \"warn\"\n");
  const std::string first =
      folder_.write("conf.d/10-a.toml", "[session]\nring = \"2MiB\"\n[vendor.cpu]\noptions = { a = 1, b = \"x\" }\n");
  const std::string second =
      folder_.write("conf.d/20-b.toml", "[session]\n\nring = \"8MiB\"\n[vendor.cpu.options]\na = 3\n");
  ::setenv("FLAGOSD_WARM", "3", 1);
  ::setenv("FLAGOSD_LOG_LEVEL", "debug", 1);
  const Config config = run({"--config", file.c_str(), "--warm=4", "--libtorch", "/t"});
  EXPECT_EQ(entry(config, "pool.warm").value, "4");
  EXPECT_EQ(entry(config, "pool.warm").origin, "flag --warm");
  EXPECT_EQ(entry(config, "daemon.log_level").value, "debug");
  EXPECT_EQ(entry(config, "daemon.log_level").origin, "environment FLAGOSD_LOG_LEVEL");
  EXPECT_EQ(entry(config, "pool.max_warm").origin, file + ":3");
  EXPECT_EQ(entry(config, "session.ring").value, "8MiB");
  EXPECT_EQ(entry(config, "session.ring").origin, second + ":3") << "the last drop-in holds";
  EXPECT_EQ(entry(config, "session.arena").value, "1GiB");
  EXPECT_EQ(entry(config, "session.arena").origin, "default");
  EXPECT_EQ(entry(config, "vendor.cpu.libtorch").origin, "flag --libtorch");
  EXPECT_EQ(entry(config, "vendor.cpu.options.a").value, "3");
  EXPECT_EQ(entry(config, "vendor.cpu.options.a").origin, second + ":5");
  EXPECT_EQ(entry(config, "vendor.cpu.options.b").origin, first + ":4");
  EXPECT_THAT(config.files, ElementsAre(file, first, second));
}

TEST_F(ConfigKeysTest, AMistakeOfTheWholeNamesItsPlace) {
  Config config;
  EXPECT_THAT(load("[session]\nring = \"3MiB\"\n", config),
              ElementsAre(HasSubstr("flagosd.toml:2: [session] ring = 3MiB")));
}

TEST_F(ConfigKeysTest, EveryKeyShowsWhatItRead) {
  Config config;
  ASSERT_THAT(load("[daemon]\nlog = \"json\"\nlog_level = \"error\"\nidle_after = \"1500ms\"\n"
                   "[devices]\ninclude = [2, 0]\ncount = 4\n",
                   config),
              IsEmpty());
  EXPECT_EQ(entry(config, "daemon.log").value, "json");
  EXPECT_EQ(entry(config, "daemon.log_level").value, "error");
  EXPECT_EQ(entry(config, "daemon.idle_after").value, "1500ms");
  EXPECT_EQ(entry(config, "devices.include").value, "[2, 0]");
  EXPECT_EQ(entry(config, "devices.count").value, "4");
}

// The comment of each key in deploy/flagosd.toml says whether a change needs a restart.
TEST_F(ConfigKeysTest, TheExampleHasEveryKeyAndItsClass) {
  std::ifstream file(FLAGOS_EXAMPLE_CONFIG);
  std::map<std::string, bool> told;  // key: needs a restart
  std::string line, section, comment;
  while (std::getline(file, line)) {
    const std::string bare = line.starts_with("#") ? line.substr(1) : line;
    const size_t equals = bare.find(" = ");
    if (line.starts_with("[")) {
      section = line.substr(1, line.find(']') - 1);
    } else if (equals != std::string::npos && !bare.starts_with(" ")) {
      told[section + "." + bare.substr(0, equals)] = comment.find("Needs a restart") != std::string::npos;
    } else if (line.starts_with("# ")) {
      comment += line;
      continue;
    }
    comment.clear();
  }
  for (const ConfigKey& key : ConfigKeys()) {
    ASSERT_TRUE(told.contains(key.path())) << key.path();
    EXPECT_EQ(told[key.path()], key.change == Change::kRestart) << key.path();
    EXPECT_FALSE(key.change == Change::kRestart && key.note.empty()) << key.path();
  }
}

TEST_F(ConfigKeysTest, ChangesNameBothValues) {
  Config before, after;
  ASSERT_THAT(load("[pool]\nwarm = 2\n[vendor.cpu]\nlibtorch = \"/a\"\n", before), IsEmpty());
  ASSERT_THAT(load("\n[pool]\nwarm = 2\nmax_warm = 3\n[devices]\ncount = 2\n", after), IsEmpty());
  const std::vector<ConfigChange> changes = Changes(before, after);
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[0].to.key, "devices.count");
  EXPECT_EQ(changes[0].from, "0");
  EXPECT_EQ(changes[0].to.value, "2");
  EXPECT_EQ(changes[0].to.change, Change::kRestart);
  EXPECT_EQ(changes[1].to.key, "pool.max_warm");
  EXPECT_EQ(changes[1].to.change, Change::kHot);
  EXPECT_EQ(changes[2].to.key, "vendor.cpu.libtorch");
  EXPECT_EQ(changes[2].from, "/a");
  EXPECT_EQ(changes[2].to.value, "");
  EXPECT_THAT(Changes(after, after), IsEmpty());
}

TEST_F(ConfigKeysTest, HotKeysAreTakenOverAndTheOthersKeepTheirValue) {
  Config running, next;
  ASSERT_THAT(load("[pool]\nwarm = 2\n[devices]\ncount = 1\nvendor = \"null\"\n", running), IsEmpty());
  const std::string old = entry(running, "devices.count").origin;
  ASSERT_THAT(load("[devices]\n\ncount = 2\nvendor = \"null\"\n[session]\narena = \"1MiB\"\n", next), IsEmpty());
  TakeHotKeys(next, running);
  EXPECT_EQ(running.pool.warm, 1u);
  EXPECT_EQ(entry(running, "pool.warm").origin, "default");
  EXPECT_EQ(running.session.arena, 1u << 20);
  EXPECT_EQ(running.devices.count, 1u);
  EXPECT_EQ(entry(running, "devices.count").origin, old) << "of the value that it has";
  EXPECT_THAT(entry(running, "devices.vendor").origin, HasSubstr(":4")) << "the same value, which has moved";
}

}  // namespace
}  // namespace flagos::daemon
