// SPDX-License-Identifier: Apache-2.0
// Attaching: fixed binary records between a client and flagosd on its unix socket. One request, one reply, then
// the connection stays open, silent, as the session's sign of life.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "proto/wire/bytes.h"
#include "proto/wire/error.h"
#include "proto/wire/types.h"

namespace flagos {

inline constexpr std::array<char, 8> kAttachMagic = {'F', 'L', 'A', 'G', 'O', 'S', 'A', '1'};

// Features are bits here and names in the control plane. A peer uses those that both sides have.
inline constexpr uint64_t kFeatureBase = 1;     // "base": everything of version 1
inline constexpr uint64_t kFeatureKernels = 2;  // "kernels": records 5-7, and the library of an operator's definition
inline constexpr uint64_t kFeatures = kFeatureBase | kFeatureKernels;
struct FeatureName {
  uint64_t bit;
  const char* name;
};
inline constexpr std::array<FeatureName, 2> kFeatureNames = {{{kFeatureBase, "base"}, {kFeatureKernels, "kernels"}}};

enum class AttachKind : uint16_t {
  kDevices = 1,  // tell the devices; no session, no descriptors
  kOpen = 2,     // open a session
};

struct AttachRequest {
  std::array<char, 8> magic;
  uint32_t size;  // sizeof(AttachRequest)
  uint16_t version_min;
  uint16_t version_max;
  uint64_t features;
  uint16_t kind;  // AttachKind
  uint16_t reserved;
  uint32_t pid;                   // as the client sees itself; for display only
  uint64_t device_mask;           // wanted devices by index; 0: all of the lease
  std::array<uint8_t, 32> token;  // of a lease opened before; zeros: a lease of its own
  char name[64];                  // program name, for display; zero-terminated
  char torch_version[32];         // zero-terminated
  uint8_t padding[88];            // zero; grows here
};
static_assert(sizeof(AttachRequest) == 256);

struct DeviceRecord {
  char name[64];
  uint64_t total_memory;  // bytes
  uint32_t multi_processor_count;
  uint16_t major, minor;  // compute capability; 0 where there is none
  uint8_t uuid[16];
  uint64_t dtypes;  // bit i: DType i is supported
  uint8_t padding[24];
};
static_assert(sizeof(DeviceRecord) == 128);

struct AttachReply {
  std::array<char, 8> magic;
  uint32_t size;          // sizeof(AttachReply)
  uint16_t version;       // the newest in common; 0 on error
  uint16_t status;        // ErrorCode
  uint64_t features;      // in common
  uint64_t session;       // number of the session; 0 for kDevices
  uint32_t generation;    // of the session's storages; 1 for a new one
  uint32_t device_count;  // DeviceRecords that follow this record
  uint64_t ring_bytes;    // of the ring itself, without its page
  uint64_t arena_bytes;
  uint32_t descriptors;  // that come with this record: kOpen 4, else 0. See below
  uint32_t executor_pid;
  char vendor[32];
  char executor_torch[32];  // version of the executor's libtorch; empty if it has none
  char session_name[32];    // as flagosctl shows it
  char message[512];        // the error: what, why, what to do; zero-terminated
  uint8_t padding[352];
};
static_assert(sizeof(AttachReply) == 1024);

// Order of the descriptors of an opened session.
enum AttachDescriptor { kRingFd = 0, kExecutorFd = 1, kArenaFd = 2, kLivenessFd = 3, kAttachFdCount = 4 };
// kRingFd: read-write. kExecutorFd: read-only. kArenaFd: read-write. kLivenessFd: a stream socket whose other end only
// the executor holds; it hangs up when the executor is gone.

// Checks magic, size, kind, that texts are terminated, and finds the newest common version and features. `error` tells
// kVersion (naming both ranges) or kMalformed.
struct AttachTerms {
  uint16_t version = 0;
  uint64_t features = 0;
};
Result<AttachTerms> CheckAttachRequest(const AttachRequest& request);
// Checks what a server answered, and turns its error into ours. An opened session's ring is a power of two within the
// bounds of layout.h, and it comes with kAttachFdCount descriptors.
Error CheckAttachReply(const AttachReply& reply);

AttachRequest MakeAttachRequest(AttachKind kind);
AttachReply MakeAttachReply(const Error& error);

// Copies as much as fits, zero-terminated.
template <size_t N>
void CopyText(char (&to)[N], std::string_view from) {
  from = CutText(from, N - 1);
  for (size_t i = 0; i < N; ++i) to[i] = i < from.size() ? from[i] : '\0';
}
// Whether a peer ended its text within the field.
template <size_t N>
bool Terminated(const char (&text)[N]) {
  return std::find(text, text + N, '\0') != text + N;
}
template <size_t N>
std::string ReadText(const char (&from)[N]) {
  size_t size = 0;
  while (size < N && from[size] != '\0') ++size;
  return std::string(from, size);
}

}  // namespace flagos
