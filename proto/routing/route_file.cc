// SPDX-License-Identifier: Apache-2.0
#include "proto/routing/route_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "proto/wire/bytes.h"

namespace flagos {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 20;
constexpr size_t kMaxLines = 100'000;  // of all files: includes may fan out
constexpr std::string_view kBlanks = " \t\r";

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// For a message: short, and nothing in it that steers a terminal.
std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : CutText(text, 80)) quoted += c < ' ' || c >= 0x7f ? '?' : c;  // names are ASCII
  return quoted + "'";
}

// Never waits, as for who writes into a pipe.
std::FILE* Open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  return fd < 0 ? nullptr : ::fdopen(fd, "r");
}

Error Bad(const std::string& message) { return MakeError(ErrorCode::kValue, message); }

class Reader {
 public:
  Error read(const std::string& path, std::string_view named_by, int depth) {
    std::string text;
    if (Error error = load(path, named_by, text); !error.ok()) return error;
    size_t number = 0;
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      ++number;
      if (++lines_ > kMaxLines) {
        return Bad(path + ":" + std::to_string(number) + ": with this line there are more than " +
                   std::to_string(kMaxLines) + " lines of routes; include fewer files");
      }
      const std::string_view said = Trim(line.substr(0, line.find('#')));
      if (said.empty()) continue;
      if (Error error = take(said, path, path + ":" + std::to_string(number), depth); !error.ok()) return error;
    }
    return Error::Ok();
  }
  std::vector<Route> take_routes() { return std::move(routes_); }

 private:
  static Error load(const std::string& path, std::string_view named_by, std::string& text) {
    const auto unreadable = [&](const char* why) {
      return Bad("cannot read the kernel routes " + path + ", which " + std::string(named_by) + " names: " + why +
                 "; name a file that this process can read");
    };
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(Open(path), &std::fclose);
    if (!file) return unreadable(std::strerror(errno));
    struct stat status {};
    if (::fstat(::fileno(file.get()), &status) != 0) return unreadable(std::strerror(errno));
    if (S_ISDIR(status.st_mode)) return unreadable(std::strerror(EISDIR));
    if (S_ISFIFO(status.st_mode)) return unreadable("it is a pipe");  // /dev/null is a file without routes
    text.resize(kMaxFileBytes + 1);
    text.resize(std::fread(text.data(), 1, text.size(), file.get()));
    if (std::ferror(file.get()) != 0) return unreadable(std::strerror(errno));
    return text.size() > kMaxFileBytes ? unreadable("it is larger than 1 MiB") : Error::Ok();
  }

  Error take(std::string_view said, const std::string& path, const std::string& place, int depth) {
    constexpr std::string_view kInclude = "include";
    if (said.starts_with(kInclude) && said.size() > kInclude.size() &&
        kBlanks.find(said[kInclude.size()]) != std::string_view::npos) {
      const std::string_view target = Trim(said.substr(kInclude.size()));
      if (target.front() != '=') return include(std::string(target), path, place, depth);
    }
    const size_t sign = said.find('=');
    const std::string_view left = Trim(said.substr(0, sign));
    const std::string_view right = sign == std::string_view::npos ? std::string_view() : Trim(said.substr(sign + 1));
    auto route = ParseOperator(left);
    if (sign == std::string_view::npos || !route || !IsLibraryName(right)) {
      return Bad(place + ": " + Quoted(said) +
                 " is no route; write OPERATOR = LIBRARY, as 'sum.dim_IntList = native', or include PATH");
    }
    route->library = right;
    route->origin = place;
    routes_.push_back(*std::move(route));
    return Error::Ok();
  }

  Error include(const std::string& target, const std::string& path, const std::string& place, int depth) {
    if (depth == kMaxIncludeDepth) {
      return Bad(place + ": 'include " + target + "' is nested deeper than " + std::to_string(kMaxIncludeDepth) +
                 " files; does a file include itself? Put its lines here instead");
    }
    const size_t slash = path.rfind('/');
    const bool relative = target.front() != '/' && slash != std::string::npos;
    return read(relative ? path.substr(0, slash + 1) + target : target, place, depth + 1);
  }

  std::vector<Route> routes_;
  size_t lines_ = 0;
};

}  // namespace

Result<std::vector<Route>> ReadRouteFile(const std::string& path, std::string_view named_by) {
  Reader reader;
  if (Error error = reader.read(path, named_by, 0); !error.ok()) return error;
  return reader.take_routes();
}

}  // namespace flagos
