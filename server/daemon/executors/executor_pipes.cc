// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/executors/executor_pipes.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "proto/socket/unix_socket.h"
#include "server/common/fd.h"
#include "server/common/status.h"

namespace flagos::daemon {

absl::StatusOr<OutputPipe> MakeOutputPipe() {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return SystemError(errno, "cannot create a pipe", "raise the limit of open files");
  OutputPipe output{UniqueFd(pipe[0]), UniqueFd(pipe[1])};
  FLAGOS_RETURN_IF_ERROR(SetNonBlocking(output.ours.get()));
  return output;
}

absl::StatusOr<ExecutorPipes> MakeExecutorPipes() {
  auto pair = ToStatusOr(UnixPair());
  if (!pair.ok()) return pair.status();
  auto output = MakeOutputPipe();
  if (!output.ok()) return output.status();
  FLAGOS_RETURN_IF_ERROR(SetNonBlocking(pair->first.get()));
  return ExecutorPipes{.channel = std::move(pair->first),
                       .output = std::move(output->ours),
                       .their_channel = std::move(pair->second),
                       .their_output = std::move(output->theirs)};
}

}  // namespace flagos::daemon
