// SPDX-License-Identifier: Apache-2.0
// One request to flagosd and its answer, whole.
#pragma once

#include <vector>

#include "proto/shm/memfd.h"
#include "proto/wire/attach.h"
#include "proto/wire/error.h"

namespace flagos::client {

// Milliseconds for flagosd's answer: an executor may have to load a vendor's libraries from a cold disk first, to open
// a session as well as to know the devices.
inline constexpr int kAttachTimeout = 120'000;

struct AttachAnswer {
  AttachReply reply{};
  std::vector<DeviceRecord> devices;
  std::vector<UniqueFd> fds;
};

// Sends `request` and receives what flagosd answers, also its error, within `timeout_ms` for each part.
Error Exchange(int socket, const AttachRequest& request, int timeout_ms, AttachAnswer& answer);

}  // namespace flagos::client
