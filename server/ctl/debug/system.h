// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace flagos::ctl {

// The machine as its kernel tells: version, distribution, memory, cores, limits, cgroups, file systems. No environment.
std::string DescribeSystem();

// The last lines of a file, of at most `bytes`; empty where it cannot be read.
std::string TailOf(const std::string& file, size_t bytes);

// The last lines that the service manager's journal has of flagosd; empty where there are none, or not ours to read.
std::string TailOfJournal();

}  // namespace flagos::ctl
