# SPDX-License-Identifier: Apache-2.0
# Language, warnings, visibility and sanitizers: what every target is compiled and linked with.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

# Line tables cost little and make a core dump or a profile readable; a wheel has none (pyproject.toml, install.strip).
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")

add_library(flagos_options INTERFACE)
target_compile_options(flagos_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Werror -fno-omit-frame-pointer
  -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)  # no path of the building machine in what is built
target_include_directories(flagos_options INTERFACE "${CMAKE_SOURCE_DIR}")
target_link_options(flagos_options INTERFACE -Wl,-z,relro,-z,now -Wl,--as-needed)

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
target_link_libraries(flagos_options INTERFACE Threads::Threads)

if(FLAGOS_SANITIZE)
  add_compile_options(-fsanitize=${FLAGOS_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${FLAGOS_SANITIZE})
  # The distribution's gRPC and Abseil are not instrumented: the thread sanitizer sees their accesses through libc, but not
  # the locks around them. (For the same reason absl::Mutex is no lock to it; code under test uses std::mutex.)
  set(FLAGOS_TEST_ENVIRONMENT
    "TSAN_OPTIONS=ignore_noninstrumented_modules=1:halt_on_error=1:second_deadlock_stack=1:suppressions=${CMAKE_SOURCE_DIR}/tests/support/tsan.supp"
    "ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1"
    "UBSAN_OPTIONS=print_stacktrace=1")
endif()
if(FLAGOS_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "FLAGOS_FUZZ needs clang (libFuzzer is part of it): cmake --preset fuzz")
  endif()
  # Coverage feedback for everything under test; a target's own main comes with -fsanitize=fuzzer when it is linked.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# Programs and libraries lie in the build tree as they lie in the wheel: bin, lib and vendors side by side.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/archive")
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME flagos)
