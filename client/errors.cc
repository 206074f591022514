// SPDX-License-Identifier: Apache-2.0
#include "client/errors.h"

#include <c10/util/Exception.h>

namespace flagos::client {
namespace {

// Where PyTorch is to believe that it happened: shown only with C++ stack traces on.
c10::SourceLocation Here() { return {"the flagos executor", "flagos", 0}; }

}  // namespace

void Throw(const Error& error) {
  switch (error.code) {
    case ErrorCode::kIndex: throw c10::IndexError(Here(), error.message);
    case ErrorCode::kValue: throw c10::ValueError(Here(), error.message);
    case ErrorCode::kType: throw c10::TypeError(Here(), error.message);
    case ErrorCode::kNotImplemented: throw c10::NotImplementedError(Here(), error.message);
    case ErrorCode::kOutOfMemory: throw c10::OutOfMemoryError(Here(), error.message);
    case ErrorCode::kLinAlg: throw c10::LinAlgError(Here(), error.message);
    case ErrorCode::kDeviceLost: throw c10::AcceleratorError(Here(), kDeviceLostErrorCode, error.message);
    case ErrorCode::kDevice: throw c10::AcceleratorError(Here(), kDeviceFaultErrorCode, error.message);
    default: throw c10::Error(Here(), error.message);
  }
}

void Warn(const Warning& warning) {
  c10::Warning::warning_variant_t kind = c10::UserWarning();
  if (warning.kind == WarningKind::kDeprecation) kind = c10::DeprecationWarning();
  c10::warn(c10::Warning(kind, Here(), warning.text, /*verbatim=*/true));
}

}  // namespace flagos::client
