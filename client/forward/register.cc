// SPDX-License-Identifier: Apache-2.0
#include "client/forward/register.h"

#include <torch/library.h>

#include <array>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "client/forward/fallback.h"
#include "client/forward/forwarding_kernel.h"
#include "client/forward/local.h"
#include "client/forward/sparse_operators.h"

namespace flagos::client {
namespace {

// Lives for ever: unregistering while the process ends would race with what still runs.
torch::Library& LibraryOf(const std::string& name_space) {
  static auto& libraries = *new std::map<std::string, torch::Library>;
  const auto found = libraries.find(name_space);
  if (found != libraries.end()) return found->second;
  return libraries
      .emplace(
          std::piecewise_construct, std::forward_as_tuple(name_space),
          std::forward_as_tuple(torch::Library::IMPL, name_space, c10::DispatchKey::PrivateUse1, __FILE__, __LINE__))
      .first->second;
}

c10::OperatorName ParseName(const std::string& name) {
  const size_t colon = name.find("::");
  const size_t dot = name.find('.', colon == std::string::npos ? 0 : colon);
  return {name.substr(0, dot), dot == std::string::npos ? std::string() : name.substr(dot + 1)};
}

// What is differentiated by what it is composed of: a kernel of its own would hide that.
bool IsDifferentiatedByParts(const c10::OperatorHandle& handle) {
  return handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
         !handle.hasKernelForDispatchKey(c10::DispatchKey::Autograd);
}

void ForwardOffered(const std::string& name) {
  const auto handle = c10::Dispatcher::singleton().findSchema(ParseName(name));
  if (!handle || handle->hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1) || IsDifferentiatedByParts(*handle)) {
    return;
  }
  const size_t colon = name.find("::");
  Forward(LibraryOf(name.substr(0, colon)), name.substr(colon + 2).c_str());
}

// Composites that the executor is to compose. The first have one kernel and a rule of prediction, where their out= form
// would have none: a call of a new shape need not wait. The others choose by the kind of device, which the executor
// knows, or by which of their references are one.
constexpr std::array<std::pair<const char*, const char*>, 8> kWhole = {{{"abs", ""},
                                                                        {"logical_and", ""},
                                                                        {"logical_or", ""},
                                                                        {"logical_xor", ""},
                                                                        {"logical_not", ""},
                                                                        {"linalg_lstsq", ""},
                                                                        {"mode", "values"},
                                                                        {"addr_", ""}}};

void ForwardWhole() {
  for (const auto& [name, overload] : kWhole) {
    const c10::OperatorName full(std::string("aten::") + name, overload);
    const auto handle = c10::Dispatcher::singleton().findSchema(full);
    if (!handle || handle->hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1)) continue;
    Forward(LibraryOf("aten"), c10::toString(full).substr(6).c_str());
  }
}

}  // namespace

void RegisterForwarding() {
  static std::once_flag once;
  std::call_once(once, [] {
    RegisterLocal(LibraryOf("aten"));
    static auto& autograd =
        *new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradPrivateUse1, __FILE__, __LINE__);
    RegisterBatchNorm(autograd);
    RegisterComposites(autograd);
    static auto& catch_all =
        *new torch::Library(torch::Library::IMPL, "_", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
    catch_all.fallback(torch::CppFunction::makeFromBoxedFunction<&Fallback>());
    RegisterSparse();
  });
}

void RegisterOperators(std::span<const std::string> names) {
  static std::once_flag once;
  std::call_once(once, [&] {
    for (const std::string& name : names) ForwardOffered(name);
    ForwardWhole();
    ForwardSparse();
  });
}

}  // namespace flagos::client
