// SPDX-License-Identifier: Apache-2.0
// Events, as c10 holds them: a pointer that is null until the first record.
#pragma once

#include <c10/core/Stream.h>

namespace flagos::client {

// Marks the point that the stream has reached. Makes the event at its first record; a later record replaces the point.
void RecordEvent(void** event, const c10::Stream& stream, bool timing);
// Later work of the stream starts after the recorded point. Nothing for a null event.
void BlockOnEvent(void* event, const c10::Stream& stream);
// True for a null event.
bool QueryEvent(void* event);
void SynchronizeEvent(void* event);
// Milliseconds; waits until both have happened. Throws where one was not recorded with timing.
double ElapsedTime(void* first, void* second);
void DestroyEvent(void* event) noexcept;

}  // namespace flagos::client
