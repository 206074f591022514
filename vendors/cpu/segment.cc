// SPDX-License-Identifier: Apache-2.0
#include "vendors/cpu/segment.h"

#include <sys/mman.h>

#include "proto/shm/layout.h"

namespace flagos::cpu {

uint64_t Segment::SizeFor(uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

std::unique_ptr<Segment> Segment::Create(uint64_t bytes) {
  const uint64_t size = SizeFor(bytes);
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
