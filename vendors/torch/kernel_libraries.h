// SPDX-License-Identifier: Apache-2.0
// The kernel libraries that a vendor finds, loaded when first asked for.
#pragma once

#include <c10/core/DeviceType.h>

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "proto/wire/error.h"
#include "proto/wire/kernels.h"
#include "vendors/torch/kernel_library.h"

namespace flagos::torch_host {

struct LoadedLibrary {
  std::string name;
  std::string description;
  std::unordered_map<std::string, Kernel> kernels;  // by operator
};

// For one thread at a time. What was loaded stays loaded.
class KernelLibraries {
 public:
  // Looks for files libflagos_kernels_NAME.so in `folders` and then in that of the vendor's own library; the first of a
  // name counts. The error names a folder that cannot be read.
  static Result<KernelLibraries> Find(const std::vector<std::string>& folders, c10::DeviceType device);

  // Loads the library unless it is loaded. The error says why it cannot be used; it stays, for the process.
  Result<const LoadedLibrary*> load(const std::string& name);
  // All of them, by name; loads them.
  std::vector<KernelLibraryInfo> list();
  bool contains(const std::string& name) const { return files_.contains(name); }

 private:
  struct File {
    std::string path;
    bool tried = false;
    LoadedLibrary library;
    Error error;
  };
  explicit KernelLibraries(c10::DeviceType device) : device_(device) {}
  Error look_in(const std::string& folder);
  Error open(const std::string& name, File& file) const;
  static Error take(Kernel kernel, LoadedLibrary& library);

  c10::DeviceType device_;
  std::map<std::string, File> files_;  // by name
};

}  // namespace flagos::torch_host
