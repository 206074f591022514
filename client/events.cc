// SPDX-License-Identifier: Apache-2.0
#include "client/events.h"

#include <c10/util/Exception.h>

#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>

#include "client/device.h"
#include "client/session.h"

namespace flagos::client {
namespace {

// Not thread safe, like every c10 event.
struct Event {
  uint32_t number;
  bool timing;
  uint8_t device;
  uint16_t stream = 0;    // where it was recorded last
  uint64_t sequence = 0;  // the record's
};

std::unique_ptr<Event> MakeEvent(Session& session, c10::DeviceIndex device, bool timing) {
  const std::lock_guard lock(session.lock());
  const uint32_t number = session.event_numbers().take();
  TORCH_CHECK(number != NumberPool::kNone, "flagos: ", kMaxEvents, " events are alive in this process; destroy some");
  return std::unique_ptr<Event>(new Event{number, timing, static_cast<uint8_t>(device)});
}

}  // namespace

void RecordEvent(void** event, const c10::Stream& stream, bool timing) {
  Session& session = Session::Get();
  auto* recorded = static_cast<Event*>(*event);
  if (recorded == nullptr) *event = recorded = MakeEvent(session, stream.device_index(), timing).release();
  const uint16_t slot = SlotOf(stream);
  const auto device = static_cast<uint8_t>(stream.device_index());
  const RecordHeader header = MakeHeader(RecordKind::kRecordEvent, recorded->number, slot, device, kFlagNotify);
  const std::array<uint32_t, 2> payload = {recorded->timing ? 1u : 0u, 0};
  recorded->sequence = session.send(header, std::as_bytes(std::span(payload)));
  recorded->stream = slot;
  recorded->device = device;
}

void BlockOnEvent(void* event, const c10::Stream& stream) {
  if (event == nullptr) return;
  const auto& recorded = *static_cast<const Event*>(event);
  const uint16_t slot = SlotOf(stream);
  if (slot == recorded.stream) return;  // the stream's own order
  Session::Get().send(
      MakeHeader(RecordKind::kWaitEvent, recorded.number, slot, static_cast<uint8_t>(stream.device_index())));
}

bool QueryEvent(void* event) {
  if (event == nullptr) return true;
  const auto& recorded = *static_cast<const Event*>(event);
  Session& session = Session::Get();
  if (session.replies().is_complete(recorded.stream, recorded.sequence)) return true;
  if (!session.alive()) session.throw_lost();
  return false;
}

void SynchronizeEvent(void* event) {
  if (event == nullptr) return;
  const auto& recorded = *static_cast<const Event*>(event);
  Session::Get().wait_complete(recorded.stream, recorded.device, recorded.sequence);
}

double ElapsedTime(void* first, void* second) {
  TORCH_CHECK(first != nullptr && second != nullptr, "Both events must be recorded before calculating elapsed time.");
  const auto& from = *static_cast<const Event*>(first);
  const auto& to = *static_cast<const Event*>(second);
  TORCH_CHECK_VALUE(from.timing && to.timing,
                    "Both events must be created with argument 'enable_timing=True' to measure elapsed time.");
  const std::array<uint32_t, 2> payload = {to.number, 0};
  const auto body = Session::Get().request(MakeHeader(RecordKind::kElapsedTime, from.number, from.stream, from.device),
                                           std::as_bytes(std::span(payload)));
  double milliseconds = 0;
  TORCH_CHECK(body.size() >= sizeof milliseconds, "the executor answered an elapsed time of ", body.size(), " bytes");
  std::memcpy(&milliseconds, body.data(), sizeof milliseconds);
  return milliseconds;
}

void DestroyEvent(void* event) noexcept {
  const std::unique_ptr<Event> destroyed(static_cast<Event*>(event));
  Session* const session = Session::Current();
  if (destroyed == nullptr || session == nullptr) return;
  // The number is free once the record is written, so that its next use comes behind it.
  if (!session->try_send(
          MakeHeader(RecordKind::kDestroyEvent, destroyed->number, destroyed->stream, destroyed->device)))
    return;
  const std::lock_guard lock(session->lock());
  session->event_numbers().give_back(destroyed->number);
}

}  // namespace flagos::client
