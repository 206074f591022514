// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/executors/systemd/spawner.h"

#include <signal.h>
#include <sys/wait.h>

#include <map>
#include <utility>

#include "proto/socket/unix_socket.h"
#include "server/common/log.h"
#include "server/common/status.h"
#include "server/common/strings.h"
#include "server/daemon/executors/executor_pipes.h"
#include "server/daemon/executors/systemd/bus.h"
#include "server/daemon/executors/systemd/unit.h"
#include "server/daemon/state/process_identity.h"

namespace flagos::daemon {
namespace {

constexpr const char* kUnit = "org.freedesktop.systemd1.Unit";
constexpr const char* kService = "org.freedesktop.systemd1.Service";
// systemd reaps a process a moment after the kernel tells of its end.
constexpr auto kAskAgain = std::chrono::milliseconds(10);
constexpr int kAsks = 200;

class SystemdHandle;

// What the handles of one flagosd share.
class SystemdSpawner final : public Spawner {
 public:
  explicit SystemdSpawner(EventLoop& loop)
      : loop_(loop),
        bus_(loop, [this](const std::string& unit, const std::string& result) { job_ended(unit, result); }),
        prefix_(Cat("flagos-executor-", BootNanoseconds() / 1'000'000, "-")) {}

  absl::StatusOr<SpawnedExecutor> spawn(const ExecutorSpec& spec, const std::string& id) override;
  std::unique_ptr<ExecutorHandle> adopt(const std::string& unit, pid_t pid, UniqueFd pidfd) override;

  EventLoop& loop() { return loop_; }
  void add(SystemdHandle& handle);
  void remove(SystemdHandle& handle);
  // Calls a method of the manager with the unit's name, and what `fill` adds. A failure is logged, unless the unit is
  // gone.
  void call(const char* method, const std::string& unit, const std::function<int(sd_bus_message*)>& fill = {});
  // Asks for a property of one basic type; `told` is not called once the handle is gone.
  template <class Value>
  void ask(const std::string& unit, const char* interface, const char* property, char type,
           std::function<void(absl::StatusOr<Value>)> told);

 private:
  void job_ended(const std::string& unit, const std::string& result);

  EventLoop& loop_;
  SystemBus bus_;
  const std::string prefix_;  // so that no later flagosd takes a name that is still in use
  std::map<std::string, SystemdHandle*> handles_;
};

// A unit: starting, running (its main process is known), or ended.
class SystemdHandle final : public ExecutorHandle {
 public:
  SystemdHandle(SystemdSpawner& spawner, std::string unit) : spawner_(spawner), unit_(std::move(unit)) {
    spawner_.add(*this);
  }
  ~SystemdHandle() override { spawner_.remove(*this); }

  pid_t pid() const override { return pid_; }
  std::string unit() const override { return unit_; }

  void kill() override {
    if (done_) return;
    spawner_.call("KillUnit", unit_,
                  [](sd_bus_message* call) { return sd_bus_message_append(call, "si", "all", SIGKILL); });
  }

  void on_exit(EventLoop&, std::function<void(const ExitStatus&)> exited) override { exited_ = std::move(exited); }

  void started(const std::string& result) {
    if (pidfd_ || done_) return;  // the job that stops it
    if (result != "done") return ask_how_it_ended(kAsks);
    spawner_.ask<uint32_t>(unit_, kService, "MainPID", 'u', [this](const absl::StatusOr<uint32_t>& pid) {
      const auto identity = pid.ok() ? Identify(static_cast<pid_t>(*pid)) : std::nullopt;
      if (!identity) return ask_how_it_ended(kAsks);
      watch(identity->pid, OpenProcess(*identity));
    });
  }

  void failed_to_start(const absl::Status& why) { end({.reason = MessageOf(why)}); }

  void watch(pid_t pid, UniqueFd pidfd) {
    pid_ = pid;
    pidfd_ = std::move(pidfd);
    if (!pidfd_) return ask_how_it_ended(kAsks);
    watch_ = spawner_.loop().watch(pidfd_.get(), EPOLLIN, [this](uint32_t) {
      watch_.cancel();
      ask_how_it_ended(kAsks);
    });
  }

 private:
  void ask_how_it_ended(int asks) {
    if (asks == 0) return end({.known = false});
    using Text = std::string;
    spawner_.ask<Text>(unit_, kUnit, "ActiveState", 's', [this, asks](const absl::StatusOr<Text>& state) {
      if (!state.ok()) return end({.known = false});  // the unit is forgotten, or the bus is gone
      if (*state == "inactive" || *state == "failed") return ask_code();
      again_ = spawner_.loop().after(kAskAgain, [this, asks] { ask_how_it_ended(asks - 1); });
    });
  }

  void ask_code() {
    spawner_.ask<int32_t>(unit_, kService, "ExecMainCode", 'i', [this](const absl::StatusOr<int32_t>& code) {
      spawner_.ask<int32_t>(unit_, kService, "ExecMainStatus", 'i',
                            [this, code](const absl::StatusOr<int32_t>& status) {
                              if (!code.ok() || !status.ok() || *code == 0) return end({.known = false});
                              end(*code == CLD_EXITED ? ExitStatus{.code = *status} : ExitStatus{.signal = *status});
                            });
    });
  }

  void end(const ExitStatus& status) {
    if (std::exchange(done_, true)) return;
    watch_.cancel();
    // Nobody needs the unit any more; a failed one would stay for ever.
    spawner_.call("ResetFailedUnit", unit_);
    spawner_.call("UnrefUnit", unit_);
    const auto exited = exited_;  // which may destroy this
    if (exited) exited(status);
  }

  SystemdSpawner& spawner_;
  const std::string unit_;
  pid_t pid_ = 0;
  UniqueFd pidfd_;
  Watch watch_, again_;
  bool done_ = false;
  std::function<void(const ExitStatus&)> exited_;
};

void SystemdSpawner::add(SystemdHandle& handle) { handles_[handle.unit()] = &handle; }
void SystemdSpawner::remove(SystemdHandle& handle) { handles_.erase(handle.unit()); }

void SystemdSpawner::job_ended(const std::string& unit, const std::string& result) {
  const auto found = handles_.find(unit);
  if (found != handles_.end()) found->second->started(result);
}

void SystemdSpawner::call(const char* method, const std::string& unit,
                          const std::function<int(sd_bus_message*)>& fill) {
  auto call = bus_.manager_call(method);
  absl::Status status = call.status();
  if (status.ok()) {
    int result = sd_bus_message_append(call->get(), "s", unit.c_str());
    if (result >= 0 && fill) result = fill(call->get());
    status = result < 0 ? BusError(result, method) : absl::OkStatus();
  }
  if (status.ok()) {
    status = bus_.send(*std::move(call), [](const absl::StatusOr<sd_bus_message*>&) {
      // A unit that is gone has nothing left to be killed, reset or released.
    });
  }
  if (!status.ok())
    log::Error("systemd is not told", {{"method", method}, {"unit", unit}, {"error", MessageOf(status)}});
}

template <class Value>
void SystemdSpawner::ask(const std::string& unit, const char* interface, const char* property, char type,
                         std::function<void(absl::StatusOr<Value>)> told) {
  auto call = bus_.get_property(unit, interface, property);
  const auto tell = [this, unit, told](absl::StatusOr<Value> value) {
    if (handles_.contains(unit)) told(std::move(value));
  };
  // Never from within the caller's call.
  if (!call.ok()) return loop_.post([tell, status = call.status()] { tell(status); });
  const absl::Status sent = bus_.send(*std::move(call), [tell, type](absl::StatusOr<sd_bus_message*> reply) {
    if (!reply.ok()) return tell(reply.status());
    const char contents[] = {type, '\0'};
    int result = sd_bus_message_enter_container(*reply, 'v', contents);
    if constexpr (std::is_same_v<Value, std::string>) {
      const char* text = "";
      if (result >= 0) result = sd_bus_message_read_basic(*reply, type, &text);
      tell(result < 0 ? absl::StatusOr<Value>(BusError(result, "a property")) : std::string(text));
    } else {
      Value value{};
      if (result >= 0) result = sd_bus_message_read_basic(*reply, type, &value);
      tell(result < 0 ? absl::StatusOr<Value>(BusError(result, "a property")) : value);
    }
  });
  if (!sent.ok()) loop_.post([tell, sent] { tell(sent); });
}

absl::StatusOr<SpawnedExecutor> SystemdSpawner::spawn(const ExecutorSpec& spec, const std::string& id) {
  auto pipes = MakeExecutorPipes();
  if (!pipes.ok()) return pipes.status();
  const std::string unit = Cat(prefix_, id, ".service");
  auto call = bus_.manager_call("StartTransientUnit");
  if (!call.ok()) return call.status();
  FLAGOS_RETURN_IF_ERROR(DescribeUnit(call->get(), unit, spec, *pipes));
  auto handle = std::make_unique<SystemdHandle>(*this, unit);
  FLAGOS_RETURN_IF_ERROR(bus_.send(*std::move(call), [this, unit](const absl::StatusOr<sd_bus_message*>& reply) {
    const auto found = handles_.find(unit);
    if (!reply.ok() && found != handles_.end()) found->second->failed_to_start(reply.status());
  }));
  return SpawnedExecutor{std::move(handle), std::move(pipes->channel), std::move(pipes->output)};
}

std::unique_ptr<ExecutorHandle> SystemdSpawner::adopt(const std::string& unit, pid_t pid, UniqueFd pidfd) {
  auto handle = std::make_unique<SystemdHandle>(*this, unit);
  call("RefUnit", unit);
  handle->watch(pid, std::move(pidfd));
  return handle;
}

}  // namespace

std::unique_ptr<Spawner> MakeSystemdSpawner(EventLoop& loop) { return std::make_unique<SystemdSpawner>(loop); }

}  // namespace flagos::daemon
