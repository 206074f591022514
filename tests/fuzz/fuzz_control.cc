// SPDX-License-Identifier: Apache-2.0
// Messages of the control plane: the first byte picks one, the rest is its wire form. What parses must survive being
// written and parsed again.
#include <google/protobuf/message.h>

#include <memory>

#include "flagos/v1/control.pb.h"
#include "tests/fuzz/check.h"

namespace {

using namespace flagos::v1;
using Message = google::protobuf::Message;

template <class... Messages>
std::unique_ptr<Message> Make(size_t number) {
  static constexpr std::unique_ptr<Message> (*kMake[])() = {
      []() -> std::unique_ptr<Message> { return std::make_unique<Messages>(); }...};
  return kMake[number % sizeof...(Messages)]();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool quiet = [] {
    google::protobuf::SetLogHandler(nullptr);
    return true;
  }();
  if (!quiet || size == 0) return 0;
  const auto message = Make<GetVersionRequest, GetVersionResponse, ListDevicesRequest, ListDevicesResponse,
                            OpenLeaseRequest, OpenLeaseResponse, CloseLeaseRequest, CloseLeaseResponse,
                            ListSessionsRequest, ListSessionsResponse, ShowSessionRequest, ShowSessionResponse,
                            WatchSessionsRequest, SessionEvent, KillSessionRequest, KillSessionResponse>(data[0]);
  if (!message->ParseFromArray(data + 1, static_cast<int>(size - 1))) return 0;
  const std::string bytes = message->SerializeAsString();
  const std::unique_ptr<Message> again(message->New());
  FUZZ_CHECK(again->ParseFromString(bytes));
  FUZZ_CHECK(again->SerializeAsString().size() == bytes.size());
  return 0;
}
