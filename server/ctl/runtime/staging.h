// SPDX-License-Identifier: Apache-2.0
// A folder that is filled beside where it is to be, and put there whole or not at all.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "proto/shm/memfd.h"

namespace flagos::ctl {

class Staging {
 public:
  // A new folder in `root`, which is made where it is missing. Those that others left behind are removed.
  static absl::StatusOr<Staging> Make(const std::filesystem::path& root);
  Staging(Staging&& from) noexcept;
  Staging& operator=(Staging&&) = delete;
  ~Staging();  // removes what was not put in place

  const std::filesystem::path& path() const { return path_; }
  // Writes a text file, readable by all.
  absl::Status write(std::string_view name, std::string_view text) const;
  // Renames the folder to `target`, and makes that last. kAlreadyExists where somebody was faster.
  absl::Status put(const std::filesystem::path& target);

 private:
  Staging(std::filesystem::path path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::filesystem::path path_;  // empty once it is in place
  UniqueFd lock_;               // held while somebody fills the folder
};

// A new file for writing, readable by all and writable by its owner; its folders are made. It must not exist.
absl::StatusOr<UniqueFd> CreateFile(const std::filesystem::path& path);
absl::Status WriteAll(int fd, std::string_view bytes, const std::filesystem::path& path);

}  // namespace flagos::ctl
