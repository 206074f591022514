// SPDX-License-Identifier: Apache-2.0
#include "server/common/log_sink.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <utility>

namespace flagos::log {

DroppingSink::DroppingSink(UniqueFd fd, std::function<std::string(uint64_t)> tell_dropped)
    : fd_(std::move(fd)), tell_dropped_(std::move(tell_dropped)) {}

void DroppingSink::write_to(UniqueFd fd) {
  const std::lock_guard lock(mutex_);
  fd_ = std::move(fd);
  torn_ = false;
}

void DroppingSink::sink_it_(const spdlog::details::log_msg& message) {
  const uint64_t dropped = dropped_.load(std::memory_order_relaxed);
  if (dropped != told_ && write_line(tell_dropped_(dropped - told_))) told_ = dropped;
  if (!write_line(std::string(message.payload.data(), message.payload.size()))) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
  }
}

bool DroppingSink::write_line(std::string line) {
  // A pipe that polls as writable has room for PIPE_BUF bytes. The descriptor itself stays blocking: its mode is shared
  // with whoever gave it to us.
  pollfd entry{fd_.get(), POLLOUT, 0};
  if (::poll(&entry, 1, 0) != 1 || (entry.revents & POLLOUT) == 0) return false;
  if (torn_) line.insert(line.begin(), '\n');
  if (line.size() >= PIPE_BUF) line.resize(PIPE_BUF - 1);
  line.push_back('\n');
  ssize_t written = -1;
  do {
    written = ::write(fd_.get(), line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written > 0) torn_ = static_cast<size_t>(written) < line.size();
  return written == static_cast<ssize_t>(line.size());
}

}  // namespace flagos::log
