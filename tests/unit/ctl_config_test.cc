// SPDX-License-Identifier: Apache-2.0
// flagosctl config: against fixed answers, and against files without a flagosd.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "server/ctl/commands.h"
#include "server/ctl/exit_code.h"
#include "server/ctl/message_json.h"
#include "tests/support/daemon_process.h"

namespace flagos::ctl {
namespace {

using grpc::ServerContext;
using grpc::Status;

class ConfigControl final : public v1::Control::Service {
 public:
  Status GetVersion(ServerContext*, const v1::GetVersionRequest*, v1::GetVersionResponse*) override {
    return Status::OK;
  }
  Status ShowConfig(ServerContext*, const v1::ShowConfigRequest*, v1::ShowConfigResponse* response) override {
    v1::ConfigKey& warm = *response->add_keys();
    warm.set_key("pool.warm");
    warm.set_value("3");
    warm.set_origin("/etc/f/conf.d/a.toml:2");
    v1::ConfigKey& vendor = *response->add_keys();
    vendor.set_key("devices.vendor");
    vendor.set_value("cpu");
    vendor.set_origin("flag --vendor");
    vendor.set_restart(true);
    vendor.set_note("executors are started with it");
    if (!file.empty()) response->add_files(file);
    return Status::OK;
  }
  Status ReloadConfig(ServerContext*, const v1::ReloadConfigRequest* request,
                      v1::ReloadConfigResponse* response) override {
    asked = *request;
    if (!answer.ok()) return answer;
    if (!changed) return Status::OK;
    v1::ConfigChange& warm = *response->add_changes();
    warm.set_key("pool.warm");
    warm.set_running("1");
    warm.set_value("3");
    warm.set_origin("/f.toml:2");
    v1::ConfigChange& torch = *response->add_changes();
    torch.set_key("vendor.cpu.libtorch");
    torch.set_running("/a");
    torch.set_origin("default");
    torch.set_restart(true);
    return Status::OK;
  }

  std::string file;
  bool changed = true;
  Status answer = Status::OK;
  v1::ReloadConfigRequest asked;
};

class ConfigCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
    builder.RegisterService(&control);
    server = builder.BuildAndStart();
    ASSERT_NE(server, nullptr);
  }
  void TearDown() override {
    if (server) server->Shutdown();
  }
  int run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--socket", socket, "config"});
    std::ostringstream to_out, to_err;
    const int code = ctl::Run(arguments, to_out, to_err, false);
    out = to_out.str();
    err = to_err.str();
    return code;
  }
  void stop() {
    server->Shutdown();
    server.reset();
  }

  testing::TemporaryFolder folder;
  ConfigControl control;
  std::unique_ptr<grpc::Server> server;
  const std::string socket = folder.path() + "/flagosd.sock";
  std::string out, err;
};

TEST_F(ConfigCommand, ShowsWhatFlagosdRunsWith) {
  EXPECT_EQ(run({"show", "--effective"}), 0) << err;
  EXPECT_EQ(out,
            "KEY             VALUE  ORIGIN                  EFFECT\n"
            "pool.warm       3      /etc/f/conf.d/a.toml:2  reload\n"
            "devices.vendor  cpu    flag --vendor           restart\n");
  EXPECT_EQ(run({"show", "--effective", "-o", "json"}), 0);
  const Json document = Json::parse(out);
  EXPECT_EQ(document.at("kind"), "ConfigKeyList");
  EXPECT_EQ(document.at("items").at(1).at("note"), "executors are started with it");
  EXPECT_EQ(document.at("items").at(1).at("restart"), true);
  EXPECT_EQ(run({"show", "--effective", "-o", "csv"}), 0);
  EXPECT_EQ(out,
            "key,value,origin,effect,note\r\npool.warm,3,/etc/f/conf.d/a.toml:2,reload,\r\n"
            "devices.vendor,cpu,flag --vendor,restart,executors are started with it\r\n");
  EXPECT_EQ(run({"show", "--effective", "-o", "yaml", "--fields", "key", "--sort", "key"}), 0);
  EXPECT_EQ(out,
            "apiVersion: \"flagos/v1\"\nkind: \"ConfigKeyList\"\nitems:\n  - key: \"devices.vendor\"\n"
            "  - key: \"pool.warm\"\n");
}

TEST_F(ConfigCommand, ShowsWhatFilesSayWithoutAFlagosd) {
  const std::string file = folder.write("flagosd.toml", "[pool]\nwarm = 2\n");
  control.file = file;
  EXPECT_EQ(run({"show", "--fields", "key,value,origin", "--no-headers", "--sort=-value"}), 0) << err;
  EXPECT_NE(out.find(" " + file + ":2\n"), std::string::npos) << "flagosd's own file: " << out;
  stop();
  EXPECT_EQ(run({"show", file, "-o", "json"}), 0) << err;
  const Json items = Json::parse(out).at("items");
  const auto warm = std::ranges::find_if(items, [](const Json& item) { return item.at("key") == "pool.warm"; });
  ASSERT_NE(warm, items.end());
  EXPECT_EQ(warm->at("origin"), file + ":2");
  EXPECT_EQ(run({"show", "--effective", file}), static_cast<int>(ExitCode::kUsage));
  EXPECT_EQ(run({"show", "--effective"}), static_cast<int>(ExitCode::kUnreachable));
}

TEST_F(ConfigCommand, ChecksFilesWithoutAFlagosd) {
  stop();
  const std::string file = folder.write("flagosd.toml", "[pool]\nwarm = 2\n");
  EXPECT_EQ(run({"check", file}), 0) << err;
  EXPECT_EQ(out, "ok: " + file + "\n");
  const std::string drop_in = folder.write("conf.d/a.toml", "[pool]\nworm = 2\nwarm = \"x\"\n");
  EXPECT_EQ(run({"check", file}), static_cast<int>(ExitCode::kRefused));
  const std::string mistake = drop_in + ":3: [pool] warm: expected a whole number that is not negative";
  EXPECT_NE(out.find(mistake + "\n"), std::string::npos) << out;
  EXPECT_EQ(std::ranges::count(out, '\n'), 2);
  EXPECT_EQ(std::ranges::count(err, '\n'), 3) << err;
  EXPECT_NE(err.find(drop_in), std::string::npos);
  EXPECT_EQ(run({"check", file, "-o", "json"}), static_cast<int>(ExitCode::kRefused));
  EXPECT_EQ(Json::parse(out).at("items").size(), 2u);
  EXPECT_EQ(run({"show", file}), static_cast<int>(ExitCode::kRefused));
}

TEST_F(ConfigCommand, DiffIsWhatAReloadWouldChange) {
  EXPECT_EQ(run({"diff"}), 0) << err;
  EXPECT_TRUE(control.asked.dry_run());
  EXPECT_EQ(out,
            "KEY                  RUNNING  FILE  ORIGIN     EFFECT\n"
            "pool.warm            1        3     /f.toml:2  reload\n"
            "vendor.cpu.libtorch  /a       -     default    restart\n");
}

TEST_F(ConfigCommand, ReloadSaysWhatHasChanged) {
  EXPECT_EQ(run({"reload"}), 0) << err;
  EXPECT_FALSE(control.asked.dry_run());
  EXPECT_EQ(out,
            "reloaded:\n  pool.warm: 1 -> 3 (/f.toml:2)\n"
            "  vendor.cpu.libtorch: /a -> - (default); takes effect after a restart\n");
  EXPECT_EQ(run({"reload", "--dry-run"}), 0);
  EXPECT_TRUE(control.asked.dry_run());
  EXPECT_TRUE(out.starts_with("a reload would change:\n")) << out;
  EXPECT_EQ(run({"reload", "-o", "json"}), 0);
  EXPECT_EQ(Json::parse(out).at("kind"), "ConfigChangeList");
  control.changed = false;
  EXPECT_EQ(run({"reload"}), 0);
  EXPECT_EQ(out, "reloaded: nothing has changed\n");
}

TEST_F(ConfigCommand, AReloadMayBeRefused) {
  control.answer = {grpc::StatusCode::FAILED_PRECONDITION, "the configuration is wrong\n/f:2: why\nmend it"};
  EXPECT_EQ(run({"reload"}), static_cast<int>(ExitCode::kRefused));
  EXPECT_EQ(err, "flagosctl: the configuration is wrong\n  /f:2: why\n  mend it\n");
  control.answer = {grpc::StatusCode::PERMISSION_DENIED, "no"};
  EXPECT_EQ(run({"diff"}), static_cast<int>(ExitCode::kDenied));
}

}  // namespace
}  // namespace flagos::ctl
