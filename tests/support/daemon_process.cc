// SPDX-License-Identifier: Apache-2.0
#include "tests/support/daemon_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "proto/socket/unix_socket.h"
#include "tests/support/executor_process.h"

extern char** environ;

namespace flagos::testing {
namespace {

namespace fs = std::filesystem;
constexpr int kReadyFd = 3;  // in the daemon

// State and parent of a process, from /proc/PID/stat; '\0' where there is none.
std::pair<char, pid_t> StatOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);  // throws nothing where the process ends meanwhile, unlike a stream's iterators
  const size_t end = text.rfind(')');
  if (end == std::string::npos) return {'\0', 0};
  std::istringstream rest(text.substr(end + 1));
  char state = '\0';
  pid_t parent = 0;
  rest >> state >> parent;
  return {state, parent};
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  char path[] = "/tmp/flagos-test-XXXXXX";
  if (::mkdtemp(path) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& text) const {
  const fs::path path = fs::path(path_) / name;
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
  return path.string();
}

bool Eventually(const std::function<bool()>& condition, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::vector<pid_t> children;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const pid_t candidate = std::atoi(entry.path().filename().c_str());
    if (candidate <= 0) continue;
    const auto [state, parent] = StatOf(candidate);
    if (parent == pid && state != 'Z' && state != '\0') children.push_back(candidate);
  }
  return children;
}

bool IsGone(pid_t pid) {
  const char state = StatOf(pid).first;
  return state == '\0' || state == 'Z' || state == 'X';
}

size_t OpenFilesOf(pid_t pid) {
  return static_cast<size_t>(std::distance(fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd"), {}));
}

std::optional<size_t> RestingFilesOf(pid_t daemon) {
  size_t files = 0;
  const bool rests = Eventually([&] {
    const size_t last = std::exchange(files, OpenFilesOf(daemon));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    return ChildrenOf(daemon).size() == 1 && last == files && OpenFilesOf(daemon) == files;
  });
  return rests ? std::optional(files) : std::nullopt;
}

size_t ResidentBytesOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  size_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

DaemonProcess::DaemonProcess(const Options& options)
    : socket_(folder_.path() + "/d.sock"), log_(folder_.path() + "/log") {
  std::vector<std::string> arguments = {BuildFolder() + "/bin/flagosd",
                                        "--socket",
                                        socket_,
                                        "--vendor",
                                        options.vendor,
                                        "--log-level",
                                        "debug",
                                        "--ready-fd",
                                        std::to_string(kReadyFd)};
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int ready[2];
  if (::pipe2(ready, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  UniqueFd ours(ready[0]), theirs(ready[1]);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, log_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&files, theirs.get(), kReadyFd);
  posix_spawn_file_actions_addclosefrom_np(&files, kReadyFd + 1);
  const int error = ::posix_spawn(&pid_, argv[0], &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw std::runtime_error("cannot start " + arguments[0]);
  theirs.reset();
  if (!options.await) return;
  pollfd entry{ours.get(), POLLIN, 0};
  char text[6];
  if (::poll(&entry, 1, 30'000) != 1 || ::read(ours.get(), text, sizeof text) != sizeof text) {
    throw std::runtime_error("flagosd did not become ready:\n" + log());
  }
}

DaemonProcess::~DaemonProcess() {
  if (status_) return;
  const std::vector<pid_t> executors = ChildrenOf(pid_);
  ::kill(pid_, SIGKILL);
  for (const pid_t executor : executors) ::kill(executor, SIGKILL);
  wait();
}

void DaemonProcess::signal(int number) const { ::kill(pid_, number); }

std::optional<int> DaemonProcess::wait(std::chrono::milliseconds patience) {
  Eventually(
      [&] {
        int status = 0;
        if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
          status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
        }
        return status_.has_value();
      },
      patience);
  return status_;
}

std::string DaemonProcess::log() const {
  std::ifstream file(log_);
  return {std::istreambuf_iterator<char>(file), {}};
}

AttachedClient::AttachedClient(const std::string& socket, const AttachRequest& request)
    : AttachedClient(Must(ConnectUnix(socket)), request) {}

AttachedClient::AttachedClient(UniqueFd connection, const AttachRequest& request) : connection_(std::move(connection)) {
  Must(SendRecord(connection_.get(), std::as_bytes(std::span(&request, 1))));
  std::vector<UniqueFd> fds;
  Must(ReceiveRecord(connection_.get(), std::as_writable_bytes(std::span(&reply_, 1)), &fds, 60'000));
  Must(CheckAttachReply(reply_));
  devices_.resize(reply_.device_count);
  Must(ReceiveRecord(connection_.get(), std::as_writable_bytes(std::span(devices_)), nullptr, 20'000));
  if (fds.size() != reply_.descriptors) throw std::runtime_error("not the descriptors that the reply speaks of");
  if (fds.size() != kAttachFdCount) return;
  liveness_ = std::move(fds[kLivenessFd]);
  memory_ = std::make_unique<SessionMemory>(reply_.ring_bytes, reply_.arena_bytes, std::move(fds[kRingFd]),
                                            std::move(fds[kExecutorFd]), std::move(fds[kArenaFd]));
  session_ = std::make_unique<SessionClient>(*memory_);
}

bool AttachedClient::executor_hung_up() const { return HasHungUp(liveness_.get()); }

Result<AttachReply> Ask(int socket, std::span<const std::byte> bytes) {
  if (Error error = SendRecord(socket, bytes); !error.ok()) return error;
  AttachReply reply;
  if (Error error = ReceiveRecord(socket, std::as_writable_bytes(std::span(&reply, 1)), nullptr, 10'000); !error.ok()) {
    return error;
  }
  return reply;
}

}  // namespace flagos::testing
