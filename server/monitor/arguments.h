// SPDX-License-Identifier: Apache-2.0
// The command line of flagos-monitor:
//   flagos-monitor --vendor NAME --vendor-dir DIR --channel-fd N --interval-ms N [--option KEY=VALUE]...
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

namespace flagos::monitor {

struct Arguments {
  std::string vendor;
  std::string vendor_dir;
  int channel_fd = -1;  // a SOCK_SEQPACKET socket, whose other end is flagosd's
  std::chrono::milliseconds interval{1000};
  std::map<std::string, std::string> options;
};

// nullopt: the process ends with `exit_code`; help or the mistake was printed.
std::optional<Arguments> ParseArguments(int argc, const char* const* argv, int& exit_code);

}  // namespace flagos::monitor
