// SPDX-License-Identifier: Apache-2.0
// Growing memory that a thread reuses from call to call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>

namespace flagos::client {

// A vector of plain values that is cleared without freeing and appends without value-initialising.
template <class T>
class Scratch {
 public:
  static_assert(std::is_trivially_copyable_v<T>);

  void clear() { size_ = 0; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* data() const { return values_.get(); }
  T& operator[](size_t index) { return values_[index]; }
  const T& operator[](size_t index) const { return values_[index]; }
  std::span<const T> span() const { return {values_.get(), size_}; }

  void push(T value) {
    if (size_ == capacity_) grow(1);
    values_[size_++] = value;
  }
  // Room for `count` more, written by the caller.
  T* extend(size_t count) {
    if (capacity_ - size_ < count) grow(count);
    T* const at = values_.get() + size_;
    size_ += count;
    return at;
  }

 private:
  [[gnu::noinline]] void grow(size_t count) {
    const size_t capacity = (size_ + count) * 2 + 64;
    std::unique_ptr<T[]> values(new T[capacity]);
    if (size_ != 0) std::memcpy(values.get(), values_.get(), size_ * sizeof(T));
    values_ = std::move(values);
    capacity_ = capacity;
  }

  std::unique_ptr<T[]> values_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

// Writes unaligned plain values one after the other; REQUIRES that the room was asked for before.
class Cursor {
 public:
  explicit Cursor(std::byte* at) : at_(at) {}
  template <class T>
  void put(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::memcpy(at_, &value, sizeof value);
    at_ += sizeof value;
  }
  void put(const void* data, size_t size) {
    std::memcpy(at_, data, size);
    at_ += size;
  }

 private:
  std::byte* at_;
};

}  // namespace flagos::client
