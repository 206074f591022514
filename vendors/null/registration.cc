// SPDX-License-Identifier: Apache-2.0
#include "vendors/null/vendor.h"

FLAGOS_REGISTER_VENDOR(flagos::null::NullVendor)
