// SPDX-License-Identifier: Apache-2.0
// The options about kernel libraries that every vendor has that hosts a libtorch. Knows no torch.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vendors/interface/vendor.h"

namespace flagos::torch_host {

inline constexpr std::string_view kKernelsOption = "kernels";  // folders of libraries, with ":" between them
inline constexpr std::string_view kRoutesOption = "routes";    // a file of routes, for who chooses nothing else

inline bool IsKernelOption(std::string_view name) { return name == kKernelsOption || name == kRoutesOption; }

struct KernelOptions {
  std::vector<std::string> folders;
  std::string routes;  // empty: none
};

inline KernelOptions ReadKernelOptions(const vendor::Options& options) {
  KernelOptions read;
  if (const auto found = options.values.find(std::string(kRoutesOption)); found != options.values.end()) {
    read.routes = found->second;
  }
  const auto found = options.values.find(std::string(kKernelsOption));
  if (found == options.values.end()) return read;
  for (std::string_view rest = found->second; !rest.empty();) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    if (!folder.empty()) read.folders.emplace_back(folder);
  }
  return read;
}

}  // namespace flagos::torch_host
