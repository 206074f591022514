// SPDX-License-Identifier: Apache-2.0
// absl::Status inside the server, flagos::Error on the wire: one maps to the other without losing the text.
#pragma once

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/wire/error.h"

namespace flagos {

// The class of an error as gRPC and absl know it, and back. Several wire codes share a class, so that
// FromStatus(ToStatus(e)) keeps the text and the class, not always the number.
absl::Status ToStatus(const Error& error);
Error FromStatus(const absl::Status& status);

template <class T>
absl::StatusOr<T> ToStatusOr(Result<T> result) {
  if (!result.ok()) return ToStatus(result.error());
  return std::move(result).value();
}

// A failed system call: "WHAT: strerror(error); ADVICE", of the class that `error` belongs to.
absl::Status SystemError(int error, std::string_view what, std::string_view advice);

}  // namespace flagos

// Returns from the calling function where `expression` is not ok.
#define FLAGOS_RETURN_IF_ERROR(expression)                                \
  do {                                                                    \
    if (absl::Status flagos_status = (expression); !flagos_status.ok()) { \
      return flagos_status;                                               \
    }                                                                     \
  } while (false)
