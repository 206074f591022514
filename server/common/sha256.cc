// SPDX-License-Identifier: Apache-2.0
#include "server/common/sha256.h"

#include <openssl/evp.h>

#include <cerrno>
#include <fstream>
#include <vector>

#include "server/common/status.h"
#include "server/common/strings.h"

namespace flagos {

void Sha256::Free::operator()(evp_md_ctx_st* context) const { ::EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(::EVP_MD_CTX_new()) { ::EVP_DigestInit_ex(context_.get(), ::EVP_sha256(), nullptr); }

void Sha256::add(std::string_view bytes) { ::EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }

std::string Sha256::digest() {
  std::string bytes(32, '\0');
  ::EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(bytes.data()), nullptr);
  return bytes;
}

std::string Sha256Hex(std::string_view bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  Sha256 hash;
  hash.add(bytes);
  std::string text;
  for (const char byte : hash.digest()) {
    text.push_back(kDigits[static_cast<unsigned char>(byte) >> 4]);
    text.push_back(kDigits[static_cast<unsigned char>(byte) & 15]);
  }
  return text;
}

absl::StatusOr<std::string> Sha256OfFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return SystemError(errno, Cat("cannot open ", path.string()), "let this user read it");
  Sha256 hash;
  std::vector<char> buffer(1 << 20);
  while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || file.gcount() > 0) {
    hash.add({buffer.data(), static_cast<size_t>(file.gcount())});
  }
  if (file.bad()) return SystemError(errno, Cat("cannot read ", path.string()), "see the kernel's log");
  return hash.digest();
}

}  // namespace flagos
