// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "proto/shm/memfd.h"

namespace flagos::daemon {

// What connects flagosd to an executor: a channel, and what it prints. Ours are non-blocking, all close-on-exec.
struct ExecutorPipes {
  UniqueFd channel, output;
  UniqueFd their_channel, their_output;
};

absl::StatusOr<ExecutorPipes> MakeExecutorPipes();

// A pipe for what an executor prints: our end, which is non-blocking, and its end.
struct OutputPipe {
  UniqueFd ours, theirs;
};
absl::StatusOr<OutputPipe> MakeOutputPipe();

}  // namespace flagos::daemon
