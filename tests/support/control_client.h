// SPDX-License-Identifier: Apache-2.0
// A caller of flagosd's control plane.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "flagos/v1/control.grpc.pb.h"

namespace flagos::testing {

class ControlClient {
 public:
  explicit ControlClient(const std::string& socket)
      : ControlClient(grpc::CreateChannel("unix:" + socket, grpc::InsecureChannelCredentials())) {}
  explicit ControlClient(const std::shared_ptr<grpc::Channel>& channel) : stub_(v1::Control::NewStub(channel)) {}

  v1::Control::Stub& stub() { return *stub_; }

  // Throws where there is no such session.
  v1::Session show(const std::string& id) {
    v1::ShowSessionRequest request;
    request.set_id(id);
    v1::ShowSessionResponse response;
    grpc::ClientContext context;
    Must(stub_->ShowSession(&context, request, &response));
    return response.session();
  }
  std::vector<v1::Session> list(bool all) {
    v1::ListSessionsRequest request;
    request.set_all(all);
    v1::ListSessionsResponse response;
    grpc::ClientContext context;
    Must(stub_->ListSessions(&context, request, &response));
    return {response.sessions().begin(), response.sessions().end()};
  }
  grpc::Status kill(const std::string& id, double grace, const std::string& reason, v1::KillSessionResponse& response) {
    v1::KillSessionRequest request;
    request.set_id(id);
    request.set_grace(grace);
    request.set_reason(reason);
    grpc::ClientContext context;
    return stub_->KillSession(&context, request, &response);
  }
  v1::OpenLeaseResponse open_lease(const std::string& name) {
    v1::OpenLeaseRequest request;
    request.set_name(name);
    v1::OpenLeaseResponse response;
    grpc::ClientContext context;
    Must(stub_->OpenLease(&context, request, &response));
    return response;
  }

 private:
  static void Must(const grpc::Status& status) {
    if (!status.ok()) throw std::runtime_error(status.error_message());
  }
  const std::unique_ptr<v1::Control::Stub> stub_;
};

}  // namespace flagos::testing
