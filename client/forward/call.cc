// SPDX-License-Identifier: Apache-2.0
#include "client/forward/call.h"

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "client/device.h"
#include "client/errors.h"
#include "client/forward/call_buffer.h"
#include "client/forward/check_predictions.h"
#include "client/forward/context.h"
#include "client/forward/doubt.h"
#include "client/forward/encode.h"
#include "client/forward/kernels.h"
#include "client/forward/result_handles.h"
#include "client/forward/results.h"
#include "client/forward/signature_table.h"
#include "client/forward/sparse.h"
#include "client/forward/sparse_results.h"
#include "client/forward/types_key.h"
#include "client/log.h"
#include "client/session.h"

namespace flagos::client {
namespace {

// Far below the wire's limit: what a process keeps of each signature is some 500 bytes.
constexpr uint32_t kSignatures = 1u << 14;
static_assert(kSignatures <= kMaxSignatures);
// Handles offered for a list of tensors whose length is not known.
constexpr size_t kListGuess = 64;

// What the session's executor knows by number. GUARDED_BY(Session::lock())
struct Known {
  uint32_t generation = 0;
  std::optional<SignatureTable> signatures;
};
SignatureTable& SignaturesOf(Session& session) {
  static Known& known = *new Known;
  if (known.generation != session.generation()) [[unlikely]] {
    known.signatures.emplace(kSignatures);
    known.generation = session.generation();
  }
  return *known.signatures;
}

void Count(std::atomic<uint64_t>& counter) { counter.fetch_add(1, std::memory_order_relaxed); }

// One call from its arguments to its results.
class Attempt {
 public:
  Attempt(Session& session, Operator& op, torch::jit::Stack& stack, CallOptions options)
      : session_(session), op_(op), stack_(stack), options_(options), handles_(session) {
    const Arguments arguments(torch::jit::last(stack, op.arguments.size()).data(), op.arguments.size());
    EncodeCall(op, CurrentContext(session, op.reads_all_context), arguments, buffer_);
    doubtful_ = IsDoubtful(op, arguments, buffer_);
    signature_ = buffer_.signature.span();
    hash_ = HashSignature(signature_);
    header_.kind = static_cast<uint16_t>(RecordKind::kCall);
    header_.device = static_cast<uint8_t>(buffer_.device);
    header_.stream = CurrentStreamSlot(static_cast<c10::DeviceIndex>(buffer_.device));
    // Arena blocks of host operands are free again once the call is complete.
    if (options.notify || buffer_.host) header_.flags |= kFlagNotify;
  }

  CallPlace run() {
    if (ChecksPredictions()) [[unlikely]]
      return run_checked();
    const bool synchronous = options_.synchronous || doubtful_ || session_.launch_blocking();
    if (!synchronous && call_known()) {
      finish();
    } else if (!synchronous && predict()) {
      call_predicted();
      finish();
    } else {
      call_and_wait();
    }
    return {header_.stream, header_.device, sequence_};
  }

 private:
  // Waits, and compares what there is with what would have been predicted.
  CallPlace run_checked() {
    const bool predicted = predict(/*unproven=*/true);
    const std::shared_ptr<const KnownOutcome> expected = std::exchange(outcome_, nullptr);
    const uint64_t adapted = session_.page().mispredictions.load(std::memory_order_relaxed);
    call_and_wait();
    if (predicted) CheckPrediction(op_, expected->outcome, outcome_->outcome);
    if (session_.page().mispredictions.load(std::memory_order_relaxed) != adapted) ThrowAdapted(op_);
    return {header_.stream, header_.device, sequence_};
  }

  // Calls a signature whose outcome is known; false where it is not.
  bool call_known() {
    const std::lock_guard lock(session_.lock());
    SignatureTable& table = SignaturesOf(session_);
    const uint32_t number = table.find(hash_, signature_);
    if (number == SignatureTable::kNone || !table[number].outcome) return false;
    outcome_ = table[number].outcome;
    make_handles();
    write(number);
    return true;
  }

  // Of types that no call was seen of yet only where `unproven`.
  bool predict(bool unproven = false) {
    // Whether an operator takes an operand as its out= tensor is its kernel's to say, and predictors know dense
    // tensors.
    if (op_.predictor == nullptr || buffer_.same || !buffer_.sparse.empty()) return false;
    const auto arguments = torch::jit::last(stack_, op_.arguments.size());
    types_ = TypesKey(op_, {arguments.data(), arguments.size()});
    if (!unproven && !op_.proven.contains(types_)) return false;
    Outcome outcome;
    try {
      if (!op_.predictor({arguments.data(), arguments.size()}, outcome)) return false;
    } catch (const std::exception&) {
      return false;  // the executor's error is the one to raise
    }
    if (!Fits(op_, buffer_, outcome)) return false;
    set_device(outcome);
    // What no device can have is the executor's to refuse.
    const uint64_t most = session_.addresses().max_bytes();
    if (std::ranges::any_of(outcome.outputs, [&](const Output& output) { return output.storage_bytes > most; }))
      return false;
    outcome_ = std::make_shared<const KnownOutcome>(std::move(outcome));
    return true;
  }
  // Predictors speak of geometry; which device it is on follows from the call.
  void set_device(Outcome& outcome) {
    const auto device = static_cast<uint8_t>(buffer_.device);
    for (Output& output : outcome.outputs) {
      output.geometry.device = device;
      for (Output& item : output.list) item.geometry.device = device;
    }
  }
  void call_predicted() {
    const std::lock_guard lock(session_.lock());
    SignatureTable& table = SignaturesOf(session_);
    uint32_t number = table.find(hash_, signature_);
    if (number != SignatureTable::kNone && table[number].outcome) {
      outcome_ = table[number].outcome;
    } else {
      if (number == SignatureTable::kNone) {
        number = define(table, &outcome_->outcome);
      } else {
        // It was asked for before there was a prediction, and its answer could not be kept.
        redefine(number, outcome_->outcome);
      }
      table[number].outcome = outcome_;
      Count(session_.counters().predictions);
    }
    make_handles();
    write(number);
  }

  void call_and_wait() {
    const auto slot = session_.replies().claim();
    if (!slot) session_.throw_lost();
    struct Release {
      ReplyReader& replies;
      uint32_t slot;
      ~Release() { replies.release(slot); }
    };
    std::vector<std::byte> reply;
    {
      const Release release{session_.replies(), *slot};
      send_synchronous(*slot);
      if (!session_.replies().wait(*slot, sequence_, reply)) session_.throw_lost();
    }
    handles_.unbind();  // a call that failed has bound none
    const std::vector<std::byte> body = session_.open_reply(reply);
    handles_.bind(header_.stream, header_.device);
    ByteReader in(body);
    Outcome outcome;
    if (!DecodeOutcome(in, outcome) || !Fits(op_, buffer_, outcome) || OutputHandles(outcome) > handles_.size()) {
      Throw(MakeError(ErrorCode::kMalformed, "flagos: the executor's answer to '" + op_.name +
                                                 "' does not fit the call; use client and flagosd of one version"));
    }
    handles_.shrink(OutputHandles(outcome));
    if (types_ != 0) op_.proven.add(types_);
    Accepted(op_, buffer_);
    outcome_ = std::make_shared<const KnownOutcome>(std::move(outcome));
    {
      const std::lock_guard lock(session_.lock());
      handles_.place(outcome_->storages, header_.stream, header_.device);
      if (!op_.depends_on_data && buffer_.sparse.empty() && !HasSparse(outcome_->outcome)) remember();
    }
    if (buffer_.sparse.empty()) return finish();
    const WrittenSparse written(buffer_);
    finish();
    written.update(buffer_, outcome_->outcome, handles_);
  }

  // REQUIRES Session::lock()
  void remember() {
    SignatureTable& table = SignaturesOf(session_);
    const uint32_t number = table.find(hash_, signature_);
    if (number != SignatureTable::kNone && !table[number].outcome) table[number].outcome = outcome_;
  }

  void send_synchronous(uint32_t slot) {
    header_.flags |= kFlagSync;
    const std::lock_guard lock(session_.lock());
    SignatureTable& table = SignaturesOf(session_);
    uint32_t number = table.find(hash_, signature_);
    if (number == SignatureTable::kNone) number = define(table, nullptr);
    ++op_.tally.waits[static_cast<size_t>(reason())];
    const auto& known = table[number].outcome;
    handles_.allocate(known ? known->storages.size() : most_handles());
    write(number, slot);
    Count(session_.counters().synchronous_calls);
  }
  Wait reason() const {
    if (options_.synchronous) return Wait::kHost;
    if (session_.launch_blocking()) return Wait::kBlocking;
    if (op_.depends_on_data) return Wait::kData;
    return doubtful_ ? Wait::kDoubt : Wait::kSignature;
  }
  size_t most_handles() const {
    const size_t each = op_.makes_sparse || !buffer_.sparse.empty() ? kMostComponents : 1;
    size_t most = 0;
    for (const SparseOperand& operand : buffer_.sparse.span()) most += operand.written ? kMostComponents : 0;
    for (const ReturnPlan& plan : op_.returns) {
      if (plan.kind == ReturnKind::kTensor) most += each;
      if (plan.kind == ReturnKind::kTensorList) most += std::max(kListGuess, buffer_.inputs.size());
    }
    return most;
  }

  // Everything below REQUIRES Session::lock().

  uint32_t define(SignatureTable& table, const Outcome* expected) {
    if (op_.defined_in != session_.generation()) define_operator();
    if (table.full()) {
      for (const uint32_t dropped : table.evict()) send(RecordKind::kDropSignature, dropped, {});
    }
    const std::span<const std::byte> bytes = definition(expected);
    std::byte* const at = session_.reserve(bytes.size());  // before the table has the signature, for it may throw
    std::memcpy(at, bytes.data(), bytes.size());
    const uint32_t number = table.insert(hash_, signature_);
    session_.commit(MakeHeader(RecordKind::kDefineSignature, number), bytes.size());
    Count(session_.counters().signatures);
    return number;
  }
  // Of a number that was defined without an outcome.
  void redefine(uint32_t number, const Outcome& expected) {
    const std::span<const std::byte> bytes = definition(&expected);
    session_.reserve(bytes.size());  // throws before anything is dropped
    send(RecordKind::kDropSignature, number, {});
    send(RecordKind::kDefineSignature, number, bytes);
    Count(session_.counters().signatures);
  }
  // Valid until the thread's next call of it.
  std::span<const std::byte> definition(const Outcome* expected) {
    static thread_local ByteWriter bytes;
    bytes.clear();
    bytes.append(signature_.data(), signature_.size());
    if (expected != nullptr) {
      bytes.overwrite(10, uint16_t{1});
      EncodeOutcome(bytes, *expected);
    }
    return bytes.bytes();
  }
  void define_operator() {
    ByteWriter bytes;
    EncodeOperatorDefinition(bytes, op_.definition());
    send(RecordKind::kDefineOperator, op_.number, bytes.bytes());
    op_.defined_in = session_.generation();
  }
  void send(RecordKind kind, uint32_t subject, std::span<const std::byte> payload) {
    session_.put(MakeHeader(kind, subject), payload);
  }

  // Of an outcome that is known before the call.
  void make_handles() {
    handles_.allocate(outcome_->storages.size());
    handles_.place(outcome_->storages, header_.stream, header_.device);
  }

  void write(uint32_t number, std::optional<uint32_t> slot = std::nullopt) {
    const size_t inputs = buffer_.inputs.size();
    const size_t outputs = handles_.size();
    if (inputs + outputs > UINT16_MAX) [[unlikely]]
      refuse_size();
    const size_t handle_bytes = AlignUp8((inputs + outputs) * sizeof(uint32_t));
    const size_t target = slot ? sizeof(ReplyTarget) : 0;
    const size_t payload = target + sizeof(CallHeader) + handle_bytes + buffer_.free_bytes.size();
    std::byte* const at = session_.reserve(payload);
    Cursor cursor(at);
    if (slot) cursor.put(ReplyTarget{*slot, 0});
    cursor.put(CallHeader{static_cast<uint16_t>(inputs), static_cast<uint16_t>(outputs),
                          static_cast<uint32_t>(buffer_.free_bytes.size())});
    // The padding first: whole words, of which the handles overwrite all but an odd one's half.
    if ((inputs + outputs) % 2 != 0) {
      std::memset(at + target + sizeof(CallHeader) + handle_bytes - sizeof(uint32_t), 0, sizeof(uint32_t));
    }
    for (size_t i = 0; i < inputs; ++i) cursor.put(buffer_.inputs[i]);
    for (size_t i = 0; i < outputs; ++i) cursor.put(handles_[i]);
    if (buffer_.free_bytes.size() != 0) {
      std::memcpy(at + payload - buffer_.free_bytes.size(), buffer_.free_bytes.data(), buffer_.free_bytes.size());
    }
    header_.subject = number;
    sequence_ = session_.commit(header_, payload);
    handles_.bind(header_.stream, header_.device);
    if (buffer_.host) buffer_.host->hold_until(header_.stream, sequence_);
    Count(session_.counters().calls);
    ++op_.tally.calls;
    if ((buffer_.host_read | buffer_.host_written) != 0) [[unlikely]] {
      op_.tally.bytes_to_device += buffer_.host_read;
      op_.tally.bytes_to_host += buffer_.host_written;
    }
  }
  [[noreturn]] void refuse_size() {
    Throw(MakeError(ErrorCode::kOutOfRange, "flagos: '" + op_.name +
                                                "' takes and returns more than 65535 tensors in one " +
                                                "call; call it for parts of the lists"));
  }

  void finish() {
    if (log::Any()) [[unlikely]]
      log_call();
    PutResults(op_, buffer_, outcome_->outcome, handles_, stack_);
  }

  [[gnu::noinline]] void log_call() const {
    const bool waited = (header_.flags & kFlagSync) != 0;
    if (log::Has(log::Word::kDispatch)) {
      const std::string kernel = HasKernelLibraries(session_) ? KernelOf(session_, hash_, header_.subject) : "";
      log::Line("%" PRIu64 " %s%s%s%s", sequence_, op_.name.c_str(), kernel.empty() ? "" : " -> ", kernel.c_str(),
                waited ? " (waited)" : "");
    }
    if (waited && log::Has(log::Word::kSync)) {
      log::Line("%" PRIu64 " %s waited: %s", sequence_, op_.name.c_str(), kWaitNames[static_cast<size_t>(reason())]);
    }
  }

  Session& session_;
  Operator& op_;
  torch::jit::Stack& stack_;
  const CallOptions options_;
  CallBufferLease lease_;
  CallBuffer& buffer_ = *lease_;
  ResultHandles handles_;
  std::span<const std::byte> signature_;
  uint64_t hash_ = 0;
  uint64_t types_ = 0;     // their key; 0 where no prediction was tried
  bool doubtful_ = false;  // only an answer says whether PyTorch refuses the call
  RecordHeader header_{};
  uint64_t sequence_ = 0;
  std::shared_ptr<const KnownOutcome> outcome_;
};

}  // namespace

CallPlace Call(Operator& op, torch::jit::Stack& stack, CallOptions options) {
  return Attempt(Session::Get(), op, stack, options).run();
}

}  // namespace flagos::client
