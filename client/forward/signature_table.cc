// SPDX-License-Identifier: Apache-2.0
#include "client/forward/signature_table.h"

#include <algorithm>
#include <cstring>

namespace flagos::client {
namespace {

uint64_t Load(const std::byte* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

__extension__ using Wide = unsigned __int128;

uint64_t Mix(uint64_t a, uint64_t b) {
  const Wide product = Wide{a} * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

constexpr uint64_t kFirst = 0x9e3779b97f4a7c15;   // odd, its bits without pattern: 2^64 by the golden ratio
constexpr uint64_t kSecond = 0xc2b2ae3d27d4eb4f;  // and another such number

std::vector<StorageSpec> StoragesOf(const Outcome& outcome) {
  std::vector<StorageSpec> storages;
  const auto add = [&](const Output& output) {
    if (output.tag == OutputTag::kTensor) storages.push_back({output.storage_bytes, output.geometry.device});
  };
  for (const Output& output : outcome.outputs) {
    add(output);
    for (const Output& item : output.list) add(item);
  }
  return storages;
}

}  // namespace

KnownOutcome::KnownOutcome(Outcome of) : outcome(std::move(of)), storages(StoragesOf(outcome)) {}

uint64_t HashSignature(std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  uint64_t hash = left * kFirst;
  for (; left > 16; left -= 16, at += 16) hash = Mix(Load(at) ^ kFirst, Load(at + 8) ^ hash);
  if (bytes.size() >= 16) return Mix(Load(at + left - 16) ^ kSecond, Load(at + left - 8) ^ hash);
  std::byte tail[16] = {};
  std::memcpy(tail, at, left);
  return Mix(Load(tail) ^ kSecond, Load(tail + 8) ^ hash);
}

SignatureTable::SignatureTable(uint32_t capacity) : capacity_(capacity), slots_(size_t{capacity} * 2) {}

uint32_t SignatureTable::find(uint64_t hash, std::span<const std::byte> bytes) {
  const size_t mask = slots_.size() - 1;
  const auto upper = static_cast<uint32_t>(hash >> 32);
  for (size_t at = hash & mask; slots_[at].number != kNone; at = (at + 1) & mask) {
    if (slots_[at].hash != upper) continue;
    Entry& entry = entries_[slots_[at].number];
    if (entry.size != bytes.size() || std::memcmp(entry.bytes.get(), bytes.data(), bytes.size()) != 0) continue;
    entry.last_use = ++uses_;
    return slots_[at].number;
  }
  return kNone;
}

void SignatureTable::place(uint64_t hash, uint32_t number) {
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  while (slots_[at].number != kNone) at = (at + 1) & mask;
  slots_[at] = {static_cast<uint32_t>(hash >> 32), number};
}

uint32_t SignatureTable::insert(uint64_t hash, std::span<const std::byte> bytes) {
  auto number = static_cast<uint32_t>(entries_.size());
  if (free_.empty()) {
    entries_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
  }
  Entry& entry = entries_[number];
  entry.hash = hash;
  entry.last_use = ++uses_;
  entry.bytes.reset(new std::byte[bytes.size()]);
  std::memcpy(entry.bytes.get(), bytes.data(), bytes.size());
  entry.size = bytes.size();
  place(hash, number);
  ++live_;
  return number;
}

std::vector<uint32_t> SignatureTable::evict() {
  std::vector<uint32_t> numbers;
  for (uint32_t number = 0; number < entries_.size(); ++number) {
    if (entries_[number].last_use != 0) numbers.push_back(number);
  }
  const auto older = [&](uint32_t a, uint32_t b) { return entries_[a].last_use < entries_[b].last_use; };
  const size_t count = std::min<size_t>(numbers.size(), capacity_ / 16);
  if (count < numbers.size()) std::nth_element(numbers.begin(), numbers.begin() + count, numbers.end(), older);
  numbers.resize(count);
  std::ranges::sort(numbers, std::greater<>());
  for (const uint32_t number : numbers) {
    entries_[number] = Entry{};
    free_.push_back(number);
  }
  live_ -= static_cast<uint32_t>(count);
  std::ranges::fill(slots_, Slot{});
  for (uint32_t number = 0; number < entries_.size(); ++number) {
    if (entries_[number].last_use != 0) place(entries_[number].hash, number);
  }
  return numbers;
}

}  // namespace flagos::client
