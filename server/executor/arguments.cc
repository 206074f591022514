// SPDX-License-Identifier: Apache-2.0
#include "server/executor/arguments.h"

#include <CLI/CLI.hpp>

#include "proto/wire/types.h"

namespace flagos::executor {

std::optional<Arguments> ParseArguments(int argc, const char* const* argv, int& exit_code) {
  Arguments arguments;
  std::vector<std::string> options;
  std::string level = "info";
  CLI::App app("Runs one session of flagosd on a vendor's device. flagosd starts it; it is of no use by hand.",
               "flagos-executor");
  app.add_option("--vendor", arguments.vendor, "Name of the vendor")->required();
  app.add_option("--vendor-dir", arguments.vendor_dir, "Folder that holds a folder for each vendor")->required();
  app.add_option("--libtorch", arguments.libtorch,
                 "Folder of libtorch_cpu.so; default: where the vendor's manifest says, else an installed runtime");
  app.add_option("--channel-fd", arguments.channel_fd, "Inherited socket to flagosd")
      ->required()
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--daemon", arguments.daemon,
                 "Socket of the flagosd that a session goes on with once this one is gone");
  app.add_option("--devices", arguments.options.devices, "Devices of the node that the session sees; default: all")
      ->delimiter(',')
      ->check(CLI::Range(0u, 1u << 20));
  app.add_option("--option", options, "An option of the vendor, KEY=VALUE; may be repeated");
  app.add_option("--log-level", level, "debug, info, warn or error")
      ->envname("FLAGOS_LOG_LEVEL")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}));
  try {
    app.parse(argc, const_cast<char**>(argv));
    if (arguments.options.devices.size() > kMaxDevices) {
      throw CLI::ValidationError("--devices", "a session has at most " + std::to_string(kMaxDevices) + " devices");
    }
    for (const std::string& option : options) {
      const size_t sign = option.find('=');
      if (sign == 0 || sign == std::string::npos) throw CLI::ValidationError("--option", option + " is not KEY=VALUE");
      arguments.options.values[option.substr(0, sign)] = option.substr(sign + 1);
    }
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error);
    return std::nullopt;
  }
  arguments.log_level = log::ParseLevel(level).value_or(log::Level::kInfo);
  return arguments;
}

}  // namespace flagos::executor
