// SPDX-License-Identifier: Apache-2.0
// A session: one client process, one executor, and the memory between them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/daemon/clients/connection.h"
#include "server/daemon/executors/pool.h"
#include "server/daemon/sessions/lease_memory.h"
#include "server/daemon/sessions/recovery.h"
#include "server/daemon/sessions/regions.h"
#include "server/daemon/sessions/share.h"
#include "server/daemon/sessions/state.h"

namespace flagos::daemon {

class Session;

// Whom a session tells about itself.
class SessionObserver {
 public:
  virtual ~SessionObserver() = default;
  virtual void session_changed(Session& session) = 0;
  // An executor is about to be given the session: from now on it may outlive flagosd.
  virtual void session_assigning(Session& session) = 0;
  // FAULTED or ENDED, and everything that it held is given back. The object stays, to be looked at.
  virtual void session_over(Session& session) = 0;
};

// What is known when a session is asked for.
struct SessionRequest {
  uint64_t number = 0;
  std::string lease;
  std::shared_ptr<LeaseMemoryPage> lease_memory;
  std::shared_ptr<LeaseShare> lease_share;
  DeviceSet device_set;  // as an executor is keyed
  AttachTerms terms;
  uid_t owner = 0;        // who opened the lease
  std::string container;  // cgroup of the client; empty: it is on the host
  std::string program;
  std::string client_torch;
};

// Liveness. The client: its pidfd decides; closing the connection while it lives ends the session in order, and a
// forked child that holds the connection keeps nothing alive. The executor: its pidfd; it watches the client by itself,
// so that the session outlives flagosd. When the executor is lost its exit is written into the session's page, for the
// client, whose sleeping threads are woken. Whatever ends it, a session that is over holds nothing but what is shown of
// it.
//
// Loop thread only.
class Session final : public ExecutorOwner {
 public:
  Session(EventLoop& loop, const Config& config, SessionRequest request, ClientConnection connection,
          SessionObserver& observer);

  // One that an earlier flagosd began: RUNNING.
  Session(EventLoop& loop, const Config& config, RecoveredSession recovered, SessionObserver& observer);

  // Queues for an executor; answers the client when there is one, or none can be had.
  void start(ExecutorPool& pool);
  // Ends it for this reason, which the client is told: asks the executor, and kills it after `grace`.
  void end(const std::string& reason, Clock::duration grace);
  // Turns RUNNING into IDLE and back, and takes the measure of how busy it is. Called about once a second.
  void tick();
  // flagosd stops and the session goes on without it. REQUIRES an executor that serves it, else ends it.
  void let_go();
  // Not over, and not let go.
  bool must_end() const { return !over() && !let_go_; }

  // What another flagosd needs to go on with it. REQUIRES an executor.
  v1::StoredSession stored() const;

  uint64_t number() const { return request_.number; }
  const std::string& id() const { return id_; }
  const std::string& lease() const { return request_.lease; }
  SessionState state() const { return machine_.state(); }
  bool over() const { return machine_.over(); }
  uid_t uid() const { return request_.owner; }
  const std::string& container() const { return request_.container; }
  pid_t client_pid() const { return peer_.pid; }
  pid_t executor_pid() const { return executor_pid_; }
  const std::string& program() const { return request_.program; }
  const std::string& client_torch() const { return request_.client_torch; }
  const std::string& vendor() const { return vendor_; }
  const std::string& executor_torch() const { return executor_torch_; }
  // Devices of the node; empty until an executor said what there are.
  const DeviceSet& devices() const { return devices_; }
  const std::string& end_cause() const { return cause_; }
  double started() const { return started_; }  // Unix seconds
  double ended() const { return ended_; }
  double busy_ratio() const { return busy_ratio_; }
  uint64_t ring_bytes() const { return limits_.ring; }
  SessionFigures figures() const;
  // Of one device of the node, which the session holds. memory_quota(): of all its devices, for all sessions of its
  // lease; 0: no limit.
  uint64_t memory_used(uint32_t node_device) const;
  uint64_t memory_quota() const;
  const ShareTerms& share() const { return share_; }
  ComputeMode compute_mode() const { return config_.compute.mode; }
  double throttled() const;  // seconds that it waited for turns

  void executor_ready(ExecutorProcess& executor, const Error& error) override;
  void executor_assigned(ExecutorProcess& executor, const Error& error) override;
  void executor_ending(ExecutorProcess& executor, const std::string& cause) override;
  void executor_exited(ExecutorProcess& executor, const ExitStatus& status) override;

 private:
  void give(absl::StatusOr<std::unique_ptr<ExecutorProcess>> executor);
  absl::Status assign();
  void refuse(const Error& error);
  void tell_client(const Error& error);
  void open_to_client();
  void client_gone(const char* what);
  bool client_exited() const;
  void drain(const std::string& cause, const std::string& reason, Clock::duration grace);
  void finish(SessionState state);
  void advance(SessionState state);

  EventLoop& loop_;
  const Config& config_;
  const SessionConfig limits_;  // as they were when it attached
  SessionRequest request_;      // constant but for the lease's memory and share, which are taken over
  SessionObserver& observer_;
  const std::string id_;
  const PeerCredentials peer_;
  const double started_;
  const uint64_t started_monotonic_;

  SessionStateMachine machine_;
  std::optional<ClientConnection> connection_;
  UniqueFd client_;  // pidfd, where there is no connection: it was an earlier flagosd's
  Watch client_watch_;
  const ShareTerms share_;
  std::shared_ptr<LeaseMemoryPage> lease_memory_;  // null once it is over, as the next
  std::shared_ptr<LeaseShare> lease_share_;
  ExecutorPool::Ticket ticket_;
  std::unique_ptr<ExecutorProcess> executor_;
  std::optional<SessionRegions> regions_;
  RegionFds fds_;             // until the client has them
  UniqueFd client_liveness_;  // likewise
  Watch deadline_;            // of the attach, then of the end

  bool answered_ = false;  // the client has its reply
  bool let_go_ = false;
  pid_t executor_pid_ = 0;
  std::string vendor_, executor_torch_, cause_;
  DeviceSet devices_;
  double ended_ = 0;
  double busy_ratio_ = 0, busy_seconds_ = 0;
  Clock::time_point busy_at_{};
  SessionFigures last_figures_;  // of a session that is over, as the next
  uint64_t last_quota_ = 0;
  double last_throttled_ = 0;
};

}  // namespace flagos::daemon
