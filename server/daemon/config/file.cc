// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/config/file.h"

#include <algorithm>
#include <filesystem>

#include "server/common/strings.h"
#include "server/daemon/config/keys.h"

namespace flagos::daemon {
namespace {

// One file on its way into a Config.
class FileReader {
 public:
  FileReader(std::string file, Config& config, std::vector<std::string>& errors)
      : file_(std::move(file)), config_(config), errors_(errors) {}

  void read() {
    std::error_code ignored;
    if (std::filesystem::is_directory(file_, ignored)) {
      return errors_.push_back(Cat(file_, ": is a directory; name a file (FILE.d/*.toml is read along with FILE)"));
    }
    try {
      const toml::table root = toml::parse_file(file_);
      for (const auto& [key, value] : root) read_section(key.str(), value);
    } catch (const toml::parse_error& error) {
      const auto line = error.source().begin.line;
      errors_.push_back(Cat(file_, line == 0 ? std::string() : Cat(":", line), ": ", error.description()));
    }
  }

 private:
  void read_section(std::string_view name, const toml::node& value) {
    if (name == "schema") return read_schema(value);
    if (name == "vendor") return read_vendors(value);
    std::vector<std::string_view> sections = {"schema", "vendor"}, names;
    for (const ConfigKey& key : ConfigKeys()) {
      sections.push_back(key.section);
      if (key.section == name) names.push_back(key.name);
    }
    if (names.empty()) return unknown(value, Cat("[", name, "]"), Nearest(name, sections));
    const toml::table* const table = value.as_table();
    if (table == nullptr) return complain(value, Cat("[", name, "] must be a table"));
    for (const auto& [key, entry] : *table) {
      const auto known =
          std::find_if(ConfigKeys().begin(), ConfigKeys().end(), [name, word = key.str()](const ConfigKey& candidate) {
            return candidate.section == name && candidate.name == word;
          });
      if (known == ConfigKeys().end()) {
        unknown(entry, Cat("[", name, "] ", key.str()), Nearest(key.str(), names));
      } else {
        check(entry, Cat("[", name, "] ", key.str()), known->read(entry, config_));
        note(entry, known->path());
      }
    }
  }

  void read_schema(const toml::node& value) {
    if (value.value_exact<int64_t>() != kConfigSchema) {
      complain(value, Cat("schema: this flagosd reads schema ", kConfigSchema, " only"));
    }
  }

  void read_vendors(const toml::node& value) {
    const toml::table* const table = value.as_table();
    if (table == nullptr) return complain(value, "[vendor]: write [vendor.NAME]");
    std::vector<std::string_view> names;
    for (const VendorKey& key : VendorKeys()) names.push_back(key.name);
    for (const auto& [vendor, keys] : *table) {
      if (!keys.is_table()) {
        complain(keys, Cat("[vendor] ", vendor.str(), ": write [vendor.NAME] and its keys below"));
        continue;
      }
      VendorConfig& to = config_.vendors[std::string(vendor.str())];
      for (const auto& [key, entry] : *keys.as_table()) {
        const std::string where = Cat("[vendor.", vendor.str(), "] ", key.str());
        const auto known =
            std::find_if(VendorKeys().begin(), VendorKeys().end(),
                         [word = key.str()](const VendorKey& candidate) { return candidate.name == word; });
        if (known == VendorKeys().end()) {
          unknown(entry, where, Nearest(key.str(), names));
        } else {
          check(entry, where, known->read(entry, to));
          note_vendor(entry, Cat("vendor.", vendor.str(), ".", key.str()));
        }
      }
    }
  }

  void note(const toml::node& at, std::string key) {
    config_.origins[std::move(key)] = Cat(file_, ":", at.source().begin.line);
  }
  // Files add to a vendor's options one by one, so that each has a place of its own.
  void note_vendor(const toml::node& at, const std::string& key) {
    const toml::table* const table = at.as_table();
    if (table == nullptr) return note(at, key);
    for (const auto& [option, value] : *table) note(value, Cat(key, ".", option.str()));
  }
  void check(const toml::node& at, std::string_view key, const absl::Status& status) {
    if (!status.ok()) complain(at, Cat(key, ": ", MessageOf(status)));
  }
  void unknown(const toml::node& at, std::string_view what, std::string_view nearest) {
    complain(at, Cat("unknown key ", what,
                     nearest.empty() ? "; deploy/flagosd.toml lists the keys that there are"
                                     : Cat("; did you mean ", nearest, "?")));
  }
  void complain(const toml::node& at, std::string_view what) {
    errors_.push_back(Cat(file_, ":", at.source().begin.line, ": ", what));
  }

  const std::string file_;
  Config& config_;
  std::vector<std::string>& errors_;
};

}  // namespace

std::vector<std::string> ReadConfigFiles(const std::string& path, Config& config) {
  namespace fs = std::filesystem;
  std::vector<std::string> errors;
  std::vector<std::string> files;
  std::error_code failure;
  const fs::path folder = fs::path(path).parent_path() / "conf.d";
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure)) {
    if (at->path().extension() == ".toml") files.push_back(at->path().string());
  }
  if (failure && failure != std::errc::no_such_file_or_directory) {
    errors.push_back(Cat(folder.string(), ": cannot be read: ", failure.message()));
  }
  std::sort(files.begin(), files.end());
  files.insert(files.begin(), path);
  for (const std::string& file : files) FileReader(file, config, errors).read();
  config.files = std::move(files);
  return errors;
}

}  // namespace flagos::daemon
