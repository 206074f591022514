// SPDX-License-Identifier: Apache-2.0
#include "client/attach_exchange.h"

#include <algorithm>
#include <span>

#include "proto/socket/unix_socket.h"

namespace flagos::client {

Error Exchange(int socket, const AttachRequest& request, int timeout_ms, AttachAnswer& answer) {
  // A daemon that refuses at once may have closed before it read the request: its answer still counts.
  const Error sent = SendRecord(socket, std::as_bytes(std::span(&request, 1)));
  const auto into = std::as_writable_bytes(std::span(&answer.reply, 1));
  if (Error error = ReceiveRecord(socket, into, &answer.fds, timeout_ms); !error.ok()) return sent.ok() ? error : sent;
  if (Error error = CheckAttachReply(answer.reply); !error.ok()) return error;
  answer.devices.resize(answer.reply.device_count);
  if (Error error = ReceiveRecord(socket, std::as_writable_bytes(std::span(answer.devices)), nullptr, timeout_ms);
      !error.ok()) {
    return error;
  }
  for (DeviceRecord& device : answer.devices) {
    if (std::find(std::begin(device.name), std::end(device.name), '\0') == std::end(device.name)) {
      return MakeError(ErrorCode::kMalformed,
                       "flagosd named a device without an end; client and flagosd are not of one version");
    }
  }
  return Error::Ok();
}

}  // namespace flagos::client
