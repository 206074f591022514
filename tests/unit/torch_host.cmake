# SPDX-License-Identifier: Apache-2.0
# The libtorch host with the CPU vendor, driven at the vendor interface.
flagos_add_test(NAME torch_host_test TORCH
  SOURCES
    torch_host_calls_test.cc
    torch_host_driver.cc
    torch_host_kernels_test.cc
    torch_host_sharing_test.cc
    torch_host_sparse_test.cc
    torch_host_state_test.cc
    torch_host_streams_test.cc
  LIBS flagos_cpu_core)

# Kernel libraries that only tests load: build/tests/kernels.
if(TARGET torch_host_test)
  set(support "${CMAKE_CURRENT_SOURCE_DIR}/../support/kernels")
  set(folder "${CMAKE_BINARY_DIR}/tests/kernels")
  target_compile_definitions(torch_host_test PRIVATE FLAGOS_TEST_KERNELS="${folder}:${CMAKE_BINARY_DIR}/vendors/cpu")
  add_dependencies(torch_host_test flagos_kernels_accurate)
  # What each says of itself: version of the interface, of torch, name, description, device.
  set(misfit "1, TORCH_VERSION, \"misfit\", \"\", c10::kCPU")
  set(outdated "2, TORCH_VERSION, \"outdated\", \"\", c10::kCPU")
  set(foreign "1, \"1.13.0\", \"foreign\", \"\", c10::kCPU")
  set(renamed "1, TORCH_VERSION, \"other\", \"\", c10::kCPU")
  set(elsewhere "1, TORCH_VERSION, \"elsewhere\", \"\", c10::kCUDA")
  foreach(name marked misfit outdated foreign renamed elsewhere nothing)
    set(target flagos_test_kernels_${name})
    add_library(${target} MODULE)
    set_target_properties(${target} PROPERTIES
      LIBRARY_OUTPUT_DIRECTORY "${folder}" OUTPUT_NAME flagos_kernels_${name})
    target_link_libraries(${target} PRIVATE flagos_options flagos::torch_cpu)
    if(name STREQUAL "marked")
      target_sources(${target} PRIVATE "${support}/marked.cc")
    elseif(name STREQUAL "nothing")
      target_sources(${target} PRIVATE "${support}/nothing.cc")
    else()
      target_sources(${target} PRIVATE "${support}/misfit.cc")
      target_compile_definitions(${target} PRIVATE "MISFIT_ENTRY=${${name}}")
    endif()
    add_dependencies(torch_host_test ${target})
  endforeach()
endif()
