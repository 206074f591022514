// SPDX-License-Identifier: Apache-2.0
#include "vendors/cpu/runtime.h"

#include <ATen/CPUGeneratorImpl.h>

#include <utility>

#include "vendors/torch/failures.h"

namespace flagos::cpu {
namespace {

// Kernels without a Generator argument draw from PyTorch's default generator, a static object behind a const reference.
at::Generator& GlobalGenerator() { return const_cast<at::Generator&>(at::detail::getDefaultCPUGenerator()); }

// For its lifetime, `generator` is what those kernels find.
class StandIn {
 public:
  StandIn(std::mutex& mutex, const at::Generator& generator)
      : lock_(mutex), saved_(std::exchange(GlobalGenerator(), generator)) {}
  ~StandIn() { GlobalGenerator() = std::move(saved_); }
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

 private:
  const std::lock_guard<std::mutex> lock_;
  at::Generator saved_;
};

}  // namespace

CpuRuntime::CpuRuntime(Allocator& allocator, vendor::Host& host)
    : allocator_(allocator), streams_(allocator.devices()) {
  for (uint8_t i = 0; i < allocator_.devices(); ++i) {
    allocator_.pool(i).report_to(&host.figures(i));
    if (!allocator_.pool(i).charge_to(host.memory(), i)) {
      throw torch_host::Refusal(ErrorCode::kOutOfMemory, "the lease has no room for what the executor holds already; " +
                                                             Describe(host.memory()->view(i)) +
                                                             ": end other sessions of it");
    }
    generators_.push_back(i == 0 ? GlobalGenerator() : at::detail::createCPUGenerator());
  }
  // A session starts from PyTorch's documented seed, whatever this process drew before.
  generators_[0].set_current_seed(c10::default_rng_seed_val);
}

CpuRuntime::~CpuRuntime() {
  streams_.drain();
  for (uint8_t i = 0; i < allocator_.devices(); ++i) {
    allocator_.pool(i).report_to(nullptr);
    allocator_.pool(i).charge_to(nullptr, i);
  }
}

c10::Storage CpuRuntime::allocate(uint64_t bytes, uint8_t device, uint16_t) {
  return allocator_.storage(bytes, device);
}

at::Generator CpuRuntime::make_generator(uint8_t) { return at::detail::createCPUGenerator(); }

std::shared_ptr<void> CpuRuntime::hold_default_generator(uint8_t device) {
  if (generators_.size() == 1) return nullptr;
  return std::make_shared<StandIn>(global_generator_, generators_[device]);
}

}  // namespace flagos::cpu
