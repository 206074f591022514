// SPDX-License-Identifier: Apache-2.0
#include "vendors/torch/kernel_routes.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdio>
#include <utility>

#include "proto/routing/check.h"
#include "proto/routing/route_file.h"
#include "proto/wire/definitions.h"
#include "vendors/torch/operator.h"

namespace flagos::torch_host {
namespace {

std::vector<std::string> AllOperators() {
  std::vector<std::string> names;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames())
    names.push_back(FullOperatorName(name.name, name.overload_name));
  return names;
}

}  // namespace

Result<std::shared_ptr<KernelRoutes>> KernelRoutes::Make(const KernelOptions& options, c10::DispatchKey key) {
  auto libraries = KernelLibraries::Find(options.folders, c10::dispatchKeyToDeviceType(key));
  if (!libraries.ok()) return libraries.error();
  std::shared_ptr<KernelRoutes> routes(new KernelRoutes(std::move(libraries).value()));
  if (options.routes.empty()) return routes;
  if (Error error = routes->configure(options.routes, key); !error.ok()) return error;
  return routes;
}

Error KernelRoutes::configure(const std::string& path, c10::DispatchKey key) {
  auto routes = ReadRouteFile(path, "the vendor's option routes in flagosd's configuration");
  if (!routes.ok()) return routes.error();
  const std::vector<std::string> operators = AllOperators();
  const auto offered = [key](const std::string& full) { return HasOperator(full, key); };
  const std::vector<KernelLibraryInfo> there = libraries_.list();
  const auto notes = CheckRoutes(routes.value(), {operators, offered, there});
  if (!notes.ok()) return notes.error();
  for (const std::string& note : notes.value()) std::fprintf(stderr, "%s\n", note.c_str());
  configured_ = RouteTable(std::move(routes).value());
  return Error::Ok();
}

Result<std::shared_ptr<KernelRoute>> KernelRoutes::choose(const std::string& op, const std::string& asked) {
  std::string library = asked;
  if (library.empty()) {
    const Route* const configured = configured_.find(op);
    if (configured != nullptr) library = configured->library;
  }
  if (library.empty() || library == kNativeKernels) return std::shared_ptr<KernelRoute>();
  const OperatorParts parts = SplitOperator(op);
  if (IsNeverRouted(parts.op)) return NeverRouted(op, std::string(parts.op));
  if (!libraries_.contains(library)) return NoSuchLibrary(op, library, libraries_.list());
  const auto loaded = libraries_.load(library);
  if (!loaded.ok()) return MakeError(loaded.error().code, op + ": " + loaded.error().message);
  auto route = std::make_shared<KernelRoute>();
  route->library = std::move(library);
  const auto& kernels = loaded.value()->kernels;
  if (const auto found = kernels.find(op); found != kernels.end()) route->kernel = &found->second;
  return route;
}

}  // namespace flagos::torch_host
