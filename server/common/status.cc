// SPDX-License-Identifier: Apache-2.0
#include "server/common/status.h"

#include <cerrno>
#include <cstring>
#include <string>

#include "server/common/strings.h"

namespace flagos {
namespace {

absl::StatusCode ClassOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOk: return absl::StatusCode::kOk;
    case ErrorCode::kIndex:
    case ErrorCode::kOutOfRange: return absl::StatusCode::kOutOfRange;
    case ErrorCode::kValue:
    case ErrorCode::kType:
    case ErrorCode::kMalformed: return absl::StatusCode::kInvalidArgument;
    case ErrorCode::kNotImplemented: return absl::StatusCode::kUnimplemented;
    case ErrorCode::kOutOfMemory: return absl::StatusCode::kResourceExhausted;
    case ErrorCode::kNotFound: return absl::StatusCode::kNotFound;
    case ErrorCode::kPermission: return absl::StatusCode::kPermissionDenied;
    case ErrorCode::kVersion: return absl::StatusCode::kFailedPrecondition;
    case ErrorCode::kUnavailable: return absl::StatusCode::kUnavailable;
    case ErrorCode::kDeviceLost: return absl::StatusCode::kAborted;
    case ErrorCode::kTimeout: return absl::StatusCode::kDeadlineExceeded;
    case ErrorCode::kRuntime:
    case ErrorCode::kLinAlg:
    case ErrorCode::kDevice:
    case ErrorCode::kInternal: break;
  }
  return absl::StatusCode::kInternal;
}

ErrorCode CodeOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk: return ErrorCode::kOk;
    case absl::StatusCode::kOutOfRange: return ErrorCode::kOutOfRange;
    case absl::StatusCode::kInvalidArgument: return ErrorCode::kValue;
    case absl::StatusCode::kUnimplemented: return ErrorCode::kNotImplemented;
    case absl::StatusCode::kNotFound: return ErrorCode::kNotFound;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated: return ErrorCode::kPermission;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kResourceExhausted:  // of flagosd, not of a device
    case absl::StatusCode::kUnavailable: return ErrorCode::kUnavailable;
    case absl::StatusCode::kAborted: return ErrorCode::kDeviceLost;
    case absl::StatusCode::kDeadlineExceeded: return ErrorCode::kTimeout;
    default: return ErrorCode::kInternal;
  }
}

}  // namespace

absl::Status ToStatus(const Error& error) { return absl::Status(ClassOf(error.code), error.message); }

Error FromStatus(const absl::Status& status) { return MakeError(CodeOf(status.code()), std::string(status.message())); }

absl::Status SystemError(int error, std::string_view what, std::string_view advice) {
  return absl::Status(absl::ErrnoToStatusCode(error), Cat(what, ": ", std::strerror(error), "; ", advice));
}

}  // namespace flagos
