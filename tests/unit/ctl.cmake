# SPDX-License-Identifier: Apache-2.0
if(NOT TARGET flagos_ctl)
  return()
endif()
add_library(flagos_test_crashing MODULE "${CMAKE_CURRENT_SOURCE_DIR}/../support/faulty/crashing_library.cc")
set_target_properties(flagos_test_crashing PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
target_link_libraries(flagos_test_crashing PRIVATE flagos_options)

flagos_add_test(NAME ctl_test
  SOURCES
    ctl_command_test.cc
    ctl_config_test.cc
    ctl_debug_test.cc
    ctl_doctor_node_test.cc
    ctl_doctor_test.cc
    ctl_nvidia_test.cc
    ctl_options_test.cc
    ctl_render_test.cc
    ctl_runtime_test.cc
    "${CMAKE_CURRENT_SOURCE_DIR}/../support/wheels.cc"
    ctl_text_test.cc
    ctl_top_test.cc
  LIBS flagos_ctl flagos_daemon_harness flagos::minizip)
target_compile_definitions(ctl_test PRIVATE FLAGOS_CRASHING_LIBRARY="$<TARGET_FILE:flagos_test_crashing>")
add_dependencies(ctl_test flagos-monitor flagos_cpu_monitor flagos_test_crashing)
