// SPDX-License-Identifier: Apache-2.0
#include "server/executor/runner.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "proto/socket/descriptors.h"
#include "proto/wire/definitions.h"
#include "proto/wire/kernels.h"
#include "server/executor/responder.h"

namespace flagos::executor {
namespace {

template <class T>
T ReadAt(std::span<const std::byte> bytes, size_t offset = 0) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <class T>
std::span<const std::byte> BytesOf(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

const char* CommandRunner::run(const Command& command) {
  if (command.kind == RecordKind::kCall) [[likely]]
    return call(command);
  host_.breadcrumb().enter_other(command.sequence);
  switch (command.kind) {
    case RecordKind::kListOperators: {
      ByteWriter names;
      EncodeOperatorList(names, backend_.operators());
      settle(command, Error::Ok(), names.bytes());
      break;
    }
    case RecordKind::kQueryOperator: query(command); break;
    case RecordKind::kListKernels:
    case RecordKind::kQueryKernel:
    case RecordKind::kKernelFigures: look_at_kernels(command); break;
    case RecordKind::kDefineOperator: return define_operator(command);
    case RecordKind::kDefineContext: return define_context(command);
    case RecordKind::kDefineSignature: return define_signature(command);
    case RecordKind::kDropSignature:
      if (checker_.signatures().find(command.subject) != nullptr) {
        checker_.signatures().drop(command.subject);
        backend_.drop_signature(command.subject);
      }
      settle(command, Error::Ok());
      break;
    case RecordKind::kAllocate:
      settle(command,
             backend_.allocate(command.subject, ReadAt<uint64_t>(command.body), command.device, command.stream));
      break;
    case RecordKind::kFree:
      backend_.free(command.subject, command.stream);
      settle(command, Error::Ok());
      break;
    case RecordKind::kMemoryStats: memory_stats(command); break;
    case RecordKind::kEmptyCache:
      backend_.empty_cache(command.device);
      settle(command, Error::Ok());
      break;
    case RecordKind::kCreateStream:
      // Defined even where the vendor cannot make it: what is sent to it meanwhile fails there, and the client is told
      // why.
      checker_.define_stream(command.stream, command.device);
      settle(command, backend_.create_stream(command.stream, command.device, ReadAt<int32_t>(command.body)));
      break;
    case RecordKind::kFence: fence(command); break;
    case RecordKind::kRecordEvent: record_event(command); break;
    case RecordKind::kWaitEvent: settle(command, backend_.wait_event(command.subject, command.stream)); break;
    case RecordKind::kDestroyEvent:
      backend_.destroy_event(command.subject);
      settle(command, Error::Ok());
      break;
    case RecordKind::kElapsedTime: {
      const auto second = ReadAt<uint32_t>(command.body);
      if (second >= kMaxEvents) return "its second event is out of bounds";
      backend_.elapsed_time(command.subject, second, responder(command));
      if (command.notify) notify_later(command);
      break;
    }
    case RecordKind::kCreateGenerator:
      settle(command, backend_.create_generator(command.subject, command.device));
      break;
    case RecordKind::kDestroyGenerator:
      backend_.destroy_generator(command.subject);
      settle(command, Error::Ok());
      break;
    case RecordKind::kSeedGenerator:
      settle(command, backend_.seed_generator(command.subject, ReadAt<uint64_t>(command.body)));
      break;
    case RecordKind::kGetGeneratorState: generator_state(command); break;
    case RecordKind::kExportMemory: export_memory(command); break;
    case RecordKind::kImportMemory: import_memory(command); break;
    case RecordKind::kSetGeneratorState:
      settle(command, backend_.set_generator_state(command.subject, command.body));
      break;
    default: return "its kind is unknown";
  }
  return nullptr;
}

const char* CommandRunner::call(const Command& command) {
  vendor::Call call;
  const CallShape* shape = nullptr;
  if (const char* wrong = checker_.check_call(command, call, shape)) return wrong;
  ExecutorPage* const page = host_.page();
  host_.breadcrumb().enter_call(command.sequence, shape->operator_place);
  page->calls.store(++calls_, std::memory_order_relaxed);
  if (command.sync) page->synchronous_calls.store(++synchronous_calls_, std::memory_order_relaxed);
  if (share_ != nullptr) share_->enter(command.device);
  backend_.call(call, command.sync ? responder(command) : nullptr);
  if (command.notify) notify_later(command);
  return nullptr;
}

const char* CommandRunner::define_operator(const Command& command) {
  const auto definition = DecodeOperatorDefinition(command.body);
  if (!definition.ok()) return "its definition of an operator does not decode";
  const OperatorDefinition& value = definition.value();
  operator_places_[command.subject] = host_.breadcrumb().add_name(FullOperatorName(value.name, value.overload));
  settle(command, backend_.define_operator(command.subject, value));
  return nullptr;
}

const char* CommandRunner::define_context(const Command& command) {
  ContextState state{};
  std::memcpy(&state, command.body.data(), std::min(command.body.size(), sizeof state));
  settle(command, backend_.define_context(command.subject, state));
  return nullptr;
}

const char* CommandRunner::define_signature(const Command& command) {
  auto definition = DecodeSignature(command.body);
  if (!definition.ok()) return "its signature does not decode";
  const Signature& signature = definition.value();
  if (const char* wrong = CheckSignature(signature, checker_.device_count())) return wrong;
  if (checker_.signatures().find(command.subject) != nullptr) backend_.drop_signature(command.subject);
  // Defined even where the vendor refuses it: calls that follow fail there, and the client is told why.
  checker_.signatures().define(command.subject, signature, operator_places_[signature.op]);
  settle(command, backend_.define_signature(command.subject, std::move(definition).value()));
  return nullptr;
}

void CommandRunner::query(const Command& command) {
  ByteReader in(command.body);
  const std::string name = in.get_string();
  const uint8_t known = in.ok() && backend_.has_operator(name) ? 1 : 0;
  settle(command, Error::Ok(), BytesOf(known));
}

void CommandRunner::look_at_kernels(const Command& command) {
  ByteWriter body;
  switch (command.kind) {
    case RecordKind::kListKernels: EncodeKernelLibraries(body, backend_.kernel_libraries()); break;
    case RecordKind::kQueryKernel:
      body.put_string(checker_.signatures().find(command.subject) != nullptr ? backend_.kernel_of(command.subject)
                                                                             : "");
      break;
    default: EncodeKernelFigures(body, backend_.kernel_figures()); break;
  }
  settle(command, Error::Ok(), body.bytes());
}

void CommandRunner::memory_stats(const Command& command) {
  auto stats = backend_.memory_stats(command.device);
  if (command.subject == 1) backend_.reset_peak_memory(command.device);
  if (stats.ok()) {
    host_.add_lease(command.device, stats.value());
    host_.show_limits();
    settle(command, Error::Ok(), BytesOf(stats.value()));
  } else {
    settle(command, stats.error());
  }
}

void CommandRunner::generator_state(const Command& command) {
  const auto state = backend_.generator_state(command.subject);
  if (state.ok()) {
    settle(command, Error::Ok(), state.value());
  } else {
    settle(command, state.error());
  }
}

void CommandRunner::export_memory(const Command& command) {
  auto shared = backend_.export_memory(command.subject, command.device);
  if (!shared.ok()) return settle(command, shared.error());
  const Error sent = SendDescriptor(host_.descriptors(), command.sequence, shared.value().descriptor.get());
  settle(command, sent, BytesOf(shared.value().storage));
}

void CommandRunner::import_memory(const Command& command) {
  const auto request = ReadAt<ImportRequest>(command.body);
  auto descriptor = TakeDescriptor(host_.descriptors(), request.ticket);
  if (!descriptor.ok()) return settle(command, descriptor.error());
  settle(command,
         backend_.import_memory(command.subject, {std::move(descriptor).value(), request.storage}, command.device));
}

// A fence is where the client synchronises: failures of what it waited for, though they came after the fence was
// queued, are told by its answer.
void CommandRunner::fence(const Command& command) {
  std::shared_ptr<vendor::Responder> answer;
  if (command.sync) answer = responder(command);
  backend_.fence(command.stream, command.device, [this, command, answer = std::move(answer)](const Error& error) {
    if (!command.sync && !error.ok()) host_.fail(command.sequence, error);
    if (command.notify) host_.complete(notify_stream(command), command.sequence);
    if (!command.sync) return;
    Failures& failures = host_.failures();
    const auto deferred = failures.pending() ? failures.take_before(command.sequence) : std::nullopt;
    if (deferred) {
      host_.slots().answer_deferred(command.slot, command.sequence, *deferred);
    } else {
      answer->respond(error, {}, {});
    }
  });
}

void CommandRunner::record_event(const Command& command) {
  const auto flags = ReadAt<uint32_t>(command.body);
  const auto done = [this, notify = command.notify, stream = command.stream,
                     sequence = command.sequence](const Error& error) {
    if (!error.ok()) host_.fail(sequence, error);
    if (notify) host_.complete(stream, sequence);
  };
  const Error error = backend_.record_event(command.subject, command.stream, (flags & 1) != 0, done);
  // An event that could not be queued has no `done` to wait for.
  if (!error.ok() && command.notify) host_.complete(command.stream, command.sequence);
  if (command.sync) {
    host_.slots().answer(command.slot, command.sequence, error, {}, {});
  } else if (!error.ok()) {
    host_.fail(command.sequence, error);
  }
}

void CommandRunner::refuse(const Command& command, const Error& deferred) {
  host_.breadcrumb().enter_other(command.sequence);
  host_.slots().answer_deferred(command.slot, command.sequence, deferred);
  if (command.notify) notify_later(command);
}

CommandRunner::Respond CommandRunner::responder(const Command& command) {
  return std::make_unique<SlotResponder>(host_.slots(), command.slot, command.sequence);
}

void CommandRunner::settle(const Command& command, const Error& error, std::span<const std::byte> body) {
  if (command.sync) {
    host_.slots().answer(command.slot, command.sequence, error, {}, body);
  } else if (!error.ok()) {
    host_.fail(command.sequence, error);
  }
  if (command.notify) notify_later(command);
}

void CommandRunner::notify_later(const Command& command) {
  backend_.fence(command.stream, command.device,
                 [this, stream = notify_stream(command), sequence = command.sequence](const Error& error) {
                   if (!error.ok()) host_.fail(sequence, error);
                   host_.complete(stream, sequence);
                 });
}

}  // namespace flagos::executor
