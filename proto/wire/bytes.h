// SPDX-License-Identifier: Apache-2.0
// Bounds-checked reading and appending of little-endian plain values, the base of every codec here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace flagos {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire is little-endian; byte swapping is not written");

// At most `limit` bytes of a text, never ending within a UTF-8 sequence: Python refuses to decode a broken one.
constexpr std::string_view CutText(std::string_view text, size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xc0) == 0x80) --limit;
  return text.substr(0, limit);
}

// Appends to a reusable buffer; clear() keeps its capacity, so a steady caller allocates nothing.
class ByteWriter {
 public:
  template <class T>
  void put(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    append(&value, sizeof value);
  }
  void append(const void* data, size_t size) {
    if (size == 0) return;
    const size_t at = size_;
    grow(size);
    std::memcpy(buffer_.data() + at, data, size);
  }
  // u32 length, then the bytes.
  void put_string(std::string_view text) {
    put(static_cast<uint32_t>(text.size()));
    append(text.data(), text.size());
  }
  // Zero bytes up to the next multiple of `alignment` (a power of two).
  void align(size_t alignment) {
    const size_t target = (size_ + alignment - 1) & ~(alignment - 1);
    const size_t at = size_;
    grow(target - size_);
    std::memset(buffer_.data() + at, 0, target - at);
  }
  template <class T>
  void overwrite(size_t at, T value) {
    std::memcpy(buffer_.data() + at, &value, sizeof value);
  }
  void clear() { size_ = 0; }
  size_t size() const { return size_; }
  const std::byte* data() const { return buffer_.data(); }
  std::span<const std::byte> bytes() const { return {buffer_.data(), size_}; }

 private:
  void grow(size_t more) {
    size_ += more;
    if (size_ > buffer_.size()) buffer_.resize(size_ * 2 + 64);
  }
  std::vector<std::byte> buffer_;
  size_t size_ = 0;
};

// Reads what a peer wrote. The first read beyond the end makes the reader fail for good: every later read yields
// zeros, so a decoder checks ok() once, before it trusts anything it has read.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  template <class T>
  T get() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (const std::byte* from = take(sizeof(T))) std::memcpy(&value, from, sizeof(T));
    return value;
  }
  std::span<const std::byte> get_bytes(size_t size) {
    const std::byte* from = take(size);
    return from ? std::span<const std::byte>(from, size) : std::span<const std::byte>();
  }
  std::string get_string(size_t limit = size_t{1} << 20) {
    const auto size = get<uint32_t>();
    if (size > limit) {
      fail();
      return {};
    }
    const auto bytes = get_bytes(size);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  void fail() {
    failed_ = true;
    at_ = end_;
  }
  bool ok() const { return !failed_; }
  bool done() const { return !failed_ && at_ == end_; }
  size_t remaining() const { return static_cast<size_t>(end_ - at_); }

 private:
  const std::byte* take(size_t size) {
    if (size > remaining()) {
      fail();
      return nullptr;
    }
    const std::byte* from = at_;
    at_ += size;
    return from;
  }
  const std::byte* at_;
  const std::byte* end_;
  bool failed_ = false;
};

}  // namespace flagos
