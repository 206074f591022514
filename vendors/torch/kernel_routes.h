// SPDX-License-Identifier: Apache-2.0
// Which kernel library runs an operator: asked by the client, else as flagosd's configuration says.
#pragma once

#include <c10/core/DispatchKey.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proto/routing/route_table.h"
#include "vendors/torch/kernel_libraries.h"
#include "vendors/torch/kernel_options.h"

namespace flagos::torch_host {

// Of an operator for which a library was chosen.
struct KernelRoute {
  std::string library;
  const Kernel* kernel = nullptr;  // null: the library has none, and the vendor's own runs
  std::atomic<uint64_t> calls{0};  // that the kernel ran
};

// For one thread at a time: the executor's main thread, which becomes the dispatch thread.
class KernelRoutes {
 public:
  // Finds the libraries and reads the configured routes; what is wrong with them is an error that says where. `key` is
  // that of the vendor's kernels.
  static Result<std::shared_ptr<KernelRoutes>> Make(const KernelOptions& options, c10::DispatchKey key);

  // The route of an operator's calls ("aten::sum.dim_IntList"), `asked` being the client's choice or empty. Null: the
  // vendor's own kernels.
  Result<std::shared_ptr<KernelRoute>> choose(const std::string& op, const std::string& asked);
  std::vector<KernelLibraryInfo> libraries() { return libraries_.list(); }

 private:
  explicit KernelRoutes(KernelLibraries libraries) : libraries_(std::move(libraries)) {}
  Error configure(const std::string& path, c10::DispatchKey key);

  KernelLibraries libraries_;
  RouteTable configured_;
};

}  // namespace flagos::torch_host
