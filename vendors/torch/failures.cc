// SPDX-License-Identifier: Apache-2.0
#include "vendors/torch/failures.h"

#include <c10/util/Exception.h>

#include <new>
#include <string>
#include <string_view>

namespace flagos::torch_host {
namespace {

Error Translate(ErrorCode code, const c10::Error& error) { return MakeError(code, error.what_without_backtrace()); }

// What PyTorch's dispatcher says of a missing kernel goes on with every kernel that there is: of the executor, which
// the program does not know.
Error TranslateMissing(const c10::NotImplementedError& error) {
  const std::string_view text = error.what_without_backtrace();
  const size_t end = text.find(" backend. ");
  if (!text.starts_with("Could not run '") || end == std::string_view::npos)
    return Translate(ErrorCode::kNotImplemented, error);
  return MakeError(ErrorCode::kNotImplemented,
                   std::string(text.substr(0, end)) +
                       " backend: the executor's PyTorch has no such kernel. Call .to_dense() "
                       "on sparse tensors before, or run it on the CPU (.cpu()).");
}

}  // namespace

Error CurrentError() noexcept {
  try {
    throw;
  } catch (const Refusal& refusal) {
    return refusal.error();
  } catch (const PoisonedInput& poisoned) {
    return poisoned.failure()->error;
  } catch (const c10::IndexError& error) {
    return Translate(ErrorCode::kIndex, error);
  } catch (const c10::ValueError& error) {
    return Translate(ErrorCode::kValue, error);
  } catch (const c10::TypeError& error) {
    return Translate(ErrorCode::kType, error);
  } catch (const c10::NotImplementedError& error) {
    return TranslateMissing(error);
  } catch (const c10::LinAlgError& error) {
    return Translate(ErrorCode::kLinAlg, error);
  } catch (const c10::OutOfMemoryError& error) {
    return Translate(ErrorCode::kOutOfMemory, error);
  } catch (const c10::AcceleratorError& error) {
    return Translate(ErrorCode::kDevice, error);
  } catch (const c10::Error& error) {
    return Translate(ErrorCode::kRuntime, error);
  } catch (const std::bad_alloc&) {
    return MakeError(ErrorCode::kOutOfMemory,
                     "the executor's process ran out of memory; free tensors or give the device less to hold");
  } catch (const std::exception& error) {
    return MakeError(ErrorCode::kRuntime, error.what());
  } catch (...) {
    return MakeError(ErrorCode::kInternal, "an exception of unknown type left a kernel; report it with the operator");
  }
}

std::shared_ptr<const Failure> CurrentFailure(uint64_t sequence) noexcept {
  try {
    throw;
  } catch (const PoisonedInput& poisoned) {
    return poisoned.failure();
  } catch (...) {
    return std::make_shared<const Failure>(Failure{CurrentError(), sequence});
  }
}

}  // namespace flagos::torch_host
