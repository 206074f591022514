// SPDX-License-Identifier: Apache-2.0
#include "vendors/cuda/vendor.h"

FLAGOS_REGISTER_VENDOR(flagos::cuda::CudaVendor)
