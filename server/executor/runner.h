// SPDX-License-Identifier: Apache-2.0
// Carries out well-formed records on the vendor's Backend.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "server/executor/command.h"
#include "server/executor/host.h"
#include "server/executor/share.h"
#include "vendors/interface/vendor.h"

namespace flagos::executor {

// For the dispatch thread alone. Everything is borrowed.
class CommandRunner {
 public:
  CommandRunner(SessionHost& host, vendor::Backend& backend, CommandChecker& checker, Share* share)
      : host_(host), backend_(backend), checker_(checker), share_(share), operator_places_(kMaxOperators) {}

  // Carries out `command`, whose slot is open if it is SYNC; answers it, or leaves that to the backend. Returns what is
  // wrong with what only carrying it out can see, or nullptr.
  const char* run(const Command& command);

  // Instead of run(): answers a SYNC command with an earlier failure. Its NOTIFY still comes, or its waiter would hang.
  void refuse(const Command& command, const Error& deferred);

 private:
  using Respond = std::unique_ptr<vendor::Responder>;

  const char* call(const Command& command);
  const char* define_operator(const Command& command);
  const char* define_context(const Command& command);
  const char* define_signature(const Command& command);
  void query(const Command& command);
  void look_at_kernels(const Command& command);
  void memory_stats(const Command& command);
  void fence(const Command& command);
  void record_event(const Command& command);
  void generator_state(const Command& command);
  void export_memory(const Command& command);
  void import_memory(const Command& command);

  Respond responder(const Command& command);
  // Answers a SYNC command, keeps an asynchronous one's error, and sees to NOTIFY.
  void settle(const Command& command, const Error& error, std::span<const std::byte> body = {});
  void notify_later(const Command& command);
  uint16_t notify_stream(const Command& command) const {
    return command.stream == kAllStreams ? command.device : command.stream;
  }

  SessionHost& host_;
  vendor::Backend& backend_;
  CommandChecker& checker_;
  Share* const share_;                     // may be null
  std::vector<uint32_t> operator_places_;  // by operator
  uint64_t calls_ = 0;
  uint64_t synchronous_calls_ = 0;
};

}  // namespace flagos::executor
