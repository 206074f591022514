// SPDX-License-Identifier: Apache-2.0
#include "server/monitor/arguments.h"

#include <CLI/CLI.hpp>

#include <vector>

namespace flagos::monitor {

std::optional<Arguments> ParseArguments(int argc, const char* const* argv, int& exit_code) {
  Arguments arguments;
  std::vector<std::string> options;
  int64_t interval = arguments.interval.count();
  CLI::App app("Reads figures of a vendor's devices for flagosd. flagosd starts it; it is of no use by hand.",
               "flagos-monitor");
  app.add_option("--vendor", arguments.vendor, "Name of the vendor")->required();
  app.add_option("--vendor-dir", arguments.vendor_dir, "Folder that holds a folder for each vendor")->required();
  app.add_option("--channel-fd", arguments.channel_fd, "Inherited socket to flagosd")
      ->required()
      ->check(CLI::Range(3, 1 << 20));
  app.add_option("--interval-ms", interval, "Milliseconds between readings")->check(CLI::Range(1, 3'600'000));
  app.add_option("--option", options, "An option of the vendor, KEY=VALUE; may be repeated");
  try {
    app.parse(argc, const_cast<char**>(argv));
    for (const std::string& option : options) {
      const size_t sign = option.find('=');
      if (sign == 0 || sign == std::string::npos) throw CLI::ValidationError("--option", option + " is not KEY=VALUE");
      arguments.options[option.substr(0, sign)] = option.substr(sign + 1);
    }
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error);
    return std::nullopt;
  }
  arguments.interval = std::chrono::milliseconds(interval);
  return arguments;
}

}  // namespace flagos::monitor
