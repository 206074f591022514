// SPDX-License-Identifier: Apache-2.0
#include "server/monitor/monitor_loader.h"

#include <dlfcn.h>

#include "server/common/strings.h"

namespace flagos::monitor {

absl::StatusOr<std::unique_ptr<vendor::Monitor>> LoadMonitor(const std::string& vendor, const std::string& vendor_dir) {
  const std::string path = vendor::MonitorLibrary(vendor_dir, vendor);
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    return absl::FailedPreconditionError(Cat("cannot load the monitor of vendor ", vendor, ": ",
                                             why == nullptr ? "unknown reason" : why, "; install the vendor again"));
  }
  const auto entry_of = reinterpret_cast<vendor::MonitorEntry (*)()>(::dlsym(library, vendor::kMonitorSymbol));
  if (entry_of == nullptr) {
    return absl::FailedPreconditionError(
        Cat(path, " does not export ", vendor::kMonitorSymbol, ", so it is no monitor; install the vendor again"));
  }
  const vendor::MonitorEntry entry = entry_of();
  if (entry.version != vendor::kMonitorVersion) {
    return absl::FailedPreconditionError(Cat("the monitor of vendor ", vendor, " was built for version ", entry.version,
                                             " of its interface and this program has version ", vendor::kMonitorVersion,
                                             "; install both from one release"));
  }
  return std::unique_ptr<vendor::Monitor>(entry.create());
}

}  // namespace flagos::monitor
