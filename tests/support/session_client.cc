// SPDX-License-Identifier: Apache-2.0
#include "tests/support/session_client.h"

#include <cstring>
#include <thread>

namespace flagos::testing {

Argument TensorArgument(std::vector<int64_t> sizes, DType dtype, uint8_t device) {
  Argument argument;
  argument.tag = ArgTag::kTensor;
  argument.tensor.dtype = dtype;
  argument.tensor.device = device;
  argument.tensor.strides.resize(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0; stride *= sizes[i]) argument.tensor.strides[i] = stride;
  argument.tensor.sizes = std::move(sizes);
  return argument;
}

SessionClient::SessionClient(const SessionMemory& memory, std::chrono::seconds patience)
    : ring_(Must(Mapping::Map(memory.ring_fd.get(), Access::kReadWrite, RingRegionBytes(memory.ring_bytes)))),
      executor_(Must(Mapping::Map(memory.executor_read_only.get(), Access::kReadOnly, kExecutorRegionBytes))),
      arena_(Must(Mapping::Map(memory.arena_fd.get(), Access::kReadWrite, memory.arena_bytes))),
      deadline_(std::chrono::steady_clock::now() + patience),
      producer_(&client_page(), {ring_.data() + kPage, memory.ring_bytes}, &page(), [this] { return alive(); }),
      replies_(&client_page(), {executor_.data(), executor_.size()}, [this] { return alive(); }) {}

bool SessionClient::alive() const {
  return page().state.load() < static_cast<uint64_t>(ExecutorState::kEnded) &&
         std::chrono::steady_clock::now() < deadline_;
}

bool SessionClient::wait_ended() const {
  while (alive()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return page().state.load() >= static_cast<uint64_t>(ExecutorState::kEnded);
}

uint64_t SessionClient::send_raw(const RecordHeader& header, const Bytes& payload) {
  ErrorCode error = ErrorCode::kOk;
  std::byte* const at = producer_.reserve(payload.size(), error);
  if (at == nullptr) return 0;
  if (!payload.empty()) std::memcpy(at, payload.data(), payload.size());
  return producer_.commit(header, payload.size());
}

uint64_t SessionClient::send(const Target& target, const Bytes& payload) {
  RecordHeader header{};
  header.kind = static_cast<uint16_t>(target.kind);
  header.subject = target.subject;
  header.stream = target.stream;
  header.device = target.device;
  header.flags = target.flags;
  return send_raw(header, payload);
}

SessionClient::Pending SessionClient::ask(const Target& target, const Bytes& payload) {
  const auto slot = replies_.claim();
  if (!slot) throw std::runtime_error("no reply slot became free");
  Bytes whole = Pack(ReplyTarget{*slot, 0});
  whole.insert(whole.end(), payload.begin(), payload.end());
  Target with = target;
  with.flags |= kFlagSync;
  return {*slot, send(with, whole)};
}

std::optional<Reply> SessionClient::answer(const Pending& pending) {
  Bytes bytes;
  const bool came = replies_.wait(pending.slot, pending.sequence, bytes);
  replies_.release(pending.slot);
  if (!came) return std::nullopt;
  return Must(DecodeReply(bytes));
}

void SessionClient::define_operator(uint32_t op, const std::string& name, const std::string& overload,
                                    std::vector<ReturnKind> returns, uint16_t arguments) {
  ByteWriter out;
  EncodeOperatorDefinition(out, {name, overload, arguments, std::move(returns)});
  send({.kind = RecordKind::kDefineOperator, .subject = op}, {out.bytes().begin(), out.bytes().end()});
}

void SessionClient::define_signature(uint32_t signature, const Signature& definition) {
  ByteWriter out;
  EncodeSignature(out, definition);
  send({.kind = RecordKind::kDefineSignature, .subject = signature}, {out.bytes().begin(), out.bytes().end()});
}

Bytes SessionClient::CallPayload(std::span<const uint32_t> inputs, std::span<const uint32_t> outputs,
                                 const Bytes& free_bytes) {
  ByteWriter out;
  out.put(CallHeader{static_cast<uint16_t>(inputs.size()), static_cast<uint16_t>(outputs.size()),
                     static_cast<uint32_t>(free_bytes.size())});
  out.append(inputs.data(), inputs.size_bytes());
  out.append(outputs.data(), outputs.size_bytes());
  out.align(8);
  out.append(free_bytes.data(), free_bytes.size());
  return {out.bytes().begin(), out.bytes().end()};
}

}  // namespace flagos::testing
