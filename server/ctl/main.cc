// SPDX-License-Identifier: Apache-2.0
// flagosctl: the command line of flagosd.
#include <unistd.h>

#include <iostream>

#include "server/ctl/commands.h"

int main(int argc, char** argv) {
  return flagos::ctl::Run({argv + 1, argv + argc}, std::cout, std::cerr, ::isatty(STDOUT_FILENO) == 1);
}
