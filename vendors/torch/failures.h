// SPDX-License-Identifier: Apache-2.0
// Failures inside a libtorch host: thrown where they are found, caught once around a call, told as Error.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

#include "proto/wire/error.h"

namespace flagos::torch_host {

// Why a call failed: what a handle that it should have made remembers.
struct Failure {
  Error error;
  uint64_t sequence = 0;  // of the record that failed first; 0 where that is not known
};

// An error of ours in mid-call.
class Refusal : public std::exception {
 public:
  explicit Refusal(Error error) : error_(std::move(error)) {}
  Refusal(ErrorCode code, std::string message) : error_(MakeError(code, std::move(message))) {}
  const Error& error() const { return error_; }
  const char* what() const noexcept override { return error_.message.c_str(); }

 private:
  Error error_;
};

// A call reads a handle whose producer failed.
class PoisonedInput : public std::exception {
 public:
  explicit PoisonedInput(std::shared_ptr<const Failure> failure) : failure_(std::move(failure)) {}
  const std::shared_ptr<const Failure>& failure() const { return failure_; }
  const char* what() const noexcept override { return failure_->error.message.c_str(); }

 private:
  std::shared_ptr<const Failure> failure_;
};

// The exception in flight as an Error with the text that Python would show: PyTorch's kinds keep their kind.
// REQUIRES to be called from a catch block.
Error CurrentError() noexcept;
// The same, with the root failure for a PoisonedInput.
std::shared_ptr<const Failure> CurrentFailure(uint64_t sequence) noexcept;

}  // namespace flagos::torch_host
