// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/config/sources.h"

#include <filesystem>
#include <utility>

#include "server/common/strings.h"
#include "server/daemon/config/file.h"

namespace flagos::daemon {

std::optional<std::string> ConfigSources::file_now() const {
  if (file || !file_if_there) return file;
  // A file that we may not look at is read, too, and the error told: the node's configuration is not passed over.
  std::error_code hidden;
  const bool read = std::filesystem::exists(*file_if_there, hidden) || hidden;
  return read ? file_if_there : std::nullopt;
}

std::vector<std::string> ConfigSources::load(Config& config) const {
  config = base;
  std::vector<std::string> mistakes;
  if (const auto path = file_now()) mistakes = ReadConfigFiles(*path, config);
  for (const Override& override : overrides) config.origins[override.apply(config)] = override.origin;
  for (std::string& mistake : Validate(config)) mistakes.push_back(std::move(mistake));
  return mistakes;
}

ConfigSources SourcesOf(const std::string& file) {
  ConfigSources sources;
  sources.file = std::filesystem::absolute(file).lexically_normal().string();
  return sources;
}

absl::Status WrongConfiguration(const std::vector<std::string>& mistakes, std::string_view advice) {
  const size_t more = mistakes.size() - 1;
  std::string why = Printable(mistakes.front());
  if (more > 0) why += Cat(" (and ", more, more == 1 ? " other mistake)" : " other mistakes)");
  return absl::FailedPreconditionError(Cat("the configuration is wrong\n", why, "\n", advice));
}

}  // namespace flagos::daemon
