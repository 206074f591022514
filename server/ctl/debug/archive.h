// SPDX-License-Identifier: Apache-2.0
// A .tar.gz of a few texts.
#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <string>
#include <string_view>
#include <vector>

namespace flagos::ctl {

struct ArchivedText {
  std::string name;  // a path of at most 99 bytes
  std::string text;
};

// The bytes of a compressed archive in POSIX' ustar format, which tar and Python's tarfile read.
std::string MakeArchive(const std::vector<ArchivedText>& files, absl::Time modified);

// Writes a file that is its owner's alone. kAlreadyExists: there is one already, which stays as it is.
absl::Status WriteNewFile(const std::string& path, std::string_view bytes);

}  // namespace flagos::ctl
