// SPDX-License-Identifier: Apache-2.0
// Addresses that stand for device memory: a range of the process's address space in which nothing is mapped.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "client/number_pool.h"
#include "proto/wire/error.h"

namespace flagos::client {

// Gives every live storage an address range of its own, at least one byte longer than the storage, so that pointer
// arithmetic, also to one past the end, stays inside it. Reading or writing through such an address is a fault, which
// tells a stray host access at once. Ranges are powers of two; each size has a region and gives out its lowest free
// slot. Not thread safe: the session's lock guards it.
class AddressSpace {
 public:
  // Reserves 64 TiB, or the largest half of a half of it that the process may have.
  static Result<std::unique_ptr<AddressSpace>> Reserve();
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  // 0 when no range is long enough or all that are long enough are taken.
  uint64_t take(uint64_t bytes, uint8_t device);
  // REQUIRES an address from take(), or 0.
  void give_back(uint64_t address);

  // Lock-free: whether an address lies in the reservation.
  bool contains(uint64_t address) const { return address - base_ < size_; }
  // The device of the storage whose range holds the address.
  std::optional<uint8_t> device_of(uint64_t address) const;
  // The most bytes that a storage may have.
  uint64_t max_bytes() const { return (uint64_t{1} << (kMinShift + classes_.size() - 1)) - 1; }

 private:
  static constexpr uint32_t kMinShift = 9;  // PyTorch's allocators align to 512 bytes
  static constexpr uint32_t kRegions = 32;
  static constexpr uint8_t kFree = 0xff;

  struct SizeClass {
    explicit SizeClass(uint32_t slots) : free(0, slots) {}
    NumberPool free;
    std::vector<uint8_t> device;  // of each slot ever used, or kFree
  };

  AddressSpace(void* reservation, uint64_t size);

  void* const reservation_;
  const uint64_t base_;
  const uint64_t size_;
  const uint32_t region_shift_;
  std::vector<SizeClass> classes_;
};

}  // namespace flagos::client
