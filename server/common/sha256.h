// SPDX-License-Identifier: Apache-2.0
// SHA-256 of what comes in pieces.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace flagos {

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

// The 64 lower case hexadecimal digits of a text's hash.
std::string Sha256Hex(std::string_view bytes);

// The 32 bytes of a whole file's.
absl::StatusOr<std::string> Sha256OfFile(const std::filesystem::path& path);

}  // namespace flagos
