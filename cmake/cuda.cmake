# SPDX-License-Identifier: Apache-2.0
# CUDA's side of a torch built for it: target flagos::torch_cuda, with the CUDA runtime of the same torch. Neither CUDA's
# compiler nor a driver is needed; what the libraries need in turn is found where they are loaded.
if(NOT EXISTS "${torch_root}/lib/libtorch_cuda.so")
  message(FATAL_ERROR "FLAGOS_WITH_CUDA needs a torch built for CUDA, and ${torch_root} is none: run scripts/setup_cuda.sh and "
    "configure with `cmake --preset cuda`, or name one with -DFLAGOS_TORCH_ROOT=...")
endif()
file(GLOB cuda_include "${torch_root}/../nvidia/cu*/include/cuda_runtime_api.h" "${torch_root}/../nvidia/cuda_runtime/include/cuda_runtime_api.h")
file(GLOB cudart "${torch_root}/../nvidia/cu*/lib/libcudart.so.*" "${torch_root}/../nvidia/cuda_runtime/lib/libcudart.so.*")
if(NOT cuda_include OR NOT cudart)
  message(FATAL_ERROR "no CUDA runtime beside ${torch_root}: pip install nvidia-cuda-runtime of the version that torch names")
endif()
list(GET cuda_include 0 cuda_include)
list(GET cudart 0 cudart)
cmake_path(GET cuda_include PARENT_PATH cuda_include)

add_library(flagos::cudart SHARED IMPORTED GLOBAL)
set_target_properties(flagos::cudart PROPERTIES IMPORTED_LOCATION "${cudart}" INTERFACE_INCLUDE_DIRECTORIES "${cuda_include}")
foreach(name c10_cuda torch_cuda)
  add_library(flagos::${name} SHARED IMPORTED GLOBAL)
  set_target_properties(flagos::${name} PROPERTIES IMPORTED_LOCATION "${torch_root}/lib/lib${name}.so")
endforeach()
set_property(TARGET flagos::c10_cuda PROPERTY INTERFACE_LINK_LIBRARIES flagos::c10 flagos::cudart)
set_property(TARGET flagos::torch_cuda PROPERTY INTERFACE_LINK_LIBRARIES flagos::torch_cpu flagos::c10_cuda)
