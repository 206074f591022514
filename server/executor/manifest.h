// SPDX-License-Identifier: Apache-2.0
// A vendor's manifest.toml: what has to be known before its library is loaded.
//
// clang-format off
//   name = "cpu"                    # of the vendor and of its folder
//   library = "libflagos_cpu.so"    # beside the manifest
//   preload = ["libtorch_acme.so"]  # loaded before the library, with their symbols for all; beside libtorch, or absolute
//   interpose = ["libfaster.so"]    # beside the manifest; before anything else, so that its symbols come before others'
//   device_nodes = ["char-acme"]    # what executors open: paths, or groups of /proc/devices (DeviceAllow of systemd)
//   [libtorch]                      # absent: the vendor hosts none
//   path = "/opt/libtorch/lib"      # folder of libtorch_cpu.so; --libtorch overrides it; without both, an installed runtime
//   versions = ["2.13"]             # that the library was built for; empty: any
//   [environment]                   # set before anything is loaded, where not set already
//   OMP_WAIT_POLICY = "passive"
// clang-format on
//
// Other programs keep keys of their own in it, so unknown ones are left alone.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace flagos::executor {

struct Manifest {
  std::string name;
  std::string library;
  std::vector<std::string> preload;
  std::vector<std::string> interpose;
  std::vector<std::string> device_nodes;
  bool hosts_torch = false;
  std::string torch_path;
  std::vector<std::string> torch_versions;
  std::map<std::string, std::string> environment;
};

// The error names the file, the line or the key, and what is wanted there.
absl::StatusOr<Manifest> ReadManifest(const std::string& path);

}  // namespace flagos::executor
