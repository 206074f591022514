// SPDX-License-Identifier: Apache-2.0
// What a vendor gives to be watched: a shared library beside its own, build/vendors/NAME/libflagos_NAME_monitor.so,
// that exports flagos_monitor(). The program flagos-monitor loads it, and nothing else does. A vendor need not have
// one.
//
// It needs neither libtorch nor a context on the device, and leaves no trace there: one process of a node reads,
// whatever sessions do. Called from one thread; may block, and may crash: flagosd starts the program anew. Nothing here
// throws.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "proto/wire/error.h"
#include "proto/wire/telemetry.h"

namespace flagos::vendor {

inline constexpr uint32_t kMonitorVersion = 1;

class Monitor {
 public:
  virtual ~Monitor() = default;
  // Called once. `options` are the vendor's, from flagosd's configuration, of which those that concern executors alone
  // are passed over. The error's text goes to the administrator as it is: what failed, why, and what to do.
  virtual Error start(const std::map<std::string, std::string>& options) = 0;
  // Every device as it is now, at most kMaxDevices. A device that does not tell something leaves it out; an error is
  // for what a new start may mend.
  virtual Result<std::vector<DeviceReading>> read() = 0;
};

// The exported symbol: extern "C" flagos::vendor::MonitorEntry flagos_monitor();
struct MonitorEntry {
  uint32_t version;  // kMonitorVersion
  Monitor* (*create)();
};
inline constexpr const char* kMonitorSymbol = "flagos_monitor";

// The library's path in `vendor_dir`, the folder of the vendors.
inline std::string MonitorLibrary(const std::string& vendor_dir, const std::string& vendor) {
  return vendor_dir + "/" + vendor + "/libflagos_" + vendor + "_monitor.so";
}

}  // namespace flagos::vendor

// The one line of registration in a monitor's folder.
#define FLAGOS_REGISTER_MONITOR(Type)                                                                          \
  extern "C" __attribute__((visibility("default"))) ::flagos::vendor::MonitorEntry flagos_monitor();           \
  extern "C" ::flagos::vendor::MonitorEntry flagos_monitor() {                                                 \
    return {::flagos::vendor::kMonitorVersion,                                                                 \
            []() -> ::flagos::vendor::Monitor* { return new Type; }}; /* NOLINT(bugprone-macro-parentheses) */ \
  }
