// SPDX-License-Identifier: Apache-2.0
#include "tests/support/wheels.h"

#include <absl/strings/escaping.h>
#include <minizip/zip.h>

#include <cstdlib>
#include <fstream>

#include "server/common/sha256.h"

namespace flagos::test {
namespace {

namespace fs = std::filesystem;

std::string InfoOf(const WheelSpec& spec) { return spec.package + "-" + spec.version + ".dist-info"; }

std::string RecordOf(const WheelSpec& spec) {
  std::string record;
  for (const auto& [path, text] : spec.files) {
    if (path == spec.unrecorded) continue;
    Sha256 hash;
    hash.add(path == spec.wrong_hash_of ? text + "?" : text);
    record += path + ",sha256=" + absl::WebSafeBase64Escape(hash.digest()) + "," + std::to_string(text.size()) + "\r\n";
  }
  return record + InfoOf(spec) + "/RECORD,,\r\n";
}

void Check(bool ok) {
  if (!ok) std::abort();
}

void Add(zipFile zip, const std::string& path, const std::string& text) {
  const zip_fileinfo info{};
  Check(::zipOpenNewFileInZip64(zip, path.c_str(), &info, nullptr, 0, nullptr, 0, nullptr, Z_DEFLATED, 1, 1) == ZIP_OK);
  Check(::zipWriteInFileInZip(zip, text.data(), static_cast<unsigned>(text.size())) == ZIP_OK);
  Check(::zipCloseFileInZip(zip) == ZIP_OK);
}

}  // namespace

WheelSpec SmallTorch() {
  return {.files = {{"torch/lib/libc10.so", "c10"},
                    {"torch/lib/libtorch_cpu.so", "libtorch"},
                    {"torch/lib/libgomp.so.1", std::string(3 << 20, 'g')},
                    {"torch/__init__.py", "no library"}}};
}

fs::path WriteWheel(const fs::path& folder, const WheelSpec& spec) {
  fs::create_directories(folder);
  fs::path path = folder / (spec.package + "-" + spec.version + "-cp311-cp311-linux_x86_64.whl");
  const zipFile zip = ::zipOpen64(path.c_str(), APPEND_STATUS_CREATE);
  Check(zip != nullptr);
  for (const auto& [file, text] : spec.files) Add(zip, file, text);
  Add(zip, InfoOf(spec) + "/RECORD", RecordOf(spec));
  Check(::zipClose(zip, nullptr) == ZIP_OK);
  return path;
}

void WriteEnvironment(const fs::path& folder, const WheelSpec& spec) {
  const fs::path packages = folder / "lib" / "python3.11" / "site-packages";
  const auto write = [&](const fs::path& file, const std::string& text) {
    fs::create_directories((packages / file).parent_path());
    std::ofstream(packages / file, std::ios::binary) << text;
  };
  for (const auto& [file, text] : spec.files) write(file, text);
  write(InfoOf(spec) + "/RECORD", RecordOf(spec));
}

}  // namespace flagos::test
