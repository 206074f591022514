# SPDX-License-Identifier: Apache-2.0
set(support "${CMAKE_CURRENT_SOURCE_DIR}/../support")

flagos_add_library(NAME flagos_executor_harness
  SOURCES "${support}/executor_process.cc" "${support}/session_client.cc"
  LIBS flagos_executor_core)
flagos_add_library(NAME flagos_faulty_core SOURCES "${support}/faulty/faulty_vendor.cc" LIBS flagos_null_core)

# Vendors that only tests load, in a vendor folder of their own: build/tests/vendors.
set(vendors "${CMAKE_BINARY_DIR}/tests/vendors")
foreach(name faulty outdated)
  add_library(flagos_test_${name} MODULE)
  set_target_properties(flagos_test_${name} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY "${vendors}/${name}" OUTPUT_NAME flagos_${name})
  target_link_libraries(flagos_test_${name} PRIVATE flagos_options)
endforeach()
target_sources(flagos_test_faulty PRIVATE "${support}/faulty/registration.cc")
target_link_libraries(flagos_test_faulty PRIVATE flagos_faulty_core)
target_sources(flagos_test_outdated PRIVATE "${support}/faulty/outdated.cc")
configure_file("${support}/faulty/manifest.toml" "${vendors}/faulty/manifest.toml" COPYONLY)

flagos_add_test(NAME executor_core_test
  SOURCES
    executor_faults_test.cc
    executor_malformed_test.cc
    executor_session_test.cc
  LIBS flagos_executor_harness flagos_faulty_core)
flagos_add_test(NAME executor_share_test SOURCES executor_share_test.cc LIBS flagos_executor_core)
flagos_add_test(NAME executor_null_test SOURCES executor_null_test.cc LIBS flagos_executor_harness flagos_null_core)
flagos_add_test(NAME executor_process_test
  SOURCES executor_loader_test.cc executor_process_test.cc
  LIBS flagos_executor_harness)
add_dependencies(executor_process_test flagos-executor flagos_null flagos_test_faulty flagos_test_outdated)
if(FLAGOS_WITH_TORCH)
  get_target_property(torch_library flagos::torch_cpu IMPORTED_LOCATION)
  get_filename_component(torch_folder "${torch_library}" DIRECTORY)
  target_compile_definitions(executor_process_test PRIVATE FLAGOS_TEST_LIBTORCH="${torch_folder}")
endif()
