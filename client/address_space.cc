// SPDX-License-Identifier: Apache-2.0
#include "client/address_space.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string>

namespace flagos::client {
namespace {

constexpr uint64_t kWanted = uint64_t{1} << 46;  // 64 TiB
constexpr uint64_t kLeast = uint64_t{1} << 36;   // 64 GiB

}  // namespace

Result<std::unique_ptr<AddressSpace>> AddressSpace::Reserve() {
  for (uint64_t size = kWanted; size >= kLeast; size /= 2) {
    void* const base = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base != MAP_FAILED) {
      return std::unique_ptr<AddressSpace>(new AddressSpace(base, size));
    }
  }
  return MakeError(ErrorCode::kUnavailable,
                   "cannot reserve the address range that stands for device memory (64 GiB at least): " +
                       std::string(std::strerror(errno)) + "; raise the limit of address space (ulimit -v unlimited)");
}

AddressSpace::AddressSpace(void* reservation, uint64_t size)
    : reservation_(reservation),
      base_(reinterpret_cast<uint64_t>(reservation)),
      size_(size),
      region_shift_(static_cast<uint32_t>(std::countr_zero(size / kRegions))) {
  for (uint32_t shift = kMinShift; shift <= region_shift_ && classes_.size() < kRegions; ++shift) {
    classes_.emplace_back(
        static_cast<uint32_t>(std::min(uint64_t{1} << (region_shift_ - shift), uint64_t{NumberPool::kMaxCount})));
  }
}

AddressSpace::~AddressSpace() { ::munmap(reservation_, size_); }

uint64_t AddressSpace::take(uint64_t bytes, uint8_t device) {
  const auto width = static_cast<uint32_t>(std::bit_width(bytes));  // bytes < 1 << width: one to spare
  for (size_t i = width > kMinShift ? width - kMinShift : 0; i < classes_.size(); ++i) {
    SizeClass& size_class = classes_[i];
    const uint32_t slot = size_class.free.take();
    if (slot == NumberPool::kNone) continue;
    if (slot >= size_class.device.size()) size_class.device.resize(slot + 1);
    size_class.device[slot] = device;
    return base_ + (uint64_t{i} << region_shift_) + (uint64_t{slot} << (kMinShift + i));
  }
  return 0;
}

void AddressSpace::give_back(uint64_t address) {
  if (!contains(address)) return;
  const uint64_t offset = address - base_;
  const size_t i = offset >> region_shift_;
  const auto slot = static_cast<uint32_t>((offset & ((uint64_t{1} << region_shift_) - 1)) >> (kMinShift + i));
  classes_[i].device[slot] = kFree;
  classes_[i].free.give_back(slot);
}

std::optional<uint8_t> AddressSpace::device_of(uint64_t address) const {
  if (!contains(address)) return std::nullopt;
  const uint64_t offset = address - base_;
  const size_t i = offset >> region_shift_;
  if (i >= classes_.size()) return std::nullopt;
  const uint64_t slot = (offset & ((uint64_t{1} << region_shift_) - 1)) >> (kMinShift + i);
  const auto& devices = classes_[i].device;
  if (slot >= devices.size() || devices[slot] == kFree) return std::nullopt;
  return devices[slot];
}

}  // namespace flagos::client
