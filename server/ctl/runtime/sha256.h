// SPDX-License-Identifier: Apache-2.0
// SHA-256 of what comes in pieces.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace flagos::ctl {

class Sha256 {
 public:
  Sha256();
  void add(std::string_view bytes);
  // The 32 bytes. The object is of no use afterwards.
  std::string digest();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

// Of a whole file.
absl::StatusOr<std::string> Sha256OfFile(const std::filesystem::path& path);

}  // namespace flagos::ctl
