// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime's two functions of the current device, in front of it, for libtorch. PyTorch asks for the device
// about nine times in a small call, at some 50 ns each, and only cudaSetDevice changes it: a thread remembers the
// answer.
//
// A library of its own, which the executor loads before libtorch (manifest.toml), so that these are what libtorch's
// calls are bound to. Libraries that bring a runtime of their own (cuBLAS, NCCL) are not affected; they leave the
// device as they found it.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <string>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

// Of the runtime that libtorch loads.
template <class Function>
Function* Real(const char* name) {
  const std::string file = "libcudart.so." + std::to_string(CUDART_VERSION / 1000);
  void* const runtime = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  return runtime == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(runtime, name));
}

constexpr int kUnknown = -1;
thread_local int current __attribute__((tls_model("initial-exec"))) = kUnknown;

}  // namespace

EXPORT cudaError_t cudaGetDevice(int* device) {
  if (current == kUnknown) [[unlikely]] {
    static const auto get = Real<cudaError_t(int*)>("cudaGetDevice");
    if (get == nullptr) return cudaErrorInitializationError;
    if (const cudaError_t status = get(&current); status != cudaSuccess) {
      current = kUnknown;
      return status;
    }
  }
  *device = current;
  return cudaSuccess;
}

EXPORT cudaError_t cudaSetDevice(int device) {
  static const auto set = Real<cudaError_t(int)>("cudaSetDevice");
  if (set == nullptr) return cudaErrorInitializationError;
  const cudaError_t status = set(device);
  current = status == cudaSuccess ? device : kUnknown;
  return status;
}
