# SPDX-License-Identifier: Apache-2.0
# Compiles through ccache where it is installed. The sloppiness is what precompiled headers need: ccache's manual asks for
# pch_defines and time_macros, and the header's own times change with every clean build. Base directory and no hashing of
# the current one: a second checkout finds what the first compiled.
find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(sloppiness pch_defines,time_macros,include_file_mtime,include_file_ctime)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=${sloppiness} CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
endif()
