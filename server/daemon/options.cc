// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/options.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>

#include "proto/wire/records.h"
#include "server/common/fd.h"
#include "server/common/strings.h"
#include "server/daemon/config_file.h"
#include "server/daemon/version.h"

namespace flagos::daemon {
namespace {

namespace fs = std::filesystem;

// What was given on the command line or in the environment; absent where it was not.
struct Flags {
  std::optional<std::string> config, socket, vendor, vendor_dir, executor, libtorch, log_format, log_level, log_file;
  std::optional<uint32_t> devices, warm;
  int connection_fd = -1;
  int ready_fd = -1;
  bool check_config = false;
  bool embedded = false;
};

void Declare(CLI::App& app, Flags& flags) {
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);  // a wrapper's flag can be overridden
  app.add_option("--config", flags.config,
                 Cat("Configuration file; conf.d/*.toml beside it are read after it (default: ", kDefaultConfigFile,
                     ", where neither --socket nor --embedded is given)"))
      ->envname("FLAGOSD_CONFIG");
  app.add_flag("--check-config", flags.check_config, "Read the configuration, say what is wrong with it, and end");
  app.add_option("--socket", flags.socket, "Unix socket to listen on ([daemon] listen)")->envname("FLAGOSD_SOCKET");
  app.add_option("--vendor", flags.vendor, "Vendor of the devices ([devices] vendor)")->envname("FLAGOSD_VENDOR");
  app.add_option("--devices", flags.devices, "Number of devices that the vendor presents ([devices] count)")
      ->check(CLI::Range(uint64_t{1}, uint64_t{kMaxDevices}))
      ->envname("FLAGOSD_DEVICES");
  app.add_option("--warm", flags.warm, "Executors held ready ([pool] warm)")->envname("FLAGOSD_WARM");
  app.add_option("--libtorch", flags.libtorch, "Folder of the libtorch that executors host ([vendor.NAME] libtorch)")
      ->envname("FLAGOSD_LIBTORCH");
  app.add_option("--vendor-dir", flags.vendor_dir, "Folder of the vendors (default: ../vendors beside this program)")
      ->envname("FLAGOSD_VENDOR_DIR");
  app.add_option("--executor", flags.executor,
                 "Program of the executors (default: flagos-executor beside this program)")
      ->envname("FLAGOSD_EXECUTOR");
  app.add_option("--log", flags.log_format, "text or json ([daemon] log)")->envname("FLAGOSD_LOG");
  app.add_option("--log-level", flags.log_level, "debug, info, warn or error ([daemon] log_level)")
      ->envname("FLAGOSD_LOG_LEVEL");
  app.add_option("--log-file", flags.log_file, "Log to this file ([daemon] log_file)")->envname("FLAGOSD_LOG_FILE");
  CLI::Option* const embedded =
      app.add_flag("--embedded", flags.embedded, "Serve one client only, at --connection-fd, and end with it");
  CLI::Option* const connection =
      app.add_option("--connection-fd", flags.connection_fd, "Inherited descriptor of the client's connection");
  embedded->needs(connection);
  connection->needs(embedded);
  app.add_option("--ready-fd", flags.ready_fd,
                 "Inherited descriptor to write \"ready\\n\" to once the devices are known, or why there are none");
  app.set_version_flag("--version",
                       Cat("flagosd ", kVersion, " (protocol ", kProtocolVersionMin, " to ", kProtocolVersionMax, ")"));
}

void Overlay(const Flags& flags, Config& config, std::vector<std::string>& errors) {
  if (flags.socket) config.daemon.listen = *flags.socket;
  if (flags.vendor) config.devices.vendor = *flags.vendor;
  if (flags.devices) config.devices.count = *flags.devices;
  if (flags.warm) config.pool.warm = *flags.warm;
  if (flags.log_file) config.daemon.log.file = *flags.log_file;
  if (flags.log_format) {
    if (const auto format = log::ParseFormat(*flags.log_format)) {
      config.daemon.log.format = *format;
    } else {
      errors.push_back(Cat("--log ", *flags.log_format, ": expected text or json"));
    }
  }
  if (flags.log_level) {
    if (const auto level = log::ParseLevel(*flags.log_level)) {
      config.daemon.log.level = *level;
    } else {
      errors.push_back(Cat("--log-level ", *flags.log_level, ": expected debug, info, warn or error"));
    }
  }
  if (flags.libtorch) config.vendors[config.devices.vendor].libtorch = *flags.libtorch;

  const fs::path here = fs::path(OwnExecutable()).parent_path();
  config.vendor_dir = flags.vendor_dir.value_or((here.parent_path() / "vendors").string());
  config.executor = flags.executor.value_or((here / "flagos-executor").string());
  config.monitor = (here / "flagos-monitor").string();
  config.embedded = flags.embedded;
  config.connection_fd = flags.connection_fd;
  config.ready_fd = flags.ready_fd;
}

}  // namespace

std::variant<Config, int> ReadCommandLine(int argc, const char* const* argv) {
  CLI::App app("flagosd, the device server for PyTorch: attaches jobs to executors that own the devices", "flagosd");
  Flags flags;
  Declare(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }

  Config config;
  std::vector<std::string> errors;
  if (flags.embedded) {
    // The client's own output is no place for the daily business of a helper.
    config.daemon.log.level = log::Level::kWarn;
    config.pool.warm = 1;
  }
  const bool is_private = flags.socket || flags.embedded;
  // A file that we may not look at is read, too, and the error told: the node's configuration is not passed over.
  std::error_code hidden;
  const bool has_default = fs::exists(kDefaultConfigFile, hidden) || hidden;
  if (flags.config || (!is_private && (flags.check_config || has_default))) {
    errors = ReadConfigFiles(flags.config.value_or(kDefaultConfigFile), config);
  }
  Overlay(flags, config, errors);
  for (std::string& error : Validate(config)) errors.push_back(std::move(error));
  for (const std::string& error : errors) std::fprintf(stderr, "flagosd: %s\n", error.c_str());
  if (!errors.empty()) return kExitUsage;
  if (flags.check_config) {
    std::puts("ok");
    return kExitOk;
  }
  return config;
}

}  // namespace flagos::daemon
