// SPDX-License-Identifier: Apache-2.0
#include "client/forward/attention_choice.h"

#include <ATen/Context.h>
#include <c10/util/Exception.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <vector>

#include "client/forward/call.h"
#include "client/forward/operator.h"

namespace flagos::client {
namespace {

using Key = c10::SmallVector<int64_t, 48>;

// Of each thread; a model has few, a cache that grows one for each length.
constexpr size_t kMostKnown = 4096;

void Add(Key& key, const at::Tensor& tensor) {
  key.push_back(static_cast<int64_t>(tensor.scalar_type()) << 8 | tensor.dim());
  key.append(tensor.sizes().begin(), tensor.sizes().end());
  key.append(tensor.strides().begin(), tensor.strides().end());
}

Key KeyOf(const Attention& attention) {
  const at::Context& context = at::globalContext();
  Key key;
  int64_t bits = 0;
  for (const bool bit :
       {attention.mask.has_value(), attention.dropout > 0, attention.causal, attention.scale.has_value(),
        attention.grouped, context.userEnabledFlashSDP(), context.userEnabledMemEfficientSDP(),
        context.userEnabledMathSDP(), context.userEnabledCuDNNSDP(), context.deterministicAlgorithms()}) {
    bits = bits << 1 | static_cast<int64_t>(bit);
  }
  key.push_back(bits << 8 | attention.query.get_device());
  for (const at::Tensor* tensor : {&attention.query, &attention.key, &attention.value}) Add(key, *tensor);
  if (attention.mask) Add(key, *attention.mask);
  return key;
}

at::SDPBackend Ask(const Attention& attention) {
  static Operator& choice = Operator::Find("aten::_fused_sdp_choice");
  torch::jit::Stack stack{attention.query,   attention.key,    attention.value, attention.mask,
                          attention.dropout, attention.causal, attention.scale, attention.grouped};
  try {
    Call(choice, stack);
  } catch (const c10::NotImplementedError&) {
    return at::SDPBackend::math;  // an executor without fused kernels
  }
  return static_cast<at::SDPBackend>(stack.back().toInt());
}

}  // namespace

at::SDPBackend AskForAttention(const Attention& attention) {
  struct Known {
    Key key;
    at::SDPBackend backend;
  };
  static thread_local std::vector<Known> known;  // the one used last stands first
  const Key key = KeyOf(attention);
  const auto found = std::ranges::find(known, key, &Known::key);
  if (found != known.end()) {
    const at::SDPBackend backend = found->backend;
    if (found != known.begin()) std::rotate(known.begin(), found, found + 1);
    return backend;
  }
  const at::SDPBackend backend = Ask(attention);
  if (known.size() == kMostKnown) known.pop_back();
  known.insert(known.begin(), {key, backend});
  return backend;
}

}  // namespace flagos::client
