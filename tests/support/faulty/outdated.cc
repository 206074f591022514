// SPDX-License-Identifier: Apache-2.0
// A vendor of another version of the interface.
#include "vendors/interface/vendor.h"

extern "C" __attribute__((visibility("default"))) flagos::vendor::Entry flagos_vendor() {
  return {flagos::vendor::kInterfaceVersion + 1, nullptr};
}
