// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "vendors/torch/operator.h"
#include "vendors/torch/parameter.h"

namespace flagos::torch_host {
namespace {

// What a client computes without its executor: views, metadata and memory; with every overload. And what speaks of the
// executor's own device instead of the client's (_fused_sdp_choice), or yields tensors without memory.
constexpr std::array<std::string_view, 24> kLocal = {"aten::_conj",
                                                     "aten::_copy_from",
                                                     "aten::_copy_from_and_resize",
                                                     "aten::_efficientzerotensor",
                                                     "aten::_fused_sdp_choice",
                                                     "aten::_neg_view",
                                                     "aten::_nested_view_from_buffer",
                                                     "aten::_pin_memory",
                                                     "aten::_reshape_alias",
                                                     "aten::alias",
                                                     "aten::as_strided",
                                                     "aten::detach",
                                                     "aten::empty",
                                                     "aten::empty_strided",
                                                     "aten::is_pinned",
                                                     "aten::is_set_to",
                                                     "aten::record_stream",
                                                     "aten::resize_",
                                                     "aten::set_",
                                                     "aten::unfold",
                                                     "aten::view",
                                                     "aten::view_as_complex",
                                                     "aten::view_as_real",
                                                     "aten::_foobar"};

bool Offered(const c10::OperatorName& name) {
  const std::string_view full = name.name;
  return IsAllowed(name) && std::ranges::find(kLocal, full) == kLocal.end();
}

bool MultiTensor(std::string_view name) {
  return name.starts_with("aten::_foreach_") || name.starts_with("aten::_fused_");
}

}  // namespace

std::vector<std::string> ListOperators(c10::DispatchKey key) {
  auto& dispatcher = c10::Dispatcher::singleton();
  std::set<std::string> names;
  const auto add = [&](const c10::OperatorName& name) {
    const auto handle = dispatcher.findSchema(name);
    if (!handle || !Offered(name) || !SupportedParameters(handle->schema())) return;
    names.insert(FullOperatorName(name.name, name.overload_name));
  };
  for (const c10::OperatorName& name : dispatcher.getRegistrationsForDispatchKey(key)) add(name);
  for (const auto composite :
       {c10::DispatchKey::CompositeExplicitAutograd, c10::DispatchKey::CompositeExplicitAutogradNonFunctional}) {
    for (const c10::OperatorName& name : dispatcher.getRegistrationsForDispatchKey(composite)) {
      if (MultiTensor(name.name)) add(name);
    }
  }
  add({"aten::copy_", ""});  // composite, but the way into and out of the device
  return {names.begin(), names.end()};
}

}  // namespace flagos::torch_host
