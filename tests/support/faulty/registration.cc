// SPDX-License-Identifier: Apache-2.0
#include "tests/support/faulty/faulty_vendor.h"

FLAGOS_REGISTER_VENDOR(flagos::testing::FaultyVendor)
