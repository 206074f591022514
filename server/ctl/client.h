// SPDX-License-Identifier: Apache-2.0
// The control plane of a flagosd, as a client sees it.
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "flagos/v1/control.grpc.pb.h"

namespace flagos::ctl {

class Client {
 public:
  // Connects to the unix socket and agrees on a version. The error says why the daemon cannot be reached.
  static absl::StatusOr<Client> Connect(const std::string& socket, absl::Duration timeout);

  // One call: Call(&Stub::ListDevices, request). `extra` is what the call itself takes, on top of the time-out.
  template <class Request, class Response>
  absl::StatusOr<Response> Call(grpc::Status (v1::Control::Stub::*method)(grpc::ClientContext*, const Request&,
                                                                          Response*),
                                const Request& request, absl::Duration extra = absl::ZeroDuration()) const {
    grpc::ClientContext context;
    SetDeadline(context, timeout_ + extra);
    Response response;
    const grpc::Status status = (stub_.get()->*method)(&context, request, &response);
    if (!status.ok()) return Explain(status, extra);
    return response;
  }

  v1::Control::Stub& stub() const { return *stub_; }
  const v1::GetVersionResponse& version() const { return version_; }
  const std::string& socket() const { return socket_; }

  // The status of a call as one of ours: in three lines, with the socket's own reason where nobody answered. `extra` as
  // the call had it.
  absl::Status Explain(const grpc::Status& status, absl::Duration extra = absl::ZeroDuration()) const;

 private:
  Client(std::string socket, absl::Duration timeout);
  static void SetDeadline(grpc::ClientContext& context, absl::Duration from_now);

  std::string socket_;
  absl::Duration timeout_;
  std::shared_ptr<v1::Control::Stub> stub_;
  v1::GetVersionResponse version_;
};

// Why nothing answers on a socket, found by connecting to it: kUnavailable, kPermissionDenied, kDeadlineExceeded where
// connections are not accepted, or OK if somebody listens.
absl::Status ProbeSocket(const std::string& socket, absl::Duration timeout = absl::Seconds(2));

}  // namespace flagos::ctl
