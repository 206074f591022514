// SPDX-License-Identifier: Apache-2.0
// A client's end of a session, without PyTorch: writes records, reads answers.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proto/shm/replies.h"
#include "proto/shm/ring.h"
#include "proto/wire/definitions.h"
#include "proto/wire/records.h"
#include "proto/wire/reply.h"
#include "proto/wire/signature.h"
#include "tests/support/session_memory.h"

namespace flagos::testing {

using Bytes = std::vector<std::byte>;

template <class... T>
Bytes Pack(const T&... values) {
  ByteWriter out;
  (out.put(values), ...);
  return {out.bytes().begin(), out.bytes().end()};
}

template <class T>
T Unpack(const Bytes& bytes) {
  return ByteReader(bytes).get<T>();
}

// A float tensor on device 0, contiguous.
Argument TensorArgument(std::vector<int64_t> sizes, DType dtype = DType::kFloat32, uint8_t device = 0);

// For one thread. Waits give up, as if the executor were gone, when the state says so or after `patience`.
class SessionClient {
 public:
  explicit SessionClient(const SessionMemory& memory, std::chrono::seconds patience = std::chrono::seconds(20));

  // An answer that is due.
  struct Pending {
    uint32_t slot;
    uint64_t sequence;
  };
  struct Target {
    RecordKind kind;
    uint32_t subject = 0;
    uint16_t stream = 0;
    uint8_t device = 0;
    uint8_t flags = 0;
  };

  // Writes an asynchronous record; returns its sequence.
  uint64_t send(const Target& target, const Bytes& payload = {});
  // Writes a SYNC record.
  Pending ask(const Target& target, const Bytes& payload = {});
  // nullopt: no answer came.
  std::optional<Reply> answer(const Pending& pending);
  std::optional<Reply> request(const Target& target, const Bytes& payload = {}) { return answer(ask(target, payload)); }
  bool wait_complete(uint32_t stream, uint64_t sequence) { return replies_.wait_complete(stream, sequence); }

  void define_operator(uint32_t op, const std::string& name, const std::string& overload,
                       std::vector<ReturnKind> returns, uint16_t arguments = 1);
  void define_signature(uint32_t signature, const Signature& definition);
  static Bytes CallPayload(std::span<const uint32_t> inputs, std::span<const uint32_t> outputs,
                           const Bytes& free_bytes = {});

  // A record as it is, for what no honest client writes. REQUIRES payload to be a multiple of 8.
  uint64_t send_raw(const RecordHeader& header, const Bytes& payload);

  ClientPage& client_page() { return *reinterpret_cast<ClientPage*>(ring_.data()); }
  std::span<std::byte> ring() { return {ring_.data() + kPage, ring_.size() - kPage}; }
  const ExecutorPage& page() const { return *reinterpret_cast<const ExecutorPage*>(executor_.data()); }
  std::span<std::byte> arena() { return {arena_.data(), arena_.size()}; }
  // Waits until the executor has ended; false after `patience`.
  bool wait_ended() const;

 private:
  bool alive() const;

  Mapping ring_, executor_, arena_;
  const std::chrono::steady_clock::time_point deadline_;
  RingProducer producer_;
  ReplyReader replies_;
};

}  // namespace flagos::testing
