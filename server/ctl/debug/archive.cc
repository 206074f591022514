// SPDX-License-Identifier: Apache-2.0
#include "server/ctl/debug/archive.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "proto/shm/memfd.h"
#include "server/common/status.h"
#include "server/ctl/exit_code.h"

namespace flagos::ctl {
namespace {

constexpr size_t kBlock = 512;
constexpr int kGzip = 16;  // zlib: with gzip's head

struct Header {
  char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6], version[2];
  char user[32], group[32], major[8], minor[8], prefix[155], padding[12];
};
static_assert(sizeof(Header) == kBlock);

template <size_t N>
void Octal(char (&field)[N], uint64_t value) {
  for (size_t i = N - 1; i-- > 0; value >>= 3) field[i] = static_cast<char>('0' + (value & 7));
}

void Append(std::string& tar, const ArchivedText& file, absl::Time modified) {
  Header header{};
  std::strncpy(header.name, file.name.c_str(), sizeof header.name - 1);
  Octal(header.mode, 0600);
  Octal(header.uid, 0);
  Octal(header.gid, 0);
  Octal(header.size, file.text.size());
  Octal(header.mtime, static_cast<uint64_t>(absl::ToUnixSeconds(modified)));
  header.type = '0';
  std::memcpy(header.magic, "ustar", sizeof header.magic);
  std::memset(header.version, '0', sizeof header.version);
  // The sum is of the header with spaces in its place.
  std::memset(header.checksum, ' ', sizeof header.checksum);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&header);
  uint64_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i) sum += bytes[i];
  std::snprintf(header.checksum, sizeof header.checksum, "%06o", static_cast<unsigned>(sum));
  header.checksum[7] = ' ';
  tar.append(reinterpret_cast<const char*>(&header), kBlock);
  tar.append(file.text);
  tar.append((kBlock - file.text.size() % kBlock) % kBlock, '\0');
}

std::string Gzip(const std::string& bytes) {
  z_stream stream{};
  ::deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzip, 8, Z_DEFAULT_STRATEGY);
  std::string packed(::deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ::deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  return packed;
}

}  // namespace

std::string MakeArchive(const std::vector<ArchivedText>& files, absl::Time modified) {
  std::string tar;
  for (const ArchivedText& file : files) Append(tar, file, modified);
  tar.append(2 * kBlock, '\0');
  return Gzip(tar);
}

absl::Status WriteNewFile(const std::string& path, std::string_view bytes) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd && errno == EEXIST) {
    return Failure(absl::StatusCode::kAlreadyExists, absl::StrCat("cannot write ", path),
                   "there is such a file already", "name another");
  }
  while (fd && !bytes.empty()) {
    const ssize_t written = ::write(fd.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) break;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  if (fd && bytes.empty()) return absl::OkStatus();
  return SystemError(errno, absl::StrCat("cannot write ", path),
                     "name a file in a folder of yours, with room on its disk");
}

}  // namespace flagos::ctl
