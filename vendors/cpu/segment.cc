// SPDX-License-Identifier: Apache-2.0
#include "vendors/cpu/segment.h"

#include <sys/mman.h>

namespace flagos::cpu {

std::unique_ptr<Segment> Segment::Create(uint64_t bytes) {
  constexpr uint64_t kPageBytes = 4096;
  const uint64_t size = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  auto region = CreateRegion("flagos-cpu", size);
  UniqueFd fd = region.ok() ? std::move(region).value() : UniqueFd();
  const int flags = fd ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, fd.get(), 0);
  if (data == MAP_FAILED) return nullptr;
  madvise(data, size, MADV_HUGEPAGE);  // fewer faults where the system allows it for shared memory
  madvise(data, size, MADV_DONTFORK);
  return std::unique_ptr<Segment>(new Segment(static_cast<std::byte*>(data), size, std::move(fd)));
}

Segment::~Segment() { munmap(data_, size_); }

}  // namespace flagos::cpu
