# SPDX-License-Identifier: Apache-2.0
# The libtorch host with the CPU vendor, driven at the vendor interface.
flagos_add_test(NAME torch_host_test TORCH
  SOURCES
    torch_host_calls_test.cc
    torch_host_driver.cc
    torch_host_sharing_test.cc
    torch_host_sparse_test.cc
    torch_host_state_test.cc
    torch_host_streams_test.cc
  LIBS flagos_cpu_core)
