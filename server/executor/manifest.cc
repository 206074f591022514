// SPDX-License-Identifier: Apache-2.0
#include "server/executor/manifest.h"

#include <toml++/toml.h>

#include <filesystem>

#include "absl/status/status.h"
#include "server/common/strings.h"

namespace flagos::executor {
namespace {

absl::Status Wrong(const std::string& path, std::string_view key, std::string_view wanted) {
  return absl::InvalidArgumentError(Cat("the vendor's manifest ", path, " is wrong: ", key, " must be ", wanted,
                                        "; correct or reinstall the vendor"));
}

absl::Status ReadText(const std::string& path, std::string_view key, const toml::node_view<const toml::node>& node,
                      std::string& into) {
  if (!node) return absl::OkStatus();
  const auto text = node.value<std::string>();
  if (!text || text->empty()) return Wrong(path, key, "a text that is not empty");
  into = *text;
  return absl::OkStatus();
}

absl::Status ReadTexts(const std::string& path, std::string_view key, const toml::node_view<const toml::node>& node,
                       std::vector<std::string>& into) {
  if (!node) return absl::OkStatus();
  const toml::array* const array = node.as_array();
  if (array == nullptr) return Wrong(path, key, "a list of texts");
  for (const toml::node& item : *array) {
    const auto text = item.value<std::string>();
    if (!text || text->empty()) return Wrong(path, key, "a list of texts");
    into.push_back(*text);
  }
  return absl::OkStatus();
}

absl::StatusOr<Manifest> Read(const std::string& path, const toml::table& table) {
  Manifest manifest;
  const toml::node_view<const toml::node> root(table);
  manifest.hosts_torch = root["libtorch"].is_table();
  if (root["libtorch"] && !manifest.hosts_torch) return Wrong(path, "libtorch", "a table with path and versions");
  for (const absl::Status& status : {
           ReadText(path, "name", root["name"], manifest.name),
           ReadText(path, "library", root["library"], manifest.library),
           ReadTexts(path, "preload", root["preload"], manifest.preload),
           ReadTexts(path, "interpose", root["interpose"], manifest.interpose),
           ReadTexts(path, "device_nodes", root["device_nodes"], manifest.device_nodes),
           ReadText(path, "libtorch.path", root["libtorch"]["path"], manifest.torch_path),
           ReadTexts(path, "libtorch.versions", root["libtorch"]["versions"], manifest.torch_versions),
       }) {
    if (!status.ok()) return status;
  }
  if (manifest.name.empty()) return Wrong(path, "name", "there");
  if (manifest.library.empty() || manifest.library.find('/') != std::string::npos) {
    return Wrong(path, "library", "the name of a file beside the manifest");
  }
  if (const auto environment = root["environment"]) {
    if (!environment.is_table()) return Wrong(path, "environment", "a table of texts");
    for (const auto& [name, value] : *environment.as_table()) {
      const auto text = value.value<std::string>();
      if (!text) return Wrong(path, Cat("environment.", name.str()), "a text");
      manifest.environment[std::string(name.str())] = *text;
    }
  }
  return manifest;
}

}  // namespace

absl::StatusOr<Manifest> ReadManifest(const std::string& path) {
  std::error_code hidden;
  if (!std::filesystem::exists(path, hidden)) {
    if (hidden) {
      return absl::FailedPreconditionError(Cat("cannot look for the vendor manifest ", path, ": ", hidden.message(),
                                               "; let this user read the vendors' folder"));
    }
    return absl::NotFoundError(Cat("there is no vendor manifest ", path,
                                   "; install the vendor there, or name another folder with --vendor-dir"));
  }
  try {
    return Read(path, toml::parse_file(path));
  } catch (const toml::parse_error& error) {
    return absl::InvalidArgumentError(Cat("the vendor's manifest ", path, " does not parse in line ",
                                          error.source().begin.line, ": ", error.description(),
                                          "; correct or reinstall the vendor"));
  }
}

}  // namespace flagos::executor
