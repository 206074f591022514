// SPDX-License-Identifier: Apache-2.0
#include "server/ctl/client.h"

#include <absl/strings/str_cat.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>

#include "proto/socket/unix_socket.h"
#include "proto/wire/records.h"
#include "server/ctl/exit_code.h"

namespace flagos::ctl {
namespace {

using absl::StatusCode;

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& socket) {
  grpc::ChannelArguments arguments;
  // The target is a path: no proxy of the environment, no service configuration from anywhere.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

absl::Status Unreachable(const std::string& socket, StatusCode code, std::string_view why, std::string_view advice) {
  return Failure(code, absl::StrCat("cannot reach flagosd at ", socket), why, advice);
}

}  // namespace

Client::Client(std::string socket, absl::Duration timeout)
    : socket_(std::move(socket)), timeout_(timeout), stub_(v1::Control::NewStub(OpenChannel(socket_))) {}

absl::StatusOr<Client> Client::Connect(const std::string& socket, absl::Duration timeout) {
  Client client(socket, timeout);
  if (absl::Status status = ProbeSocket(socket, timeout); !status.ok()) return status;
  v1::GetVersionRequest request;
  request.mutable_supported()->set_min(kProtocolVersionMin);
  request.mutable_supported()->set_max(kProtocolVersionMax);
  auto version = client.Call(&v1::Control::Stub::GetVersion, request);
  if (!version.ok()) return version.status();
  client.version_ = *std::move(version);
  return client;
}

void Client::SetDeadline(grpc::ClientContext& context, absl::Duration from_now) {
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(from_now));
}

absl::Status Client::Explain(const grpc::Status& status, absl::Duration extra) const {
  const auto code = static_cast<StatusCode>(status.error_code());
  if (code == StatusCode::kUnavailable) {
    if (absl::Status reason = ProbeSocket(socket_); !reason.ok()) return reason;
    return Unreachable(socket_, code, absl::StrCat("the connection broke: ", status.error_message()),
                       "see flagosd's log, and try again");
  }
  if (code == StatusCode::kDeadlineExceeded) {
    return Failure(
        code, absl::StrCat("flagosd at ", socket_, " did not answer within ", absl::FormatDuration(timeout_ + extra)),
        "it is stopped, overloaded, or no flagosd", "see its log, or give a longer --timeout");
  }
  if (code == StatusCode::kUnimplemented) {
    return Failure(StatusCode::kFailedPrecondition, absl::StrCat("flagosd at ", socket_, " does not know this command"),
                   "it is older than this flagosctl", "use the flagosctl of its version, or upgrade flagosd");
  }
  return {code, status.error_message()};
}

absl::Status ProbeSocket(const std::string& socket, absl::Duration timeout) {
  const auto limit = std::clamp<int64_t>(absl::ToInt64Milliseconds(timeout), 1, std::numeric_limits<int>::max());
  UniqueFd connected;
  const int error = TryConnectUnix(socket, static_cast<int>(limit), connected);
  struct stat status {};
  switch (error) {
    case 0: return absl::OkStatus();
    case ENAMETOOLONG:
      return Failure(StatusCode::kInvalidArgument, absl::StrCat("the socket path ", socket, " is too long"),
                     absl::StrCat("a unix socket's path has at most ", sizeof sockaddr_un::sun_path - 1, " bytes"),
                     "give a shorter --socket");
    case EMFILE:
    case ENFILE:
      return Failure(StatusCode::kResourceExhausted, "cannot make a socket", std::strerror(error),
                     "raise the limit of open files (ulimit -n)");
    case ENOENT:
    case ENOTDIR:
      return Unreachable(socket, StatusCode::kUnavailable, "there is no such socket",
                         "start flagosd, or name its socket with --socket or FLAGOS_ENDPOINT=unix:///PATH");
    case EACCES:
    case EPERM:
      return Unreachable(socket, StatusCode::kPermissionDenied, "your user may not write to the socket",
                         "join the group that owns it, or ask whoever runs flagosd");
    case EAGAIN:
      return Unreachable(socket, StatusCode::kDeadlineExceeded,
                         absl::StrCat("it accepted no connection within ", absl::FormatDuration(timeout)),
                         "it is stopped or overloaded: see its log, or restart it");
    case ECONNREFUSED:
      if (::stat(socket.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode)) {
        return Unreachable(socket, StatusCode::kUnavailable, "that is no socket",
                           "name flagosd's socket with --socket");
      }
      return Unreachable(socket, StatusCode::kUnavailable, "nothing listens there any more", "start flagosd again");
    default: return Unreachable(socket, StatusCode::kUnavailable, std::strerror(error), "see flagosd's log");
  }
}

}  // namespace flagos::ctl
