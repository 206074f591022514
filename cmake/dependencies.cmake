# SPDX-License-Identifier: Apache-2.0
# What comes from the distribution (deploy/packages), as targets named flagos::NAME or by the library's own names:
#   flagos::grpc (with Protobuf and Abseil), absl::*, flagos::tomlplusplus, CLI11::CLI11, nlohmann_json::nlohmann_json,
#   flagos::spdlog, flagos::minizip, flagos::crypto, flagos::ncurses, Boost::headers, GTest::gtest, GTest::gmock, GTest::gtest_main, benchmark::benchmark
find_package(PkgConfig REQUIRED)
find_package(absl REQUIRED CONFIG)
find_package(Boost 1.74 REQUIRED)
find_package(CLI11 REQUIRED CONFIG)
find_package(nlohmann_json REQUIRED CONFIG)
find_package(fmt REQUIRED CONFIG)
find_program(PROTOC protoc REQUIRED)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)

# Header-only, both: the distribution has no archives of them.
find_path(TOMLPLUSPLUS_INCLUDE toml++/toml.h REQUIRED)
add_library(flagos_tomlplusplus INTERFACE)
add_library(flagos::tomlplusplus ALIAS flagos_tomlplusplus)
target_include_directories(flagos_tomlplusplus SYSTEM INTERFACE "${TOMLPLUSPLUS_INCLUDE}")
add_library(flagos_spdlog INTERFACE)
add_library(flagos::spdlog ALIAS flagos_spdlog)
target_link_libraries(flagos_spdlog INTERFACE fmt::fmt-header-only)
target_compile_definitions(flagos_spdlog INTERFACE SPDLOG_FMT_EXTERNAL)

# gRPC without TLS: every socket so far is a unix socket, whose peer the kernel vouches for.
add_library(flagos_grpc INTERFACE)
add_library(flagos::grpc ALIAS flagos_grpc)
set(grpc_libraries grpc++_unsecure grpc_unsecure gpr address_sorting upb re2 cares z protobuf)
list(TRANSFORM grpc_libraries PREPEND -l)
if(FLAGOS_STATIC_LIBRARIES)
  list(PREPEND grpc_libraries -Wl,-Bstatic -Wl,--start-group)
  list(APPEND grpc_libraries -Wl,--end-group -Wl,-Bdynamic)
endif()
target_link_libraries(flagos_grpc INTERFACE ${grpc_libraries})

# The terminal, for flagosctl top, and zip files and hashes, for flagosctl runtime. OpenSSL comes with gRPC's development files; only its hashes are linked. By
# their paths: CMake drops what looks like a second -Wl,-Bstatic.
find_path(MINIZIP_INCLUDE minizip/unzip.h REQUIRED)
find_path(NCURSES_INCLUDE ncurses.h REQUIRED)
foreach(library minizip z crypto ncursesw tinfo)
  set(name ${library})
  if(FLAGOS_STATIC_LIBRARIES)
    set(name lib${library}.a)
  endif()
  find_library(FLAGOS_LIBRARY_${library} ${name} REQUIRED)
endforeach()
add_library(flagos_minizip INTERFACE)
add_library(flagos::minizip ALIAS flagos_minizip)
target_link_libraries(flagos_minizip INTERFACE ${FLAGOS_LIBRARY_minizip} ${FLAGOS_LIBRARY_z})
add_library(flagos_crypto INTERFACE)
add_library(flagos::crypto ALIAS flagos_crypto)
target_link_libraries(flagos_crypto INTERFACE ${FLAGOS_LIBRARY_crypto} ${CMAKE_DL_LIBS})

add_library(flagos_ncurses INTERFACE)
add_library(flagos::ncurses ALIAS flagos_ncurses)
target_link_libraries(flagos_ncurses INTERFACE ${FLAGOS_LIBRARY_ncursesw} ${FLAGOS_LIBRARY_tinfo} ${CMAKE_DL_LIBS})

# The distribution's CMake files name the shared libraries; the archives lie beside them.
if(FLAGOS_STATIC_LIBRARIES)
  get_property(imported DIRECTORY PROPERTY IMPORTED_TARGETS)
  list(FILTER imported INCLUDE REGEX "^absl::")
  foreach(target ${imported})
    get_target_property(location ${target} IMPORTED_LOCATION_NONE)
    string(REGEX REPLACE "\\.so[.0-9]*$" ".a" archive "${location}")
    if(EXISTS "${archive}")
      set_property(TARGET ${target} PROPERTY IMPORTED_LOCATION_NONE "${archive}")
    endif()
  endforeach()
endif()

# gRPC's own use of Abseil, which its pkg-config file lists.
pkg_check_modules(grpc REQUIRED grpc++_unsecure)
foreach(library ${grpc_STATIC_LIBRARIES})
  string(REGEX REPLACE "^absl_" "absl::" target "${library}")
  if(TARGET ${target})
    target_link_libraries(flagos_grpc INTERFACE ${target})
  endif()
endforeach()

# Executors as units of systemd. Dynamic: apt needs it, so every Debian and Ubuntu has it.
pkg_check_modules(systemd REQUIRED IMPORTED_TARGET libsystemd)

if(FLAGOS_TESTS)
  find_package(GTest REQUIRED CONFIG)
  find_package(benchmark REQUIRED CONFIG)
endif()
