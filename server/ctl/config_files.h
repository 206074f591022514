// SPDX-License-Identifier: Apache-2.0
// Configuration files of flagosd as flagosctl reads them: with the parser of flagosd, and without asking one.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "server/ctl/listing.h"

namespace flagos::ctl {

struct Program;

const char* DefaultConfigFile();

// `named`, or where that is empty the file that the flagosd within reach was started with, else the default.
std::string ConfigFile(const Program& program, const std::string& named);

// What is wrong with a file and its drop-ins: "FILE:LINE: what", one text for each mistake.
std::vector<std::string> ConfigMistakes(const std::string& file);

// The error of a configuration that is wrong, in three lines. REQUIRES !mistakes.empty().
absl::Status WrongConfig(const std::vector<std::string>& mistakes);

// A row of ConfigKeySchema() for each key, as a file and its drop-ins say.
absl::StatusOr<std::vector<Json>> ReadConfig(const std::string& file);

// When a change of a key takes effect: "reload" or "restart".
const char* EffectOf(bool restart);

}  // namespace flagos::ctl
