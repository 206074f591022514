// SPDX-License-Identifier: Apache-2.0
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include "client/connection.h"
#include "client/device.h"
#include "client/events.h"
#include "client/forward/types.h"
#include "client/handles.h"
#include "client/register.h"
#include "client/session.h"
#include "client/streams.h"

namespace flagos::client {
namespace {

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::kPrivateUse1; }

  // Devices
  c10::Device getDevice() const override { return {c10::kPrivateUse1, CurrentDevice()}; }
  void setDevice(c10::Device device) const override {
    if (device.has_index()) SetCurrentDevice(device.index());
  }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) thread_state.device = device.index();
  }
  c10::DeviceIndex deviceCount() const noexcept override { return static_cast<c10::DeviceIndex>(Devices().count); }
  c10::DeviceCapability getDeviceCapability(c10::Device device) const override {
    c10::DeviceCapability capability;  // all, where the device has not told yet
    const auto& records = Session::KnownDevices();
    const auto index = static_cast<size_t>(ResolveDevice(device).index());
    if (index >= records.size() || records[index].dtypes == 0) return capability;
    for (size_t type = 0; type < c10::NUMBER_OF_DEVICE_CAPABILITIES; ++type) {
      const auto wire = static_cast<uint8_t>(kWireTypes[type]);
      if (wire == 0 || (records[index].dtypes >> wire & 1) == 0)
        capability.capability_data.capability_bits &= ~(1ull << type);
    }
    return capability;
  }

  // Streams
  c10::Stream getStream(c10::Device device) const override { return CurrentStream(IndexOf(device)); }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, c10::Device(c10::kPrivateUse1, IndexOf(device)));
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority) const override {
    return StreamFromPool(IndexOf(device), high_priority ? StreamPriorityRange().second : 0);
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    return StreamFromPool(IndexOf(device), priority);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    SlotOf(stream);  // for the check
    const c10::Stream before = CurrentStream(stream.device_index());
    thread_state.stream[static_cast<size_t>(stream.device_index())] = static_cast<uint16_t>(stream.id());
    return before;
  }
  // There is no pointer: the stream lives in another process. Its slot serves as a name.
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    return reinterpret_cast<void*>(static_cast<uintptr_t>(SlotOf(stream)));
  }
  bool queryStream(const c10::Stream& stream) const override {
    Session* const session = Session::Current();
    return session == nullptr || session->is_idle(SlotOf(stream), static_cast<uint8_t>(stream.device_index()));
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    Synchronize(SlotOf(stream), stream.device_index());
  }
  void synchronizeDevice(const c10::DeviceIndex device) const override { Synchronize(kAllStreams, device); }

  // Events
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex device,
              const c10::EventFlag flag) const override {
    TORCH_CHECK(device == -1 || device == stream.device_index(), "Event device index ", static_cast<int>(device),
                " does not match recording stream's device index ", static_cast<int>(stream.device_index()), ".");
    RecordEvent(event, stream, flag == c10::EventFlag::BACKEND_DEFAULT);
  }
  void block(void* event, const c10::Stream& stream) const override { BlockOnEvent(event, stream); }
  bool queryEvent(void* event) const override { return QueryEvent(event); }
  void synchronizeEvent(void* event) const override { SynchronizeEvent(event); }
  double elapsedTime(void* first, void* second, const c10::DeviceIndex) const override {
    return ElapsedTime(first, second);
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override { DestroyEvent(event); }

  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    RecordStream(data, stream);
  }

 private:
  static c10::DeviceIndex IndexOf(c10::Device device) { return ResolveDevice(device).index(); }
  static void Synchronize(uint16_t stream, c10::DeviceIndex device) {
    // Without a session there is nothing to wait for; in a forked child of an attached process it is an error to try.
    if (Session::Current() == nullptr && !Session::InBadFork()) return;
    CheckDevice(device);
    Session::Get().synchronize(stream, static_cast<uint8_t>(device));
  }
};

}  // namespace

void RegisterGuard() {
  static const c10::impl::DeviceGuardImplRegistrar registrar(c10::kPrivateUse1, new Guard);  // never destroyed
}

}  // namespace flagos::client
