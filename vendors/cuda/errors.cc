// SPDX-License-Identifier: Apache-2.0
#include "vendors/cuda/errors.h"

#include "vendors/torch/failures.h"

namespace flagos::cuda {

Error ToError(cudaError_t status, const std::string& what) {
  if (status == cudaSuccess) return Error::Ok();
  const std::string text =
      "CUDA error: " + std::string(cudaGetErrorString(status)) + " (" + cudaGetErrorName(status) + ") while " + what;
  if (status == cudaErrorMemoryAllocation) return MakeError(ErrorCode::kOutOfMemory, text);
  return MakeError(ErrorCode::kDevice, text + "; set FLAGOS_LAUNCH_BLOCKING=1 to learn which call it was");
}

std::string NoDevices(cudaError_t status) {
  const std::string head =
      "vendor cuda finds no GPU: " + std::string(cudaGetErrorString(status)) + " (" + cudaGetErrorName(status) + "); ";
  switch (status) {
    case cudaErrorNoDevice:
      return head + "check `nvidia-smi -L`, CUDA_VISIBLE_DEVICES, and that the service may open /dev/nvidia*";
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
      return head +
             "install the driver that this build of PyTorch needs (for CUDA 13: 580 or later); `nvidia-smi` shows "
             "yours";
    case cudaErrorDevicesUnavailable:
      return head + "it is in exclusive mode or taken by another process: see `nvidia-smi -q -d COMPUTE`";
    case cudaErrorMemoryAllocation: return head + "its memory is full: see `nvidia-smi` for who holds it";
    default: return head + "see `nvidia-smi` and the kernel's log";
  }
}

void Check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) [[unlikely]]
    throw torch_host::Refusal(ToError(status, what));
}

}  // namespace flagos::cuda
