// SPDX-License-Identifier: Apache-2.0
// Where log lines go: a descriptor that may be full, slow or gone.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "proto/shm/memfd.h"

namespace flagos::log {

// Bytes of a line that is written whole: its end, and the end of a torn line before it, still fit into PIPE_BUF.
inline constexpr size_t kMaxLine = PIPE_BUF - 2;

// Writes each line with one write(2) and only where the descriptor takes it at once. Dropped lines are counted; the
// next line that fits is preceded by `tell_dropped(count)`. Lines are cut at PIPE_BUF bytes, which a pipe takes whole;
// those of log.h are no longer than kMaxLine.
class DroppingSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  DroppingSink(UniqueFd fd, std::function<std::string(uint64_t)> tell_dropped);
  // From the next line on. Thread safe.
  void write_to(UniqueFd fd);
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

 private:
  bool write_line(std::string line);

  UniqueFd fd_;  // GUARDED_BY(mutex_)
  const std::function<std::string(uint64_t)> tell_dropped_;
  std::atomic<uint64_t> dropped_{0};
  uint64_t told_ = 0;  // GUARDED_BY(mutex_)
  bool torn_ = false;  // GUARDED_BY(mutex_): the last line was written in part
};

}  // namespace flagos::log
