// SPDX-License-Identifier: Apache-2.0
#include "vendors/cpu/monitor/monitor.h"

FLAGOS_REGISTER_MONITOR(flagos::cpu::CpuMonitor)
