// SPDX-License-Identifier: Apache-2.0
// A session's shared memory, made as flagosd makes it.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "proto/shm/layout.h"
#include "proto/shm/memfd.h"

namespace flagos::testing {

// The value, or an exception with the error's text: a harness that cannot set itself up has nothing to test.
template <class T>
T Must(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}
inline void Must(const Error& error) {
  if (!error.ok()) throw std::runtime_error(error.message);
}

struct SessionMemory {
  explicit SessionMemory(uint64_t ring = kMinRingBytes, uint64_t arena = 1u << 20)
      : ring_bytes(ring),
        arena_bytes(arena),
        ring_fd(Must(CreateRegion("flagos-test-ring", RingRegionBytes(ring)))),
        ring_read_only(Must(ReopenReadOnly(ring_fd.get()))),
        executor_fd(Must(CreateRegion("flagos-test-executor", kExecutorRegionBytes))),
        executor_read_only(Must(ReopenReadOnly(executor_fd.get()))),
        arena_fd(Must(CreateRegion("flagos-test-arena", arena))) {}
  // What a client got from flagosd: two of the descriptors stay with flagosd.
  SessionMemory(uint64_t ring, uint64_t arena, UniqueFd ring_of_client, UniqueFd executor_of_client,
                UniqueFd arena_of_client)
      : ring_bytes(ring),
        arena_bytes(arena),
        ring_fd(std::move(ring_of_client)),
        executor_read_only(std::move(executor_of_client)),
        arena_fd(std::move(arena_of_client)) {}

  const uint64_t ring_bytes, arena_bytes;
  const UniqueFd ring_fd, ring_read_only, executor_fd, executor_read_only, arena_fd;
};

}  // namespace flagos::testing
