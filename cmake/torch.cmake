# SPDX-License-Identifier: Apache-2.0
# libtorch, from FLAGOS_PYTHON's packages or from FLAGOS_TORCH_ROOT: targets flagos::c10 and flagos::torch_cpu, of a build for
# CUDA flagos::torch_cuda as well, and flagos_use_torch(). torch's own TorchConfig.cmake is left aside: it wants the
# toolkits of whatever the wheel was built with and sets global flags.
set(FLAGOS_TORCH_ROOT "" CACHE PATH "A torch package's folder, with include and lib; empty: that of FLAGOS_PYTHON")

# Each list says which torch its builds are for.
function(_flagos_wanted_torch list variable)
  set(file "${CMAKE_SOURCE_DIR}/requirements/${list}.txt")
  file(STRINGS "${file}" line REGEX "^torch==")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
  string(REPLACE "torch==" "" line "${line}")
  set(${variable} "${line}" PARENT_SCOPE)
endfunction()
_flagos_wanted_torch(constraints wanted)

if(FLAGOS_TORCH_ROOT)
  _flagos_wanted_torch(cuda also_wanted)
  set(torch_root "${FLAGOS_TORCH_ROOT}")
  file(STRINGS "${torch_root}/version.py" torch_version REGEX "^__version__ = ")
  string(REGEX REPLACE "^__version__ = '(.*)'$" "\\1" torch_version "${torch_version}")
  set(advice "scripts/setup_cuda.sh fetches ${also_wanted}")
else()
  set(question "import importlib.util as u, importlib.metadata as m; s = u.find_spec('torch'); \
print(s.submodule_search_locations[0], m.version('torch'), sep=';')")
  execute_process(COMMAND ${FLAGOS_PYTHON} -c "${question}" OUTPUT_VARIABLE answer ERROR_VARIABLE complaint
    OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${FLAGOS_PYTHON} has no torch: run `make setup`, or name a Python that has torch ${wanted} with "
      "-DFLAGOS_PYTHON=...\n${complaint}")
  endif()
  list(GET answer 0 torch_root)
  list(GET answer 1 torch_version)
  set(also_wanted "${wanted}")
  set(advice "run `make setup`")
endif()
string(REPLACE "." "\\." pattern "^(${wanted}|${also_wanted})([+]|$)")
if(NOT torch_version MATCHES "${pattern}")
  message(FATAL_ERROR "${torch_root} has torch ${torch_version}, but flagosd is built against ${wanted} or, for CUDA, "
    "${also_wanted} (requirements/): ${advice}")
endif()
message(STATUS "Found torch ${torch_version}: ${torch_root}")
string(REGEX MATCH "^[0-9]+[.][0-9]+" FLAGOS_TORCH_VERSION "${torch_version}")
# Beside the client: the package compares it with the torch that it is imported into before it loads anything.
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/lib/libflagos_client.torch" CONTENT "${torch_version}\n")
install(FILES "${CMAKE_BINARY_DIR}/lib/libflagos_client.torch" DESTINATION lib)

foreach(name c10 torch_cpu)
  add_library(flagos::${name} SHARED IMPORTED GLOBAL)
  set_target_properties(flagos::${name} PROPERTIES
    IMPORTED_LOCATION "${torch_root}/lib/lib${name}.so"
    INTERFACE_INCLUDE_DIRECTORIES "${torch_root}/include;${torch_root}/include/torch/csrc/api/include")
endforeach()
set_property(TARGET flagos::torch_cpu PROPERTY INTERFACE_LINK_LIBRARIES flagos::c10)
if(FLAGOS_WITH_CUDA)
  include(cuda)
endif()

# One precompilation of ATen for every library: 15 s of parsing, once. (Programs compile as -fPIE and cannot share it.)
add_library(flagos_torch_pch OBJECT "${CMAKE_SOURCE_DIR}/cmake/torch_pch.cc")
target_link_libraries(flagos_torch_pch PRIVATE flagos_options flagos::torch_cpu)
target_precompile_headers(flagos_torch_pch PRIVATE
  <ATen/ATen.h> <ATen/core/dispatch/Dispatcher.h> <torch/library.h>)

function(flagos_use_torch target scope)
  target_link_libraries(${target} ${scope} flagos::torch_cpu)
  get_target_property(type ${target} TYPE)
  if(NOT type STREQUAL "EXECUTABLE")
    target_precompile_headers(${target} REUSE_FROM flagos_torch_pch)
  endif()
endfunction()
