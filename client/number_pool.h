// SPDX-License-Identifier: Apache-2.0
// Numbers handed out lowest free first.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace flagos::client {

// Lowest free number first, so that a program that repeats itself is given the same numbers again. Returned numbers are
// bits of a tree whose words cover 64 children each: taking and giving back touch four words. The lowest one, where it
// is known, stands outside the tree, so that a program that makes and drops one tensor after the other touches none.
// Not thread safe.
class NumberPool {
 public:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  static constexpr uint32_t kMaxCount = 1u << 24;

  // Numbers first, first + 1, ..., `count` of them. REQUIRES count <= kMaxCount.
  NumberPool(uint32_t first, uint32_t count) : first_(first), count_(count) {}

  // kNone when all are in use.
  uint32_t take() {
    if (lowest_ != kNone) return first_ + std::exchange(lowest_, kNone);
    if (in_tree_ == 0) return fresh_ < count_ ? first_ + fresh_++ : kNone;
    return first_ + take_from_tree();
  }

  // REQUIRES a number in use.
  void give_back(uint32_t number) {
    const uint32_t index = number - first_;
    if (index < lowest_ && (in_tree_ == 0 || index < tree_begin_)) {
      const uint32_t next = std::exchange(lowest_, index);
      if (next != kNone) add_to_tree(next);
    } else {
      add_to_tree(index);
    }
  }

  uint32_t in_use() const { return fresh_ - in_tree_ - (lowest_ != kNone); }

 private:
  static constexpr size_t kLevels = 4;  // 64^4 numbers

  [[gnu::noinline]] uint32_t take_from_tree() {
    uint32_t index = 0;
    for (size_t level = kLevels; level-- > 0;) {
      index = index * 64 + static_cast<uint32_t>(std::countr_zero(levels_[level][index]));
    }
    for (size_t level = 0, child = index; level < kLevels; ++level, child /= 64) {
      if ((levels_[level][child / 64] &= ~(uint64_t{1} << (child % 64))) != 0) break;
    }
    --in_tree_;
    tree_begin_ = index + 1;
    return index;
  }
  [[gnu::noinline]] void add_to_tree(uint32_t index) {
    for (size_t level = 0, child = index; level < kLevels; ++level, child /= 64) {
      std::vector<uint64_t>& words = levels_[level];
      if (child / 64 >= words.size()) words.resize(child / 64 + 1);
      const bool told = words[child / 64] != 0;
      words[child / 64] |= uint64_t{1} << (child % 64);
      if (told) break;
    }
    tree_begin_ = in_tree_++ == 0 ? index : std::min(tree_begin_, index);
  }

  const uint32_t first_;
  const uint32_t count_;
  // All without first_:
  uint32_t fresh_ = 0;       // numbers ever handed out
  uint32_t lowest_ = kNone;  // a free number below all in the tree, or kNone: not known
  uint32_t in_tree_ = 0;     // how many of them the tree holds
  uint32_t tree_begin_ = 0;  // no number in the tree is below
  // levels_[0]: a bit for each free number; above: a bit for each word below that is not zero.
  std::array<std::vector<uint64_t>, kLevels> levels_;
};

}  // namespace flagos::client
