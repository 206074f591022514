// SPDX-License-Identifier: Apache-2.0
#include "client/forward/sparse_operators.h"

#include <torch/library.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "client/forward/fallback.h"
#include "client/forward/forwarding_kernel.h"
#include "client/forward/local.h"

namespace flagos::client {
namespace {

using c10::DispatchKey;

// Live for ever: unregistering while the process ends would race with what still runs.
torch::Library& CooLibrary() {
  static auto& library =
      *new torch::Library(torch::Library::IMPL, "aten", DispatchKey::SparsePrivateUse1, __FILE__, __LINE__);
  return library;
}
torch::Library& CompressedLibrary() {
  static auto& library =
      *new torch::Library(torch::Library::IMPL, "aten", DispatchKey::SparseCsrPrivateUse1, __FILE__, __LINE__);
  return library;
}

void CatchAll(DispatchKey key, torch::CppFunction&& function) {
  auto& library = *new torch::Library(torch::Library::IMPL, "_", key, __FILE__, __LINE__);
  library.fallback(std::move(function));
}

// About the host's memory; composed, they say what is right for a device.
constexpr std::array<std::string_view, 2> kOfTheHost = {"aten::is_pinned", "aten::_pin_memory"};

void ForwardAll(torch::Library& library, DispatchKey on_cpu, DispatchKey here) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getRegistrationsForDispatchKey(on_cpu)) {
    const auto handle = dispatcher.findSchema(name);
    if (!handle || !name.name.starts_with("aten::") || handle->hasKernelForDispatchKey(here) ||
        std::ranges::find(kOfTheHost, name.name) != kOfTheHost.end()) {
      continue;
    }
    const std::string base = name.name.substr(name.name.find("::") + 2);
    Forward(library, (name.overload_name.empty() ? base : base + "." + name.overload_name).c_str());
  }
}

}  // namespace

void RegisterSparse() {
  RegisterSparseLocal(CooLibrary(), CompressedLibrary());
  for (const DispatchKey key : {DispatchKey::SparsePrivateUse1, DispatchKey::SparseCsrPrivateUse1})
    CatchAll(key, torch::CppFunction::makeFromBoxedFunction<&Fallback>());
  for (const DispatchKey key : {DispatchKey::QuantizedPrivateUse1, DispatchKey::NestedTensorPrivateUse1})
    CatchAll(key, torch::CppFunction::makeFromBoxedFunction<&RefuseKey>());
}

void ForwardSparse() {
  ForwardAll(CooLibrary(), DispatchKey::SparseCPU, DispatchKey::SparsePrivateUse1);
  ForwardAll(CompressedLibrary(), DispatchKey::SparseCsrCPU, DispatchKey::SparseCsrPrivateUse1);
}

}  // namespace flagos::client
