// SPDX-License-Identifier: Apache-2.0
#include "proto/routing/check.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace flagos {
namespace {

Error Wrong(const std::string& origin, const std::string& what) {
  return MakeError(ErrorCode::kValue, origin + ": " + what);
}

class Checker {
 public:
  explicit Checker(const RoutingGround& ground) : ground_(ground) {
    for (const std::string& full : ground.operators) overloads_[SplitOperator(full).op].push_back(&full);
  }

  Error check(const Route& route) {
    const KernelLibraryInfo* library = nullptr;
    if (route.library != kNativeKernels) {
      const auto found = std::ranges::find(ground_.libraries, route.library, &KernelLibraryInfo::name);
      if (found == ground_.libraries.end()) return NoSuchLibrary(route.origin, route.library, ground_.libraries);
      if (!found->error.empty()) return Wrong(route.origin, found->error);
      library = &*found;
    }
    const std::vector<const std::string*> meant = operators_of(route);
    if (meant.empty()) {
      return Wrong(route.origin, "PyTorch has no operator '" + OperatorText(route) +
                                     "'; correct the name, or load the library of a custom operator before the device "
                                     "is first used");
    }
    if (library == nullptr) return Error::Ok();
    if (IsNeverRouted(route.op)) return NeverRouted(route.origin, route.op);
    if (std::ranges::none_of(meant, [&](const std::string* full) { return ground_.offered(*full); })) {
      return Wrong(route.origin, "calls of '" + OperatorText(route) +
                                     "' never reach a device, because PyTorch composes them of other operators or the "
                                     "vendor has no kernel; route what FLAGOS_LOG=dispatch shows in its place");
    }
    const auto has = [&](const std::string* full) {
      return std::ranges::find(library->operators, *full) != library->operators.end();
    };
    if (std::ranges::none_of(meant, has)) {
      notes_.push_back(route.origin + ": kernel library '" + library->name + "' has no kernel for '" +
                       OperatorText(route) + "'; its calls run on the vendor's own kernels");
    }
    return Error::Ok();
  }
  std::vector<std::string> take_notes() { return std::move(notes_); }

 private:
  std::vector<const std::string*> operators_of(const Route& route) const {
    std::vector<const std::string*> meant;
    const auto found = overloads_.find(route.op);
    if (found == overloads_.end()) return meant;
    std::ranges::copy_if(found->second, std::back_inserter(meant), [&](const std::string* full) {
      return !route.overload || *route.overload == SplitOperator(*full).overload;
    });
    return meant;
  }

  const RoutingGround& ground_;
  std::unordered_map<std::string_view, std::vector<const std::string*>> overloads_;
  std::vector<std::string> notes_;
};

}  // namespace

Error NoSuchLibrary(const std::string& origin, const std::string& library,
                    std::span<const KernelLibraryInfo> libraries) {
  std::string there(kNativeKernels);
  for (const KernelLibraryInfo& known : libraries) there += ", " + known.name;
  return Wrong(origin, "there is no kernel library '" + library + "' (there are: " + there +
                           "); correct the name, or install it beside the vendor");
}

Error NeverRouted(const std::string& origin, const std::string& op) {
  return Wrong(origin,
               "'" + op + "' makes storages, views or copies, which is never a kernel library's to do; leave it out");
}

Result<std::vector<std::string>> CheckRoutes(std::span<const Route> routes, const RoutingGround& ground) {
  Checker checker(ground);
  for (const Route& route : routes) {
    if (Error error = checker.check(route); !error.ok()) return error;
  }
  return checker.take_notes();
}

}  // namespace flagos
