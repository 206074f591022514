// SPDX-License-Identifier: Apache-2.0
#include "client/device.h"

#include <c10/util/Exception.h>

#include "client/connection.h"
#include "client/streams.h"

namespace flagos::client {

thread_local constinit ThreadState thread_state;

void CheckDevice(int64_t device) {
  const int64_t count = Devices().count;
  TORCH_CHECK(count != 0, NoDeviceError().message);
  TORCH_CHECK(device >= 0 && device < count, "flagos:", device, " does not exist: this process has ", count,
              " flagos device(s), numbered from 0");
}

void SetCurrentDevice(c10::DeviceIndex device) {
  if (device == thread_state.device) return;
  CheckDevice(device);
  thread_state.device = device;
}

c10::Device ResolveDevice(c10::Device device) {
  if (!device.has_index()) return {device.type(), thread_state.device};
  CheckDevice(device.index());
  return device;
}

uint16_t SlotOf(const c10::Stream& stream) {
  CheckDevice(stream.device_index());
  const c10::StreamId id = stream.id();
  TORCH_CHECK(id == 0 || IsPoolStream(id, stream.device_index()), "flagos:", static_cast<int>(stream.device_index()),
              " has no stream ", id, "; make one with torch.Stream(device=\"flagos\")");
  return SlotOfStream(id, stream.device_index());
}

}  // namespace flagos::client
