// SPDX-License-Identifier: Apache-2.0
// Errors as they cross the wire, for the parts that cannot link Abseil: the client and the vendors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace flagos {

// Stable wire numbers. The client turns each into the exception type in the comment; a number that a peer does not
// know is treated as kInternal. Never renumber; append only.
enum class ErrorCode : uint16_t {
  kOk = 0,
  kRuntime = 1,         // RuntimeError
  kIndex = 2,           // IndexError
  kValue = 3,           // ValueError
  kType = 4,            // TypeError
  kNotImplemented = 5,  // NotImplementedError
  kOutOfMemory = 6,     // torch.OutOfMemoryError
  kLinAlg = 7,          // torch.linalg.LinAlgError
  kOutOfRange = 8,      // a bound of this protocol: too many handles, a record too large. RuntimeError
  kNotFound = 9,        // no such session, operator, device. RuntimeError
  kPermission = 10,     // credentials or lease do not allow it. RuntimeError
  kVersion = 11,        // no protocol version in common. RuntimeError
  kMalformed = 12,      // bytes that do not decode. RuntimeError, or the end of the session
  kUnavailable = 13,    // daemon absent, draining or without executors. RuntimeError
  kDeviceLost = 14,     // the executor is gone; every later call fails alike. torch.AcceleratorError
  kDevice = 15,         // a fault that only the device could know. torch.AcceleratorError
  kInternal = 16,       // a bug of ours. RuntimeError
  kTimeout = 17,        // a deadline passed; nothing was changed. RuntimeError
};

// An error code that a peer wrote.
constexpr ErrorCode ErrorCodeFromWire(uint32_t number) {
  return number <= static_cast<uint32_t>(ErrorCode::kTimeout) ? static_cast<ErrorCode>(number) : ErrorCode::kInternal;
}

// A failure with its text. The text says what failed, why, and what to do about it.
struct Error {
  ErrorCode code = ErrorCode::kOk;
  std::string message;

  bool ok() const { return code == ErrorCode::kOk; }
  static Error Ok() { return {}; }
};

inline Error MakeError(ErrorCode code, std::string message) { return Error{code, std::move(message)}; }

// A value or an Error, for code without Abseil. value() REQUIRES ok().
template <class T>
class Result {
 public:
  Result(T value) : value_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  bool ok() const { return value_.has_value(); }
  const Error& error() const { return error_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }

 private:
  std::optional<T> value_;
  Error error_;
};

}  // namespace flagos
