// SPDX-License-Identifier: Apache-2.0
// Wheels of a torch that is none, for tests.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace flagos::test {

struct WheelSpec {
  std::string package = "torch";
  std::string version = "2.13.0+cpu";
  std::map<std::string, std::string> files;
  // Of these files RECORD has the hash of something else.
  std::string wrong_hash_of = {};
  // RECORD does not have these.
  std::string unrecorded = {};
};

// A torch for the CPU in small.
WheelSpec SmallTorch();

// Writes the wheel into a folder; its path.
std::filesystem::path WriteWheel(const std::filesystem::path& folder, const WheelSpec& spec);

// The same as an installed package, in site-packages of a virtual environment.
void WriteEnvironment(const std::filesystem::path& folder, const WheelSpec& spec);

}  // namespace flagos::test
