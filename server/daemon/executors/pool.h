// SPDX-License-Identifier: Apache-2.0
// Executors that are started ahead of the sessions that will take them, one bucket for each device set.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/daemon/config/config.h"
#include "server/daemon/executors/process.h"

namespace flagos::daemon {

// Loop thread only.
class ExecutorPool final : public ExecutorOwner {
 public:
  using Taker = std::function<void(absl::StatusOr<std::unique_ptr<ExecutorProcess>>)>;

  // A place in the queue for an executor; ends when destroyed.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(ExecutorPool* pool, DeviceSet devices, uint64_t number)
        : pool_(pool), devices_(std::move(devices)), number_(number) {}
    Ticket(Ticket&& other) noexcept;
    Ticket& operator=(Ticket&& other) noexcept;
    ~Ticket();

   private:
    ExecutorPool* pool_ = nullptr;
    DeviceSet devices_;
    uint64_t number_ = 0;
  };

  // `ready` is told of every executor that becomes ready, `failed` of every start that fails.
  struct Observer {
    std::function<void(const ExecutorProcess&)> ready;
    std::function<void(const DeviceSet&, const absl::Status&)> failed;
  };

  ExecutorPool(EventLoop& loop, const Config& config, Observer observer);
  Spawner& spawner() { return *spawner_; }
  // Numbers of executors up to this one are taken.
  void skip_to(uint64_t number) { next_executor_ = std::max(next_executor_, number + 1); }
  ~ExecutorPool() override;

  // Gives the taker a ready executor, now or as soon as one is, or the text with which the executor failed to start.
  // The taker is called from the loop, never within take(). Its owner must be set there.
  [[nodiscard]] Ticket take(const DeviceSet& devices, Taker taker);

  // Holds executors of this set ready until as many drop() as keep() calls were made. Of all sets together there are at
  // most [pool] max_warm, or as many as one set has: sets that are kept for longer come first.
  void keep(const DeviceSet& devices);
  void drop(const DeviceSet& devices);
  // Makes sure that one executor of the set becomes ready, whether any are kept or not.
  void probe(const DeviceSet& devices);

  // Follows [pool] after it has changed: starts and ends executors.
  void config_changed() { settle_all_later(); }

  // Ends every executor that has no session, and starts none any more. `idle` is called once they are gone.
  void stop(std::function<void()> idle);

  // Ready executors whose set holds the device.
  uint32_t warm(uint32_t device) const;

  void executor_ready(ExecutorProcess& executor, const Error& error) override;
  void executor_assigned(ExecutorProcess& executor, const Error& error) override;
  void executor_ending(ExecutorProcess& executor, const std::string& cause) override;
  void executor_exited(ExecutorProcess& executor, const ExitStatus& status) override;

 private:
  struct Member {
    std::unique_ptr<ExecutorProcess> process;
    bool ready = false;
    absl::Status failure;  // why it is being killed; ok if it is not
    Watch deadline;        // of its start
  };
  struct Waiter {
    uint64_t number;
    Taker taker;
  };
  struct Bucket {
    std::vector<Member> members;
    std::deque<Waiter> waiters;
    uint32_t keepers = 0;
    uint64_t kept_since = 0;  // grows with each set that begins to be kept
    bool probe = false;
    uint32_t failures = 0;  // in a row
    absl::Status last_failure;
    Clock::time_point retry_at{};
    Watch retry;
    Clock::time_point refill_at{};
    Watch refill;
  };

  size_t kept(const Bucket& bucket) const;
  size_t wanted(const Bucket& bucket) const;
  void cancel(const DeviceSet& devices, uint64_t number);
  void settle(const DeviceSet& devices);
  void settle_later(const DeviceSet& devices);
  void settle_all_later();
  void hand_out(const DeviceSet& devices, Bucket& bucket);
  void start_missing(const DeviceSet& devices, Bucket& bucket);
  void trim(Bucket& bucket);
  void fail(const DeviceSet& devices, Bucket& bucket, const absl::Status& failure);
  size_t starting() const;
  void check_idle();
  static Member* Find(Bucket& bucket, const ExecutorProcess& executor);

  EventLoop& loop_;
  const Config& config_;
  const Observer observer_;
  const std::unique_ptr<Spawner> spawner_;
  std::map<DeviceSet, Bucket> buckets_;
  uint64_t next_keep_ = 1;
  uint64_t next_ticket_ = 1;
  uint64_t next_executor_ = 1;
  bool stopped_ = false;
  std::function<void()> idle_;
  // What settle_later() posted must not find the pool gone.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace flagos::daemon
