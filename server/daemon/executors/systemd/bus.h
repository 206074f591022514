// SPDX-License-Identifier: Apache-2.0
// The system bus, as far as flagosd speaks to systemd's manager over it.
#pragma once

#include <systemd/sd-bus.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/daemon/event_loop.h"

namespace flagos::daemon {

struct MessageUnref {
  void operator()(sd_bus_message* message) const { sd_bus_message_unref(message); }
};
using BusMessage = std::unique_ptr<sd_bus_message, MessageUnref>;

// What sd-bus returned, as an error: "WHAT: reason; ADVICE".
absl::Status BusError(int result, std::string_view what);

// Connects when it is first needed, and again after the connection was lost: calls that wait then fail. Nothing waits
// for a reply; connecting is quick, or the bus is not there. Loop thread only.
class SystemBus {
 public:
  // The message is borrowed.
  using Reply = std::function<void(absl::StatusOr<sd_bus_message*>)>;
  using JobEnded = std::function<void(const std::string& unit, const std::string& result)>;

  // `ended` is told of every job of systemd that ended: "done", "failed" and so on.
  SystemBus(EventLoop& loop, JobEnded ended) : loop_(loop), job_ended_(std::move(ended)) {}
  ~SystemBus();

  // A call to a method of org.freedesktop.systemd1.Manager, to be filled in.
  absl::StatusOr<BusMessage> manager_call(const char* method);
  // The same to a property of a unit, by Properties.Get.
  absl::StatusOr<BusMessage> get_property(const std::string& unit, const char* interface, const char* property);
  // Sends it. `reply` is called from the loop, never from within send(), and not after this object is gone.
  absl::Status send(BusMessage message, Reply reply);

 private:
  absl::Status connect();
  void disconnect();
  void process();
  void arm();

  EventLoop& loop_;
  const JobEnded job_ended_;
  sd_bus* bus_ = nullptr;
  Watch watch_, timer_;
};

}  // namespace flagos::daemon
