// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "client/attach_exchange.h"
#include "client/connection.h"
#include "proto/socket/unix_socket.h"

namespace flagos::client {
namespace {

constexpr int kAnswerTimeout = 2000;  // milliseconds

// No static of Devices(): a child forked while a thread asks would wait for that thread, which it does not have.
constinit std::mutex ask_mutex;
constinit std::atomic<const DeviceList*> final_answer{nullptr};

// While its first executor starts, flagosd holds the question for a moment and then names neither vendor nor device.
Error AskUntilKnown(const Endpoint& endpoint, AttachAnswer& answer) {
  AttachRequest request = MakeAttachRequest(AttachKind::kDevices);
  request.token = endpoint.token;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kAttachTimeout);
  for (;;) {
    auto socket = ConnectUnix(endpoint.path);
    if (!socket.ok()) return socket.error();
    answer = {};
    Error error = Exchange(socket.value().get(), request, kAnswerTimeout, answer);
    if (!error.ok() || !answer.devices.empty() || answer.reply.vendor[0] != '\0') return error;
    if (std::chrono::steady_clock::now() < until) continue;
    return MakeError(ErrorCode::kTimeout, "its first executor is still starting after " +
                                              std::to_string(kAttachTimeout / 1000) + " s; see its log");
  }
}

Error Query(DeviceList& list) {
  auto endpoint = ReadEndpoint();
  if (!endpoint.ok()) return endpoint.error();
  list.endpoint = endpoint.value();
  if (endpoint.value().kind == Endpoint::Kind::kEmbedded) {
    list.count = endpoint.value().devices;
    return Error::Ok();
  }
  AttachAnswer answer;
  if (Error error = AskUntilKnown(endpoint.value(), answer); !error.ok()) {
    return MakeError(error.code, "flagosd at " + endpoint.value().text() + ": " + error.message);
  }
  if (answer.devices.empty()) {
    return MakeError(ErrorCode::kUnavailable, "flagosd at " + endpoint.value().text() +
                                                  " has no device for this process; see `flagosctl device list`");
  }
  list.records = std::move(answer.devices);
  list.count = static_cast<uint32_t>(list.records.size());
  return Error::Ok();
}

// REQUIRES ask_mutex
const DeviceList& Ask() {
  // Outlive every thread, for what was returned stays valid.
  static auto& lists = *new std::vector<std::unique_ptr<DeviceList>>;
  DeviceList& list = *lists.emplace_back(std::make_unique<DeviceList>());
  try {
    list.error = Query(list);
  } catch (const std::exception&) {  // no memory: no text either
    list.error.code = ErrorCode::kInternal;
  }
  return list;
}

}  // namespace

const DeviceList& Devices() noexcept {
  if (const DeviceList* const list = final_answer.load(std::memory_order_acquire)) return *list;
  const std::lock_guard lock(ask_mutex);
  if (const DeviceList* const list = final_answer.load(std::memory_order_relaxed)) return *list;
  const DeviceList& list = Ask();
  if (list.error.code != ErrorCode::kTimeout) final_answer.store(&list, std::memory_order_release);
  return list;
}

Error NoDeviceError() {
  Error error = Devices().error;
  error.message = "flagos has no device: " + error.message;
  // What else went wrong is not asked again: see Devices().
  if (error.code != ErrorCode::kTimeout) error.message += " (a process asks once: restart it afterwards)";
  return error;
}

void RenewDevicesAfterFork() noexcept {
  if (final_answer.load(std::memory_order_relaxed) == nullptr) new (&ask_mutex) std::mutex;
}

}  // namespace flagos::client
