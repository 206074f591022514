# SPDX-License-Identifier: Apache-2.0
# The functions with which the parts declare what they build. Every one takes
#   NAME name  SOURCES file...  LIBS target...  [TORCH]
# LIBS are public: who links a library also gets what its headers need. TORCH adds libtorch and, to libraries, its
# precompiled headers; such a target exists only where FLAGOS_WITH_TORCH is on.

macro(_flagos_parse options)
  cmake_parse_arguments(PARSE_ARGV 0 arg "TORCH;${options}" "NAME;VENDOR;EXPORTS" "SOURCES;LIBS;LABELS;ARGS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${CMAKE_CURRENT_FUNCTION}: what are '${arg_UNPARSED_ARGUMENTS}'?")
  endif()
  if(arg_TORCH AND NOT FLAGOS_WITH_TORCH)
    return()
  endif()
endmacro()

# What follows add_library and add_executable. A third argument is the folder, relative to the package's native folder,
# that the target is installed to; from there it finds torch's libraries beside the package.
function(_flagos_finish target scope)
  target_link_libraries(${target} PRIVATE flagos_options ${scope} ${arg_LIBS})
  if(arg_TORCH)
    flagos_use_torch(${target} ${scope})
    if(ARGC GREATER 2)
      string(REGEX REPLACE "[^/]+" ".." up "${ARGV2}")
      set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/${up}/../../torch/lib")
    endif()
  endif()
  get_target_property(type ${target} TYPE)
  if(type MATCHES "SHARED|MODULE")
    target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL)
    if(NOT FLAGOS_FUZZ)  # clang leaves its sanitizers' symbols to the program
      target_link_options(${target} PRIVATE -Wl,-z,defs)
    endif()
  endif()
  if(arg_EXPORTS)
    set(script "${CMAKE_CURRENT_SOURCE_DIR}/${arg_EXPORTS}")
    target_link_options(${target} PRIVATE "-Wl,--version-script=${script}")
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${script}")
  endif()
endfunction()

# A static library; SHARED makes it a shared one (build/lib/libNAME.so), installed, whose symbols the linker script
# EXPORTS lists.
function(flagos_add_library)
  _flagos_parse("SHARED")
  if(NOT arg_SHARED)
    add_library(${arg_NAME} STATIC ${arg_SOURCES})
    _flagos_finish(${arg_NAME} PUBLIC)
    return()
  endif()
  add_library(${arg_NAME} SHARED ${arg_SOURCES})
  set_target_properties(${arg_NAME} PROPERTIES DEFINE_SYMBOL "")
  _flagos_finish(${arg_NAME} PRIVATE lib)
  install(TARGETS ${arg_NAME} LIBRARY DESTINATION lib)
  add_dependencies(product ${arg_NAME})
endfunction()

# A program, build/bin/NAME, installed.
function(flagos_add_executable)
  _flagos_parse("")
  add_executable(${arg_NAME} ${arg_SOURCES})
  _flagos_finish(${arg_NAME} PRIVATE bin)
  install(TARGETS ${arg_NAME} RUNTIME DESTINATION bin)
  add_dependencies(product ${arg_NAME})
endfunction()

# A vendor's adaptor, build/vendors/NAME/libflagos_NAME.so with its manifest.toml beside it, installed. Target: flagos_NAME.
# ARGS are further files that the vendor's code or manifest names; they are copied too.
function(flagos_add_vendor)
  _flagos_parse("")
  set(target flagos_${arg_NAME})
  set(folder "${CMAKE_BINARY_DIR}/vendors/${arg_NAME}")
  add_library(${target} MODULE ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${folder}")
  _flagos_finish(${target} PRIVATE vendors/${arg_NAME})
  install(TARGETS ${target} LIBRARY DESTINATION vendors/${arg_NAME})
  add_dependencies(product ${target})
  # A manifest names the torch that the vendor is built against: @FLAGOS_TORCH_VERSION@.
  configure_file(manifest.toml "${folder}/manifest.toml" @ONLY)
  foreach(file ${arg_ARGS})
    configure_file(${file} "${folder}/${file}" COPYONLY)
  endforeach()
  list(TRANSFORM arg_ARGS PREPEND "${folder}/")
  install(FILES "${folder}/manifest.toml" ${arg_ARGS} DESTINATION vendors/${arg_NAME})
endfunction()

# Another shared library of a vendor, as a kernel library or a monitor: build/vendors/VENDOR/libflagos_NAME.so, installed.
# Target: flagos_NAME.
function(flagos_add_vendor_library)
  _flagos_parse("")
  set(target flagos_${arg_NAME})
  add_library(${target} MODULE ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/vendors/${arg_VENDOR}")
  _flagos_finish(${target} PRIVATE vendors/${arg_VENDOR})
  install(TARGETS ${target} LIBRARY DESTINATION vendors/${arg_VENDOR})
  add_dependencies(product ${target})
endfunction()

# A GoogleTest program, build/tests/NAME; ctest runs each of its tests as NAME.Suite.Test under LABELS (default: unit),
# with ARGS. OWN_MAIN: one of SOURCES has a main.
function(flagos_add_test)
  _flagos_parse("OWN_MAIN")
  if(NOT FLAGOS_TESTS)
    return()
  endif()
  add_executable(${arg_NAME} ${arg_SOURCES})
  set_target_properties(${arg_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  _flagos_finish(${arg_NAME} PRIVATE)
  target_link_libraries(${arg_NAME} PRIVATE GTest::gmock GTest::gtest)
  if(NOT arg_OWN_MAIN)
    target_link_libraries(${arg_NAME} PRIVATE GTest::gtest_main)
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  gtest_discover_tests(${arg_NAME} TEST_PREFIX ${arg_NAME}. EXTRA_ARGS ${arg_ARGS} DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT 120 LABELS "${arg_LABELS}" ENVIRONMENT "${FLAGOS_TEST_ENVIRONMENT}")
endfunction()

# A Google Benchmark program, build/bench/NAME.
function(flagos_add_benchmark)
  _flagos_parse("")
  if(NOT FLAGOS_TESTS)
    return()
  endif()
  add_executable(${arg_NAME} ${arg_SOURCES})
  set_target_properties(${arg_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bench")
  _flagos_finish(${arg_NAME} PRIVATE)
  target_link_libraries(${arg_NAME} PRIVATE benchmark::benchmark)
endfunction()

# A libFuzzer program, build/fuzz/fuzzers/NAME; exists in the fuzz preset only, where the target `fuzzers` builds all.
function(flagos_add_fuzzer)
  _flagos_parse("")
  if(NOT FLAGOS_FUZZ)
    return()
  endif()
  add_executable(${arg_NAME} ${arg_SOURCES})
  set_target_properties(${arg_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/fuzzers")
  _flagos_finish(${arg_NAME} PRIVATE)
  target_link_options(${arg_NAME} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers ${arg_NAME})
endfunction()

# What a user installs, without tests and benchmarks; and what protoc generates, which clang-tidy wants to read.
add_custom_target(product)
add_custom_target(generated)
if(FLAGOS_TESTS)
  include(GoogleTest)
endif()
if(FLAGOS_FUZZ)
  add_custom_target(fuzzers)
endif()
