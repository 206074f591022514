// SPDX-License-Identifier: Apache-2.0
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/util/Exception.h>

#include "client/connection.h"
#include "client/device.h"
#include "client/generator.h"
#include "client/handles.h"
#include "client/memory.h"
#include "client/register.h"
#include "client/session.h"

namespace flagos::client {
namespace {

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return Devices().count != 0; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return Session::Current() != nullptr; }
  // Attaching waits for the first thing that needs it.
  void init() const override {}

  c10::DeviceIndex deviceCount() const override { return static_cast<c10::DeviceIndex>(Devices().count); }
  c10::DeviceIndex getCurrentDevice() const override { return CurrentDevice(); }
  void setCurrentDevice(c10::DeviceIndex device) const override { SetCurrentDevice(device); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    const c10::DeviceIndex before = CurrentDevice();
    if (device >= 0) SetCurrentDevice(device);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override { return exchangeDevice(device); }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override { return DefaultGenerator(device); }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override { return NewGenerator(device); }

  at::Device getDeviceFromPtr(void* address) const override {
    const auto device = DeviceOfAddress(address);
    TORCH_CHECK(device.has_value(), "The specified pointer ", address, " is not an address of a live flagos tensor");
    return *device;
  }
  bool isPinnedPtr(const void* address) const override { return IsPinned(address); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return PinnedAllocator(); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    ResizeStorage(storage, bytes);
  }
};

}  // namespace

void RegisterHooks() { at::RegisterPrivateUse1HooksInterface(new Hooks); }

}  // namespace flagos::client
