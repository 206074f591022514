// SPDX-License-Identifier: Apache-2.0
// What the calls of one operator came to so far, for torch.flagos.explain().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace flagos::client {

// Why a call waited for its answer.
enum class Wait : uint8_t {
  kHost,       // the host needs its bytes: a copy that is not asynchronous
  kData,       // what it returns, or its geometry, depends on data
  kSignature,  // the first call of a signature whose results nobody can predict
  kDoubt,      // PyTorch may refuse it for what stands in no signature (doubt.h)
  kBlocking    // FLAGOS_LAUNCH_BLOCKING
};
inline constexpr size_t kWaitCount = 5;
inline constexpr std::array<const char*, kWaitCount> kWaitNames = {
    "host needs bytes", "result depends on data", "new signature", "numbers or overlap to check", "launch blocking"};

// GUARDED_BY(Session::lock())
struct Tally {
  uint64_t calls = 0;
  std::array<uint64_t, kWaitCount> waits{};
  uint64_t fallbacks = 0;  // calls that ran on the client's CPU
  uint64_t bytes_to_device = 0;
  uint64_t bytes_to_host = 0;
  uint64_t kernel_calls_before = 0;  // that a kernel library had run when counting began anew
};

}  // namespace flagos::client
