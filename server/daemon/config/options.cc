// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/config/options.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>

#include "proto/wire/records.h"
#include "server/common/fd.h"
#include "server/common/strings.h"
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

// Where the value of an option came from. The environment counts only where the flag is not given.
std::string OriginOf(const CLI::App& app, const std::string& flag, const std::vector<std::string_view>& arguments) {
  for (const std::string_view argument : arguments) {
    if (argument == flag || argument.starts_with(flag + "=")) return Cat("flag ", flag);
  }
  return Cat("environment ", app.get_option(flag)->get_envname());
}

// What was given, as overrides; mistakes are told in `errors`.
std::vector<Override> OverridesOf(const Flags& flags, const CLI::App& app,
                                  const std::vector<std::string_view>& arguments, std::vector<std::string>& errors) {
  std::vector<Override> overrides;
  const auto add = [&](const char* flag, const char* key, std::function<void(Config&)> set) {
    overrides.push_back({OriginOf(app, flag, arguments), [key, set = std::move(set)](Config& config) {
                           set(config);
                           return std::string(key);
                         }});
  };
  if (const auto& at = flags.socket) add("--socket", "daemon.listen", [at](Config& c) { c.daemon.listen = *at; });
  if (const auto& name = flags.vendor)
    add("--vendor", "devices.vendor", [name](Config& c) { c.devices.vendor = *name; });
  if (const auto& n = flags.devices) add("--devices", "devices.count", [n](Config& c) { c.devices.count = *n; });
  if (const auto& n = flags.warm) add("--warm", "pool.warm", [n](Config& c) { c.pool.warm = *n; });
  if (const auto& file = flags.log_file) {
    add("--log-file", "daemon.log_file", [file](Config& c) { c.daemon.log.file = *file; });
  }
  if (flags.log_format) {
    if (const auto format = log::ParseFormat(*flags.log_format)) {
      add("--log", "daemon.log", [format](Config& c) { c.daemon.log.format = *format; });
    } else {
      errors.push_back(Cat("--log ", *flags.log_format, ": expected text or json"));
    }
  }
  if (flags.log_level) {
    if (const auto level = log::ParseLevel(*flags.log_level)) {
      add("--log-level", "daemon.log_level", [level](Config& c) { c.daemon.log.level = *level; });
    } else {
      errors.push_back(Cat("--log-level ", *flags.log_level, ": expected debug, info, warn or error"));
    }
  }
  if (const auto& folder = flags.libtorch) {
    // Last: of the vendor that all the others have settled.
    overrides.push_back({OriginOf(app, "--libtorch", arguments), [folder](Config& c) {
                           c.vendors[c.devices.vendor].libtorch = *folder;
                           return Cat("vendor.", c.devices.vendor, ".libtorch");
                         }});
  }
  return overrides;
}

// Defaults, and what no file can say.
Config BaseOf(const Flags& flags) {
  Config config;
  if (flags.embedded) {
    // The client's own output is no place for the daily business of a helper.
    config.daemon.log.level = log::Level::kWarn;
    config.pool.warm = 1;
  }
  const fs::path here = fs::path(OwnExecutable()).parent_path();
  config.vendor_dir = flags.vendor_dir.value_or((here.parent_path() / "vendors").string());
  config.executor = flags.executor.value_or((here / "flagos-executor").string());
  config.monitor = (here / "flagos-monitor").string();
  config.embedded = flags.embedded;
  config.connection_fd = flags.connection_fd;
  config.ready_fd = flags.ready_fd;
  return config;
}

}  // namespace

std::variant<CommandLine, int> ReadCommandLine(int argc, const char* const* argv) {
  CLI::App app("flagosd, the device server for PyTorch: attaches jobs to executors that own the devices", "flagosd");
  Flags flags;
  Declare(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }

  CommandLine line;
  std::vector<std::string> errors;
  ConfigSources& sources = line.sources;
  sources.base = BaseOf(flags);
  const bool is_private = flags.socket || flags.embedded;
  if (flags.config) {
    sources.file = SourcesOf(*flags.config).file;
  } else if (!is_private && flags.check_config) {
    sources.file = kDefaultConfigFile;
  } else if (!is_private) {
    sources.file_if_there = kDefaultConfigFile;
    sources.file = sources.file_now();  // once read, it has to stay there
  }
  sources.overrides = OverridesOf(flags, app, {argv + 1, argv + argc}, errors);
  for (std::string& error : sources.load(line.config)) errors.push_back(std::move(error));
  for (const std::string& error : errors) std::fprintf(stderr, "flagosd: %s\n", error.c_str());
  if (!errors.empty()) return kExitUsage;
  if (flags.check_config) {
    std::puts("ok");
    return kExitOk;
  }
  return line;
}

}  // namespace flagos::daemon
