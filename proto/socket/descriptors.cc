// SPDX-License-Identifier: Apache-2.0
#include "proto/socket/descriptors.h"

#include <poll.h>

#include <span>
#include <vector>

#include "proto/socket/unix_socket.h"

namespace flagos {

Error SendDescriptor(int socket, uint64_t ticket, int fd) {
  // A stream socket with any room takes a message as short as this one whole.
  pollfd entry{socket, POLLOUT, 0};
  if (::poll(&entry, 1, 0) != 1 || (entry.revents & POLLOUT) == 0) {
    return MakeError(ErrorCode::kUnavailable,
                     "cannot pass a descriptor: the peer has not taken those passed before, or is gone; try again");
  }
  return SendRecord(socket, std::as_bytes(std::span(&ticket, 1)), std::span(&fd, 1));
}

Result<UniqueFd> TakeDescriptor(int socket, uint64_t ticket) {
  for (;;) {
    uint64_t found = 0;
    std::vector<UniqueFd> fds;
    if (!ReceiveRecord(socket, std::as_writable_bytes(std::span(&found, 1)), &fds, 0).ok() || fds.size() != 1) {
      return MakeError(ErrorCode::kMalformed,
                       "the descriptor of a shared tensor did not come with it; the peer is not of this version");
    }
    if (found == ticket) return std::move(fds.front());
  }
}

}  // namespace flagos
