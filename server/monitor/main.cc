// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "server/monitor/arguments.h"
#include "server/monitor/serve.h"

int main(int argc, char** argv) {
  int exit_code = 0;
  const auto arguments = flagos::monitor::ParseArguments(argc, argv, exit_code);
  if (!arguments) return exit_code;
  // Without running destructors: a vendor's library may have threads that its own would pull the ground from.
  ::_exit(flagos::monitor::Serve(*arguments));
}
