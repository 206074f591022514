# SPDX-License-Identifier: Apache-2.0
# The CPU vendor's parts that need no libtorch.
flagos_add_test(NAME cpu_vendor_test
  SOURCES
    cpu_options_test.cc
    cpu_pool_test.cc
    cpu_quota_test.cc
    cpu_streams_test.cc
  LIBS flagos_cpu_base)
flagos_add_test(NAME cpu_monitor_test SOURCES cpu_monitor_test.cc LIBS flagos_cpu_monitor_core flagos_daemon_harness)
