// SPDX-License-Identifier: Apache-2.0
#include "server/monitor/serve.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <cerrno>

#include "proto/wire/types.h"
#include "server/common/status.h"
#include "server/common/strings.h"
#include "server/monitor/monitor_loader.h"

namespace flagos::monitor {
namespace {

// False where flagosd is gone. One that does not take the message now gets the next: figures of the past are of no use.
bool Send(int channel, const ByteWriter& message) {
  ssize_t sent = 0;
  do {
    sent = ::send(channel, message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent >= 0 || errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS;
}

// Whether flagosd hung up within the time; it never sends anything.
bool HangsUpWithin(int channel, std::chrono::milliseconds time) {
  pollfd entry{channel, POLLIN, 0};
  return ::poll(&entry, 1, static_cast<int>(time.count())) > 0;
}

absl::Status ServeUntilHangup(const Arguments& arguments) {
  auto monitor = LoadMonitor(arguments.vendor, arguments.vendor_dir);
  if (!monitor.ok()) return monitor.status();
  if (const Error error = (*monitor)->start(arguments.options); !error.ok()) return ToStatus(error);
  ByteWriter message;
  do {
    const auto readings = (*monitor)->read();
    if (!readings.ok()) return ToStatus(readings.error());
    if (readings.value().size() > kMaxDevices) {
      return absl::InternalError(Cat("the monitor of vendor ", arguments.vendor, " tells of ", readings.value().size(),
                                     " devices, and flagosd knows at most ", kMaxDevices));
    }
    message.clear();
    EncodeReadings(message, readings.value());
    if (!Send(arguments.channel_fd, message)) break;
  } while (!HangsUpWithin(arguments.channel_fd, arguments.interval));
  return absl::OkStatus();
}

}  // namespace

int Serve(const Arguments& arguments) {
  // A reading that hangs sees no hang-up, and must not outlive flagosd either.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // flagosd ends it; a terminal's or a group's signals are not meant for it.
  for (const int signal : {SIGINT, SIGHUP, SIGQUIT, SIGPIPE}) ::signal(signal, SIG_IGN);
  if (HangsUpWithin(arguments.channel_fd, std::chrono::milliseconds(0))) return 0;
  const absl::Status status = ServeUntilHangup(arguments);
  if (status.ok()) return 0;
  ByteWriter message;
  EncodeMonitorFailure(message, MessageOf(status));
  Send(arguments.channel_fd, message);
  return 1;
}

}  // namespace flagos::monitor
