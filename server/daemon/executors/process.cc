// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/executors/process.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "proto/socket/unix_socket.h"
#include "server/common/log.h"
#include "server/common/strings.h"

namespace flagos::daemon {
namespace {

constexpr size_t kMaxLine = 2000;          // bytes of one line of output
constexpr size_t kKeptLines = 8;           // for error texts,
constexpr size_t kKeptBytes = 1024;        // which may have to fit into the 8 KiB of gRPC's metadata, escaped
constexpr uint32_t kLinesPerSecond = 100;  // that reach our log
constexpr int kReadsPerEvent = 16;         // one chatty executor does not hold the loop

bool AllTerminated(const ChannelRecord& record) {
  return Terminated(record.vendor) && Terminated(record.torch_version) && Terminated(record.message);
}

Error ErrorOf(const ChannelRecord& record) {
  if (record.status == 0) return Error::Ok();
  return MakeError(ErrorCodeFromWire(record.status), ValidUtf8(ReadText(record.message)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ExecutorProcess>> ExecutorProcess::Start(EventLoop& loop, Spawner& spawner,
                                                                        const ExecutorSpec& spec, std::string id,
                                                                        ExecutorOwner* owner) {
  auto process = spawner.spawn(spec, id);
  if (!process.ok()) return process.status();
  log::Debug("executor started", {{"executor", id}, {"pid", process->handle->pid()}, {"vendor", spec.vendor}});
  return std::unique_ptr<ExecutorProcess>(
      new ExecutorProcess(loop, std::move(id), spec.devices, *std::move(process), owner));
}

std::unique_ptr<ExecutorProcess> ExecutorProcess::Adopt(EventLoop& loop, SpawnedExecutor process, std::string id,
                                                        const DeviceSet& devices, const ChannelRecord& ready,
                                                        std::vector<DeviceRecord> records, ExecutorOwner* owner) {
  std::unique_ptr<ExecutorProcess> executor(
      new ExecutorProcess(loop, std::move(id), devices, std::move(process), owner));
  executor->describe(ready);
  executor->take_devices(std::move(records));
  return executor;
}

ExecutorProcess::ExecutorProcess(EventLoop& loop, std::string id, const DeviceSet& devices, SpawnedExecutor process,
                                 ExecutorOwner* owner)
    : id_(std::move(id)),
      device_set_(devices),
      process_(std::move(process)),
      unit_(process_.handle->unit()),
      pid_(process_.handle->pid()),
      owner_(owner) {
  channel_watch_ = loop.watch(process_.channel.get(), EPOLLIN, [this](uint32_t) { read_channel(); });
  output_watch_ = loop.watch(process_.output.get(), EPOLLIN, [this](uint32_t) { read_output(); });
  process_.handle->on_exit(loop, [this](const ExitStatus& status) { handle_exit(status); });
}

ExecutorProcess::~ExecutorProcess() { kill(); }

void ExecutorProcess::kill() {
  if (!exited_ && process_.handle) process_.handle->kill();
}

void ExecutorProcess::let_go() { process_.handle.reset(); }

Error ExecutorProcess::assign(const Assignment& assignment) {
  ChannelRecord record{};
  record.kind = static_cast<uint32_t>(ChannelKind::kAssign);
  record.session = assignment.session;
  record.ring_bytes = assignment.ring_bytes;
  record.arena_bytes = assignment.arena_bytes;
  record.lease_entry = assignment.lease_entry;
  record.flags = assignment.flags;
  return SendRecord(process_.channel.get(), std::as_bytes(std::span(&record, 1)), assignment.descriptors);
}

void ExecutorProcess::end(std::string_view reason) {
  ChannelRecord record{};
  record.kind = static_cast<uint32_t>(ChannelKind::kEnd);
  CopyText(record.message, reason);
  // Where it does not arrive the executor is ending already, or is killed once the grace has passed.
  if (const Error error = SendRecord(process_.channel.get(), std::as_bytes(std::span(&record, 1))); !error.ok()) {
    log::Debug("executor takes no request to end", {{"executor", id_}, {"error", error.message}});
  }
}

void ExecutorProcess::read_channel() {
  for (int turn = 0; turn < kReadsPerEvent; ++turn) {
    switch (reader_.read(process_.channel.get())) {
      case RecordReader::Status::kMore: return;
      case RecordReader::Status::kClosed:
      case RecordReader::Status::kBroken: channel_watch_.cancel(); return;  // its exit tells the rest
      case RecordReader::Status::kRecord: break;
    }
    if (reading_devices_) {
      finish_ready();
      continue;
    }
    ChannelRecord record;
    std::memcpy(&record, reader_.bytes().data(), sizeof record);
    reader_.next(sizeof record);
    if (!AllTerminated(record)) return broken("a text without an end");
    handle(record);
    if (!channel_watch_) return;
  }
}

void ExecutorProcess::handle(const ChannelRecord& record) {
  switch (static_cast<ChannelKind>(record.kind)) {
    case ChannelKind::kReady:
      if (!devices_.empty()) return broken("a second ready");
      if (record.status != 0) return owner_->executor_ready(*this, ErrorOf(record));
      if (record.device_count == 0 || record.device_count > kMaxDevices ||
          (!device_set_.empty() && record.device_count != device_set_.size())) {
        return broken("a number of devices that nobody asked for");
      }
      describe(record);
      if (pid_ == 0) pid_ = static_cast<pid_t>(record.pid);
      reading_devices_ = true;
      reader_.next(record.device_count * sizeof(DeviceRecord));
      return;
    case ChannelKind::kAssigned: return owner_->executor_assigned(*this, ErrorOf(record));
    case ChannelKind::kEnded:
      told_end_ = ExitStatus{.code = record.status == 0 ? 0 : 1};
      return owner_->executor_ending(*this, ValidUtf8(ReadText(record.message)));
    case ChannelKind::kAssign:
    case ChannelKind::kEnd:
    case ChannelKind::kRejoin:
    case ChannelKind::kRejoined: break;
  }
  broken("a record of a kind that executors do not send");
}

void ExecutorProcess::describe(const ChannelRecord& record) {
  vendor_ = Printable(ReadText(record.vendor));
  torch_version_ = Printable(ReadText(record.torch_version));
}

void ExecutorProcess::take_devices(std::vector<DeviceRecord> devices) {
  devices_ = std::move(devices);
  for (DeviceRecord& device : devices_) device.name[sizeof device.name - 1] = '\0';
}

void ExecutorProcess::finish_ready() {
  std::vector<DeviceRecord> devices(reader_.bytes().size() / sizeof(DeviceRecord));
  std::memcpy(devices.data(), reader_.bytes().data(), reader_.bytes().size());
  take_devices(std::move(devices));
  reading_devices_ = false;
  reader_.next(sizeof(ChannelRecord));
  owner_->executor_ready(*this, Error::Ok());
}

void ExecutorProcess::broken(const char* what) {
  log::Error("executor broke the protocol of its channel and is killed", {{"executor", id_}, {"sent", what}});
  channel_watch_.cancel();
  kill();
}

void ExecutorProcess::read_output() {
  char buffer[4096];
  for (int turn = 0; turn < kReadsPerEvent; ++turn) {
    const ssize_t size = ::read(process_.output.get(), buffer, sizeof buffer);
    if (size == 0) output_watch_.cancel();
    if (size <= 0) return;
    for (ssize_t i = 0; i < size; ++i) {
      if (buffer[i] == '\n') {
        if (!partial_line_.empty()) take_line(std::exchange(partial_line_, {}));
        continue;
      }
      partial_line_.push_back(buffer[i]);
      if (partial_line_.size() > kMaxLine) {
        const size_t whole = CutText(partial_line_, kMaxLine).size();
        const size_t cut = whole == 0 ? kMaxLine : whole;  // 0: it is no text at all
        take_line(partial_line_.substr(0, cut));
        partial_line_.erase(0, cut);
      }
    }
  }
}

void ExecutorProcess::take_line(std::string line) {
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\t' || c == '\r'; }, ' ');
  line = Printable(line);
  const auto now = Clock::now();
  if (now - line_window_ > std::chrono::seconds(1)) {
    line_window_ = now;
    lines_in_window_ = 0;
  }
  if (++lines_in_window_ <= kLinesPerSecond) {
    log::Relay(line, {{"executor", id_}});
  } else if (lines_in_window_ == kLinesPerSecond + 1) {
    log::Warn("executor prints too much; the rest of this second is left out", {{"executor", id_}});
  }
  if (last_lines_.size() == kKeptLines) last_lines_.erase(last_lines_.begin());
  last_lines_.push_back(std::move(line));
}

std::string ExecutorProcess::last_output() const {
  // From the last line on, because that mostly has the reason.
  std::string text;
  for (auto line = last_lines_.rbegin(); line != last_lines_.rend(); ++line) {
    if (text.empty()) {
      text = Shorten(*line, kKeptBytes);
    } else if (text.size() + line->size() < kKeptBytes) {
      text = Cat(*line, "\n", text);
    } else {
      break;
    }
  }
  return text;
}

void ExecutorProcess::handle_exit(const ExitStatus& status) {
  exited_ = true;
  // What it said before it ended counts, and comes before its end.
  if (channel_watch_) read_channel();
  channel_watch_.cancel();
  if (output_watch_) read_output();
  if (!partial_line_.empty()) take_line(std::exchange(partial_line_, {}));
  output_watch_.cancel();
  log::Debug("executor exited", {{"executor", id_}, {"pid", pid_}, {"status", status.describe()}});
  // Where nobody tells how it ended, it has said so itself, or something ended it.
  owner_->executor_exited(*this, status.known || !told_end_ ? status : *told_end_);
}

}  // namespace flagos::daemon
