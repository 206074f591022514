// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/executors/systemd/bus.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "server/common/log.h"
#include "server/common/status.h"
#include "server/common/strings.h"

namespace flagos::daemon {
namespace {

constexpr const char* kSystemd = "org.freedesktop.systemd1";
constexpr const char* kManagerPath = "/org/freedesktop/systemd1";
constexpr const char* kManager = "org.freedesktop.systemd1.Manager";
constexpr const char* kUnits = "/org/freedesktop/systemd1/unit";
constexpr uint64_t kCallTimeout = 10'000'000;  // microseconds

int TakeReply(sd_bus_message* message, void* data, sd_bus_error*) {
  const auto& reply = *static_cast<SystemBus::Reply*>(data);
  const sd_bus_error* const error = sd_bus_message_get_error(message);
  if (error == nullptr) {
    reply(message);
  } else {
    reply(BusError(-sd_bus_error_get_errno(error), error->message == nullptr ? error->name : error->message));
  }
  return 0;
}

int TakeJob(sd_bus_message* message, void* data, sd_bus_error*) {
  uint32_t id = 0;
  const char *job = nullptr, *unit = nullptr, *result = nullptr;
  if (sd_bus_message_read(message, "uoss", &id, &job, &unit, &result) >= 0) {
    (*static_cast<const SystemBus::JobEnded*>(data))(unit, result);
  }
  return 0;
}

}  // namespace

absl::Status BusError(int result, std::string_view what) {
  return SystemError(-result, Cat("systemd: ", what),
                     "flagosd must be a system service of root for [daemon] spawner = \"systemd\"");
}

SystemBus::~SystemBus() { disconnect(); }

void SystemBus::disconnect() {
  watch_.cancel();
  timer_.cancel();
  sd_bus_close_unref(std::exchange(bus_, nullptr));
}

absl::Status SystemBus::connect() {
  if (bus_ != nullptr) return absl::OkStatus();
  int result = sd_bus_open_system(&bus_);
  if (result < 0) {
    bus_ = nullptr;
    return BusError(result, "cannot connect to the system bus");
  }
  sd_bus_set_method_call_timeout(bus_, kCallTimeout);
  result = sd_bus_match_signal_async(bus_, nullptr, kSystemd, kManagerPath, kManager, "JobRemoved", &TakeJob, nullptr,
                                     const_cast<JobEnded*>(&job_ended_));
  if (result >= 0) {
    result =
        sd_bus_call_method_async(bus_, nullptr, kSystemd, kManagerPath, kManager, "Subscribe", nullptr, nullptr, "");
  }
  if (result < 0) {
    disconnect();
    return BusError(result, "cannot subscribe to the manager's signals");
  }
  watch_ = loop_.watch(sd_bus_get_fd(bus_), EPOLLIN, [this](uint32_t) { process(); });
  arm();
  return absl::OkStatus();
}

void SystemBus::process() {
  int result = 0;
  do {
    result = sd_bus_process(bus_, nullptr);
  } while (result > 0);
  // Calls that wait have been told by now: sd-bus answers them itself when the connection ends.
  if (result < 0 || sd_bus_is_open(bus_) <= 0) {
    log::Warn("the connection to the system bus is lost; the next call makes another",
              {{"error", std::strerror(-result)}});
    return disconnect();
  }
  arm();
}

// sd-bus has timers of its own, for replies that do not come.
void SystemBus::arm() {
  sd_bus_flush(bus_);
  uint64_t due = 0;
  timer_.cancel();
  if (sd_bus_get_timeout(bus_, &due) < 0 || due == UINT64_MAX) return;
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now().time_since_epoch());
  const auto delay = std::chrono::microseconds(due) - now;
  timer_ = loop_.after(std::max<Clock::duration>(delay, Clock::duration::zero()), [this] { process(); });
}

absl::StatusOr<BusMessage> SystemBus::manager_call(const char* method) {
  FLAGOS_RETURN_IF_ERROR(connect());
  sd_bus_message* message = nullptr;
  const int result = sd_bus_message_new_method_call(bus_, &message, kSystemd, kManagerPath, kManager, method);
  if (result < 0) return BusError(result, method);
  return BusMessage(message);
}

absl::StatusOr<BusMessage> SystemBus::get_property(const std::string& unit, const char* interface,
                                                   const char* property) {
  FLAGOS_RETURN_IF_ERROR(connect());
  char* path = nullptr;
  int result = sd_bus_path_encode(kUnits, unit.c_str(), &path);
  if (result < 0) return BusError(result, unit);
  sd_bus_message* message = nullptr;
  result = sd_bus_message_new_method_call(bus_, &message, kSystemd, path, "org.freedesktop.DBus.Properties", "Get");
  ::free(path);
  if (result >= 0) result = sd_bus_message_append(message, "ss", interface, property);
  BusMessage owned(message);
  if (result < 0) return BusError(result, property);
  return owned;
}

absl::Status SystemBus::send(BusMessage message, Reply reply) {
  auto owned = std::make_unique<Reply>(std::move(reply));
  sd_bus_slot* slot = nullptr;
  const int result = sd_bus_call_async(bus_, &slot, message.get(), &TakeReply, owned.get(), kCallTimeout);
  if (result < 0) return BusError(result, "cannot send");
  sd_bus_slot_set_destroy_callback(slot, [](void* data) { delete static_cast<Reply*>(data); });
  [[maybe_unused]] Reply* const theirs = owned.release();
  sd_bus_slot_set_floating(slot, 1);  // the bus has it now
  sd_bus_slot_unref(slot);
  arm();
  return absl::OkStatus();
}

}  // namespace flagos::daemon
