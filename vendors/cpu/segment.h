// SPDX-License-Identifier: Apache-2.0
// Memory of the device as the kernel gives it: a memfd, mapped, so that it could be handed to another process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "proto/shm/memfd.h"

namespace flagos::cpu {

class Segment {
 public:
  // `bytes` rounded up to whole pages: what a segment takes.
  static uint64_t SizeFor(uint64_t bytes);
  // Null where the kernel refuses. As large as SizeFor() says. Pages take memory when first touched. Where
  // descriptors have run out the memory is anonymous, and fd() is -1.
  static std::unique_ptr<Segment> Create(uint64_t bytes);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }
  int fd() const { return fd_.get(); }

 private:
  Segment(std::byte* data, uint64_t size, UniqueFd fd) : data_(data), size_(size), fd_(std::move(fd)) {}

  std::byte* const data_;
  const uint64_t size_;
  const UniqueFd fd_;
};

}  // namespace flagos::cpu
