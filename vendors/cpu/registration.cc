// SPDX-License-Identifier: Apache-2.0
#include "vendors/cpu/vendor.h"

FLAGOS_REGISTER_VENDOR(flagos::cpu::CpuVendor)
