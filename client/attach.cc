// SPDX-License-Identifier: Apache-2.0
// Session's beginning and end in a process: attaching, fork, exit.
#include "client/attach.h"

#include <ATen/Context.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <pthread.h>
#include <torch/version.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "client/errors.h"
#include "client/forward/register.h"
#include "client/forward/routing.h"
#include "client/generator.h"
#include "client/log.h"
#include "client/session.h"
#include "proto/wire/definitions.h"

namespace flagos::client {
namespace {

// Held while attaching. A child of fork never takes it: it may have been held at the fork.
constinit std::mutex attach_mutex;
constinit std::atomic<uint32_t> attaching{0};  // threads in Attach()
constinit std::atomic<bool> bad_fork{false};
constinit std::atomic<bool> exiting{false};

// Says that a thread is attaching, from before it takes the lock.
struct AttachingMark {
  AttachingMark() { attaching.fetch_add(1, std::memory_order_relaxed); }
  ~AttachingMark() { attaching.fetch_sub(1, std::memory_order_relaxed); }
  AttachingMark(const AttachingMark&) = delete;
  AttachingMark& operator=(const AttachingMark&) = delete;
};

// The folder that holds the library or program with this address.
std::string FolderOf(const void* address) {
  Dl_info info{};
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) return ".";
  char* const path = ::realpath(info.dli_fname, nullptr);
  const std::string file = path != nullptr ? path : info.dli_fname;
  std::free(path);
  return file.substr(0, file.rfind('/'));
}

ProcessInfo DescribeProcess() {
  ProcessInfo process;
  process.torch_version = TORCH_VERSION;
  process.libtorch = FolderOf(reinterpret_cast<const void*>(&at::globalContext));
  process.bin = FolderOf(reinterpret_cast<const void*>(&DescribeProcess)) + "/../bin";
  return process;
}

// The count of devices never changes in a process, so a session must have those that were told first.
Error CheckDevices(const DeviceList& told, Connection& connection) {
  if (connection.devices.size() < told.count) {
    return MakeError(ErrorCode::kUnavailable, "flagosd now offers " + std::to_string(connection.devices.size()) +
                                                  " devices, but told of " + std::to_string(told.count) +
                                                  " when this process first asked; restart the process");
  }
  connection.devices.resize(told.count);
  return Error::Ok();
}

Result<Connection> OpenSession() {
  const DeviceList& told = Devices();
  if (told.count == 0) return NoDeviceError();
  auto connection = Open(told.endpoint, DescribeProcess());
  if (!connection.ok()) return connection;
  if (Error error = CheckDevices(told, connection.value()); !error.ok()) return error;
  return connection;
}

}  // namespace

bool LaunchBlocking() {
  const char* const value = std::getenv("FLAGOS_LAUNCH_BLOCKING");
  return value != nullptr && std::strcmp(value, "1") == 0;
}

bool Session::InBadFork() noexcept { return bad_fork.load(std::memory_order_relaxed); }

void Session::HandleForks() {
  const int error = ::pthread_atfork(nullptr, nullptr, &Session::AtFork);
  TORCH_CHECK(error == 0, "flagos cannot watch for forks: ", std::strerror(error), "; free some memory");
}

void Session::AtFork() noexcept {
  RenewDevicesAfterFork();
  Session* const session = current_.exchange(nullptr, std::memory_order_relaxed);
  if (session != nullptr || attaching.load(std::memory_order_relaxed) != 0)
    bad_fork.store(true, std::memory_order_relaxed);
  if (session == nullptr) return;
  // The parent's end must be seen although this child lives on.
  ::close(session->connection_.attach.get());
  ::close(session->connection_.liveness.get());
  // Pinned tensors live on in the child, as all its tensors do. Where there are none it holds nothing of the session.
  const Mapping& arena = session->connection_.arena;
  if (session->arena_->in_use() != 0) {
    arena.make_private(session->connection_.arena_fd.get());
  } else {
    arena.drop();
  }
  ::close(session->connection_.arena_fd.get());
}

void Session::AtExit() noexcept {
  exiting.store(true, std::memory_order_relaxed);
  // From here on destructors do nothing; the session's memory stays, for threads that still run.
  if (Session* const session = current_.exchange(nullptr, std::memory_order_acq_rel)) session->close();
}

Session& Session::Attach() {
  if (InBadFork()) {
    Throw(MakeError(ErrorCode::kRuntime,
                    "Cannot re-initialize flagos in forked subprocess. To use flagos with "
                    "multiprocessing, you must use the 'spawn' start method"));
  }
  const AttachingMark mark;
  const std::lock_guard lock(attach_mutex);
  if (Session* const session = current_.load(std::memory_order_acquire)) return *session;
  static const int registered = std::atexit(&Session::AtExit);
  if (registered != 0 || exiting.load(std::memory_order_relaxed)) {
    Throw(MakeError(ErrorCode::kUnavailable, "flagos cannot be used any more: this process is ending"));
  }
  const Routing& routing = Routing::Get();
  auto addresses = AddressSpace::Reserve();
  if (!addresses.ok()) Throw(addresses.error());
  auto connection = OpenSession();
  if (!connection.ok()) Throw(connection.error());
  std::unique_ptr<Session> session(new Session(std::move(connection).value(), std::move(addresses).value()));
  auto operators = DecodeOperatorList(session->request(MakeHeader(RecordKind::kListOperators)));
  if (!operators.ok()) Throw(operators.error());
  SeedDefaultGenerators(*session);
  RegisterOperators(operators.value());
  routing.check(*session);
  session->connection_.arena.inherit();  // for pinned tensors; AtFork() parts it from the child's
  current_.store(session.get(), std::memory_order_release);
  if (log::Has(log::Word::kSession)) {
    const Connection& to = session->connection();
    log::Line("attached to session %s of %s: vendor %s, %zu devices, executor process %u with torch %s",
              to.name.c_str(), to.endpoint.text().c_str(), to.vendor.c_str(), to.devices.size(),
              static_cast<unsigned>(to.executor_pid), to.executor_torch.c_str());
  }
  return *session.release();
}

}  // namespace flagos::client
