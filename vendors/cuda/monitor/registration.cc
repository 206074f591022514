// SPDX-License-Identifier: Apache-2.0
#include "vendors/cuda/monitor/monitor.h"

FLAGOS_REGISTER_MONITOR(flagos::cuda::CudaMonitor)
