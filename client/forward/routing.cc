// SPDX-License-Identifier: Apache-2.0
#include "client/forward/routing.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <unistd.h>

#include <cstdlib>
#include <iterator>
#include <utility>
#include <vector>

#include "client/errors.h"
#include "client/forward/kernels.h"
#include "client/log.h"
#include "proto/routing/check.h"
#include "proto/routing/environment.h"
#include "proto/routing/route_file.h"
#include "proto/wire/definitions.h"

namespace flagos::client {
namespace {

constexpr const char* kFileVariable = "FLAGOS_BACKEND_CONFIG";
constexpr size_t kShownNotes = 5;

std::vector<std::string> AllOperators() {
  std::vector<std::string> names;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames())
    names.push_back(FullOperatorName(name.name, name.overload_name));
  return names;
}

template <class T>
T Taken(Result<T> result) {
  if (!result.ok()) Throw(result.error());
  return std::move(result).value();
}

// A custom operator may be one that the executor is only asked about when it is called.
bool ReachesDevice(const std::string& full) {
  const OperatorParts parts = SplitOperator(full);
  if (!parts.op.starts_with("aten::")) return true;
  const auto op = c10::Dispatcher::singleton().findSchema({std::string(parts.op), std::string(parts.overload)});
  return op && op->hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1);
}

}  // namespace

Routing::Routing() {
  std::vector<Route> routes;
  const char* const path = std::getenv(kFileVariable);
  if (path != nullptr && *path != '\0') routes = Taken(ReadRouteFile(path, kFileVariable));
  if (HasRouteVariables(environ)) {
    std::vector<Route> more = Taken(RoutesOfVariables(environ, AllOperators()));
    routes.insert(routes.end(), std::move_iterator(more.begin()), std::move_iterator(more.end()));
  }
  table_ = RouteTable(std::move(routes));
}

const Routing& Routing::Get() {
  struct Read {
    const Routing* routing = nullptr;
    std::string why;
  };
  static const Read read = [] {
    try {
      return Read{new Routing, {}};
    } catch (const c10::Error& error) {
      return Read{nullptr, error.what_without_backtrace()};
    }
  }();
  if (read.routing == nullptr) Throw(MakeError(ErrorCode::kValue, read.why));
  return *read.routing;
}

std::string Routing::library_of(const std::string& op) const {
  const Route* const route = table_.find(op);
  return route == nullptr || IsNeverRouted(SplitOperator(op).op) ? std::string() : route->library;
}

void Routing::check(Session& session) const {
  if (table_.empty()) return;
  if (!HasKernelLibraries(session)) {
    Throw(MakeError(ErrorCode::kVersion, table_.routes().front().origin +
                                             ": this flagosd knows no kernel libraries; update it, or choose none"));
  }
  const std::vector<std::string> operators = AllOperators();
  const std::vector<KernelLibraryInfo> libraries = KernelLibraries(session);
  const auto notes = Taken(CheckRoutes(table_.routes(), {operators, &ReachesDevice, libraries}));
  for (size_t i = 0; i < notes.size() && i < kShownNotes; ++i) log::Line("%s", notes[i].c_str());
  if (notes.size() > kShownNotes) log::Line("... and %zu more such routes", notes.size() - kShownNotes);
}

}  // namespace flagos::client
