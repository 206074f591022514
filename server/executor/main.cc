// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "server/executor/arguments.h"
#include "server/executor/process.h"
#include "server/executor/serve.h"

int main(int argc, char** argv) {
  int exit_code = 0;
  auto arguments = flagos::executor::ParseArguments(argc, argv, exit_code);
  if (!arguments) return exit_code;
  arguments->channel_fd = flagos::executor::MoveFromStandard(arguments->channel_fd).release();
  flagos::executor::CloseInherited(arguments->channel_fd);
  if (!flagos::log::Start({.level = arguments->log_level, .format = flagos::log::Format::kJson, .file = {}}).ok()) {
    return 1;
  }
  // Without running destructors: a vendor's library may have threads that its own would pull the ground from.
  ::_exit(flagos::executor::Serve(*arguments));
}
