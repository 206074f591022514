# SPDX-License-Identifier: Apache-2.0
# What watches NVIDIA GPUs, without any: its NVML is the tests' own.
flagos_add_test(NAME cuda_monitor_test
  SOURCES cuda_monitor_test.cc "${CMAKE_SOURCE_DIR}/vendors/cuda/monitor/registration.cc"
  LIBS flagos_cuda_monitor_core)
