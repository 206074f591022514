// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "server/common/strings.h"
#include "server/daemon/config/options.h"
#include "server/daemon/daemon.h"

int main(int argc, char** argv) {
  // Descriptors 0 to 2 are taken from here on, so that none of ours becomes an output of somebody's.
  int fd = -1;
  do {
    fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) ::close(fd);

  auto read = flagos::daemon::ReadCommandLine(argc, argv);
  if (const int* const code = std::get_if<int>(&read)) return *code;
  auto& line = std::get<flagos::daemon::CommandLine>(read);
  if (const absl::Status status = flagos::log::Start(line.config.daemon.log); !status.ok()) {
    std::fprintf(stderr, "flagosd: %s\n", flagos::MessageOf(status).c_str());
    return flagos::daemon::kExitFailure;
  }
  return flagos::daemon::Daemon(std::move(line)).run();
}
