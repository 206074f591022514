// SPDX-License-Identifier: Apache-2.0
// The core of flagosd: sessions, leases, devices and executors, all owned by the loop's thread.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/daemon/clients/connection.h"
#include "server/daemon/config/config.h"
#include "server/daemon/containers/allocations.h"
#include "server/daemon/event_loop.h"
#include "server/daemon/executors/device_table.h"
#include "server/daemon/executors/pool.h"
#include "server/daemon/sessions/lease.h"
#include "server/daemon/sessions/recovery.h"
#include "server/daemon/sessions/session.h"
#include "server/daemon/state/store.h"
#include "server/daemon/telemetry/telemetry.h"

namespace flagos::daemon {

// Who asks over the control plane.
struct Caller {
  uid_t uid = 0;
  pid_t pid = 0;  // 0: not known
  // Its own sessions, or all where it is root or flagosd's user.
  bool may_end(uid_t owner) const;
  // Root and flagosd's user.
  bool may_configure() const;
};

// Loop thread only.
class Supervisor final : public SessionObserver {
 public:
  using SessionListener = std::function<void(const Session& session, bool over)>;

  // `store`: where sessions and leases are kept for the flagosd that follows; nullptr: nowhere.
  Supervisor(EventLoop& loop, const Config& config, StateStore* store = nullptr);

  // Starts the first executors, from which the devices become known, and what watches devices.
  void start();
  // Takes over what an earlier flagosd left in the store. Its executors come to `socket`, which listens and stays its
  // owner's. Before start().
  void recover(int socket);

  // Follows a configuration that has changed in place.
  void config_changed();

  // The two attach requests. Both answer on the connection, once the devices are known where that is needed; `handled`
  // is told whether it has become a session's.
  using Handled = std::function<void(bool opened)>;
  void attach(
      const AttachRequest& request, const AttachTerms& terms, ClientConnection connection,
      Handled handled = [](bool) {});

  // What a container of the lease mounts; empty: there are no containers here.
  std::string container_folder(const Lease& lease) const;
  // `memory`: what the lease may hold of each device; nullopt: what is configured. A dry run opens none
  // and returns null.
  absl::StatusOr<const Lease*> open_lease(const Caller& caller, const std::string& name, const DeviceSet& devices,
                                          double ttl_seconds, const std::optional<MemoryLimit>& memory = std::nullopt,
                                          const ShareTerms& share = {}, bool dry_run = false);
  // The number of sessions that it ends, or would end. They end as by kill().
  absl::StatusOr<uint32_t> close_lease(const Caller& caller, const std::string& id, bool dry_run = false);
  // Ends a session. Unless that is refused, `done` is told once: when the session is over, or kUnavailable where
  // flagosd stops without seeing its end. All three are kUnavailable from stop() on: sessions that were let go are
  // nobody's here.
  using KillDone = std::function<void(absl::StatusOr<const Session*>)>;
  absl::Status kill(const Caller& caller, const std::string& id, double grace_seconds, const std::string& reason,
                    KillDone done);

  // By id, or by a prefix that only one session has.
  absl::StatusOr<Session*> find(const std::string& id);
  const std::map<uint64_t, std::unique_ptr<Session>>& sessions() const { return sessions_; }
  const LeaseTable& leases() const { return leases_; }
  const DeviceTable& devices() const { return devices_; }
  const ExecutorPool& pool() const { return pool_; }
  const Telemetry& telemetry() const { return telemetry_; }
  // Calls `then` once devices are known or cannot be.
  void when_devices_known(std::function<void(const absl::Status&)> then) { devices_.when_known(std::move(then)); }

  // Told of every change of a session's state; ends with remove_listener().
  uint64_t add_listener(SessionListener listener);
  void remove_listener(uint64_t id) { listeners_.erase(id); }

  // What no session tells of: attaches that were refused before there was one, and the ends of leases with a token.
  struct Account {
    std::function<void(const PeerCredentials& peer, const absl::Status& status)> refused;
    std::function<void(const Lease& lease)> lease_ended;
  };
  void on_account(Account account) { account_ = std::move(account); }

  // Sessions that are not over.
  size_t live_sessions() const;
  // Ever: those that were opened, and those whose executor died.
  uint64_t sessions_started() const { return sessions_begun_; }
  uint64_t sessions_lost() const { return sessions_lost_; }
  // Of an earlier flagosd: those that go on here, and those whose executors have not come yet.
  uint64_t sessions_readopted() const { return sessions_readopted_; }
  size_t sessions_awaited() const { return recovery_ ? recovery_->awaited() : 0; }
  // How many flagosd there were before this one, since the state folder was empty.
  uint64_t restarts() const { return restarts_; }

  enum class Stop {
    kLetGo,  // running sessions go on with their executors
    kDrain,  // running sessions are ended: asked, and killed after kDrainGrace
  };
  // Ends warm executors and pending attaches; `done` is called once nothing is left to wait for, and nobody waits here.
  void stop(Stop how, std::function<void()> done);

  void session_changed(Session& session) override;
  void session_assigning(Session& session) override;
  void session_over(Session& session) override;

 private:
  // An attach that waits for the devices. Stays in its place: its connection is watched.
  struct Held {
    AttachRequest request;
    AttachTerms terms;
    ClientConnection connection;
    Handled handled;
    Watch patience;  // of a question for the devices
  };

  // An attach that waits for executors of its lease to come back.
  struct Delayed {
    AttachRequest request;
    AttachTerms terms;
    ClientConnection connection;
    Handled handled;
    Watch timer;
  };

  void attach_now(const AttachRequest& request, const AttachTerms& terms, ClientConnection connection, Handled handled);
  bool must_wait(const AttachRequest& request);
  void hold(Held held);
  void tell_not_yet(std::list<Held>::iterator place);
  void serve_held(const absl::Status& known);
  bool serve(const AttachRequest& request, const AttachTerms& terms, ClientConnection connection,
             const absl::Status& known);
  bool answer_devices(const AttachRequest& request, const AttachTerms& terms, ClientConnection& connection);
  bool open_session(const AttachRequest& request, const AttachTerms& terms, ClientConnection connection);
  // Binds the lease to the container that the client is in, if it comes from one.
  absl::StatusOr<Lease*> lease_for(const AttachRequest& request, const ClientConnection& connection);
  void offer_to_containers(const Lease& lease);
  void write_cdi();
  absl::Status check_session_limit(uid_t uid) const;
  absl::Status check_lease_limit(uid_t uid) const;
  void adopt(RecoveredSession recovered);
  void adopt_share(Lease& lease, RecoveredSession& recovered);
  void store_counters();
  bool refuse(ClientConnection& connection, const absl::Status& status);
  absl::StatusOr<std::shared_ptr<LeaseShare>> open_share(const ShareTerms& terms);
  void tell(const Session& session, bool over);
  void tick();
  void forget(uint64_t number);
  absl::Status check_not_stopping() const;
  void finish_stop();
  void end_stop();

  EventLoop& loop_;
  const Config& config_;
  StateStore* const store_;
  DeviceTable devices_;
  ExecutorPool pool_;
  Telemetry telemetry_;
  LeaseTable leases_;
  std::optional<Allocations> allocations_;
  std::unique_ptr<Recovery> recovery_;
  std::shared_ptr<SharePage> share_;  // made for the first lease, or brought by the first executor to come back
  bool share_is_new_ = true;          // no executor has brought it
  std::list<Held> held_;
  std::map<uint64_t, Delayed> delayed_;
  uint64_t next_delayed_ = 1;
  bool awaits_devices_ = false;  // serve_held() will be called
  std::map<uint64_t, std::unique_ptr<Session>> sessions_;
  std::map<uint64_t, Watch> forgets_;  // of sessions that are over
  std::map<uint64_t, SessionListener> listeners_;
  Account account_;
  std::multimap<uint64_t, KillDone> kills_;  // who waits for the end of a session
  uint64_t next_session_ = 1;
  uint64_t sessions_lost_ = 0;
  uint64_t sessions_readopted_ = 0;
  uint64_t sessions_begun_ = 0;
  uint64_t restarts_ = 0;
  uint64_t next_listener_ = 1;
  Watch tick_;
  bool stopping_ = false;
  std::function<void()> stopped_;  // until it was called
  bool pool_idle_ = false;
  Watch stop_deadline_;
};

}  // namespace flagos::daemon
