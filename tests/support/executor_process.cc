// SPDX-License-Identifier: Apache-2.0
#include "tests/support/executor_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <span>
#include <stdexcept>

#include "proto/shm/arbiter.h"
#include "proto/shm/lease_memory.h"
#include "proto/socket/unix_socket.h"

namespace flagos::testing {
namespace {

constexpr int kPatience = 20'000;  // milliseconds; sanitizers are slow

UniqueFd OpenPidfd(pid_t pid) { return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

}  // namespace

std::string BuildFolder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path().string();
}

IdleProcess::IdleProcess() : pid_(::fork()) {
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  pidfd_ = OpenPidfd(pid_);
}

IdleProcess::~IdleProcess() { kill(); }

void IdleProcess::kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

ExecutorProcess::ExecutorProcess(const Options& options) : log_(::memfd_create("flagos-test-log", MFD_CLOEXEC)) {
  auto [ours, theirs] = Must(UnixPair());
  const std::string program = BuildFolder() + "/bin/flagos-executor";
  std::vector<std::string> words = {program,
                                    "--vendor",
                                    options.vendor,
                                    "--vendor-dir",
                                    options.vendor_dir.empty() ? BuildFolder() + "/vendors" : options.vendor_dir,
                                    "--channel-fd",
                                    std::to_string(theirs.get())};
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::fcntl(theirs.get(), F_SETFD, 0);
    ::dup2(log_.get(), STDERR_FILENO);
    ::execv(program.c_str(), argv.data());
    ::_exit(127);
  }
  pidfd_ = OpenPidfd(pid_);
  channel_ = std::move(ours);
}

ExecutorProcess::~ExecutorProcess() {
  if (status_) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::optional<ChannelRecord> ExecutorProcess::receive() {
  ChannelRecord record{};
  const Error error = ReceiveRecord(channel_.get(), std::as_writable_bytes(std::span(&record, 1)), nullptr, kPatience);
  if (!error.ok()) return std::nullopt;
  return record;
}

std::vector<DeviceRecord> ExecutorProcess::receive_devices(uint32_t count) {
  std::vector<DeviceRecord> devices(count);
  Must(ReceiveRecord(channel_.get(), std::as_writable_bytes(std::span(devices)), nullptr, kPatience));
  return devices;
}

void ExecutorProcess::await_ready() {
  const auto ready = receive();
  if (!ready || ready->kind != static_cast<uint32_t>(ChannelKind::kReady) || ready->status != 0) {
    throw std::runtime_error("the executor is not ready: " + (ready ? ReadText(ready->message) : log()));
  }
  receive_devices(ready->device_count);
}

void ExecutorProcess::send(const ChannelRecord& record, std::span<const int> fds) {
  Must(SendRecord(channel_.get(), std::as_bytes(std::span(&record, 1)), fds));
}

UniqueFd ExecutorProcess::assign(const SessionMemory& memory, int client_pidfd, uint32_t flags) {
  auto [ours, theirs] = Must(UnixPair());
  ChannelRecord record{};
  record.kind = static_cast<uint32_t>(ChannelKind::kAssign);
  record.session = 7;
  record.ring_bytes = memory.ring_bytes;
  record.arena_bytes = memory.arena_bytes;
  record.flags = flags;
  const NewLeasePage lease = Must(CreateLeasePage());
  const NewArbiterPage arbiter = Must(CreateArbiterPage());
  const int fds[kChannelFdCount] = {memory.ring_read_only.get(),
                                    memory.executor_fd.get(),
                                    memory.arena_fd.get(),
                                    theirs.get(),
                                    client_pidfd,
                                    lease.fd.get(),
                                    arbiter.fd.get()};
  send(record, fds);
  return std::move(ours);
}

UniqueFd ExecutorProcess::assign_and_wait(const SessionMemory& memory, int client_pidfd, uint32_t flags) {
  UniqueFd liveness = assign(memory, client_pidfd, flags);
  const auto assigned = receive();
  if (!assigned || assigned->kind != static_cast<uint32_t>(ChannelKind::kAssigned) || assigned->status != 0) {
    throw std::runtime_error("the executor took no session: " + (assigned ? ReadText(assigned->message) : log()));
  }
  return liveness;
}

void ExecutorProcess::send_end(const std::string& reason) {
  ChannelRecord record{};
  record.kind = static_cast<uint32_t>(ChannelKind::kEnd);
  CopyText(record.message, reason);
  send(record);
}

void ExecutorProcess::signal(int number) { ::kill(pid_, number); }

std::optional<int> ExecutorProcess::wait(std::chrono::milliseconds patience) {
  if (status_) return status_;
  pollfd entry{pidfd_.get(), POLLIN, 0};
  if (::poll(&entry, 1, static_cast<int>(patience.count())) != 1) return std::nullopt;
  int status = 0;
  if (::waitpid(pid_, &status, 0) != pid_) return std::nullopt;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return status_;
}

std::string ExecutorProcess::log() const {
  std::string text(static_cast<size_t>(::lseek(log_.get(), 0, SEEK_END)), '\0');
  const ssize_t size = ::pread(log_.get(), text.data(), text.size(), 0);
  text.resize(size < 0 ? 0 : static_cast<size_t>(size));
  return text;
}

}  // namespace flagos::testing
