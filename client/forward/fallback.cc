// SPDX-License-Identifier: Apache-2.0
#include "client/forward/fallback.h"

#include <ATen/native/CPUFallback.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstdlib>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "client/forward/call.h"
#include "client/log.h"
#include "client/session.h"
#include "proto/wire/bytes.h"

namespace flagos::client {
namespace {

bool ExecutorHas(Session& session, const std::string& name) {
  ByteWriter payload;
  payload.put_string(name);
  const std::vector<std::byte> answer = session.request(MakeHeader(RecordKind::kQueryOperator), payload.bytes());
  return ByteReader(answer).get<uint8_t>() != 0;
}

// The operator where the executor has it, else null. Asked once in a process.
Operator* Ask(Session& session, const c10::OperatorHandle& handle) {
  static std::mutex mutex;
  static auto& answers = *new std::unordered_map<c10::OperatorName, Operator*>;
  {
    const std::lock_guard lock(mutex);
    if (const auto found = answers.find(handle.operator_name()); found != answers.end()) return found->second;
  }
  // Views alias what they are given; an executor's result in another process cannot.
  const auto& returns = handle.schema().returns();
  const bool view = std::ranges::any_of(returns, [](const c10::Argument& value) {
    return value.alias_info() != nullptr && !value.alias_info()->isWrite();
  });
  Operator& op = Operator::Of(handle);
  Operator* const answer = !view && ExecutorHas(session, op.name) ? &op : nullptr;
  const std::lock_guard lock(mutex);
  return answers.try_emplace(handle.operator_name(), answer).first->second;
}

// FLAGOS_CPU_FALLBACK=1: what the executor has not got runs in this process, on copies of its operands. Never unasked:
// an operator that does so each step would cost more than it looks.
bool FallsBack() {
  static const bool falls_back = [] {
    const char* const text = std::getenv("FLAGOS_CPU_FALLBACK");
    return text != nullptr && std::string_view(text) == "1";
  }();
  return falls_back;
}

void RunOnCpu(Session& session, const c10::OperatorHandle& handle, torch::jit::Stack* stack) {
  Operator& op = Operator::Of(handle);
  {
    const std::lock_guard lock(session.lock());
    ++op.tally.fallbacks;
  }
  if (log::Has(log::Word::kFallback)) log::Line("%s runs on the CPU", op.name.c_str());
  at::native::cpu_fallback(handle, stack, /*error_on_views=*/true);
}

}  // namespace

void Fallback(const c10::OperatorHandle& handle, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  Session& session = Session::Get();  // registers the executor's operators
  const c10::DispatchKey key = keys.highestPriorityTypeId();
  if (handle.hasKernelForDispatchKey(key)) {
    handle.redispatchBoxed(c10::DispatchKeySet(key), stack);
    return;
  }
  if (Operator* const op = Ask(session, handle)) {
    Call(*op, *stack);
    return;
  }
  if (key == c10::DispatchKey::PrivateUse1 && FallsBack()) {
    RunOnCpu(session, handle, stack);
    return;
  }
  TORCH_CHECK_NOT_IMPLEMENTED(key == c10::DispatchKey::PrivateUse1, "flagos: '", handle.operator_name(),
                              "' has no kernel for sparse tensors on device '",
                              c10::DeviceTypeName(c10::kPrivateUse1, true), "' (", key,
                              "), and PyTorch cannot compose it of others. Call .to_dense() on them before.");
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, "flagos: '", handle.operator_name(), "' is not available on device '",
      c10::DeviceTypeName(c10::kPrivateUse1, true), "': the vendor '", session.connection().vendor,
      "' has no such operator and PyTorch cannot compose it of others. Move its arguments to the CPU (.cpu()) for this "
      "call, set FLAGOS_CPU_FALLBACK=1 to have that done for every such call, or, for a custom operator, load the "
      "library that defines it in the executor too.");
}

void RefuseKey(const c10::OperatorHandle& handle, c10::DispatchKeySet keys, torch::jit::Stack*) {
  const c10::DispatchKey key = keys.highestPriorityTypeId();
  const bool nested = key == c10::DispatchKey::NestedTensorPrivateUse1;
  TORCH_CHECK_NOT_IMPLEMENTED(false, "flagos: '", handle.operator_name(), "' cannot run on a ",
                              nested ? "nested" : "quantized", " tensor (", key, ") on device '",
                              c10::DeviceTypeName(c10::kPrivateUse1, true),
                              "', which has dense and sparse tensors of plain numbers only. Move the tensor to the CPU "
                              "(.cpu()), or make it with ",
                              nested ? ".to_padded_tensor()" : ".dequantize()", " there before.");
}

}  // namespace flagos::client
