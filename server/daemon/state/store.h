// SPDX-License-Identifier: Apache-2.0
// The state folder: what a flagosd leaves to the one that follows it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "flagos/v1/state.pb.h"
#include "proto/shm/memfd.h"

namespace flagos::daemon {

// Files are replaced as a whole (a new one, then rename) and are flagosd's alone (0600 in a folder of 0700). They hold
// tokens. Nothing is synced to the disk: after a boot nothing of it counts. Writing fails where there is no room; the
// session or lease then goes on and is not found again by another flagosd, which the log says.
//
// Loop thread only.
class StateStore {
 public:
  // Makes the folder where it is not there, and holds it alone until destroyed. kFailedPrecondition: it is another
  // user's, open to others, or a link; kAlreadyExists: another flagosd has it.
  static absl::StatusOr<std::unique_ptr<StateStore>> Open(const std::string& folder);
  // Removes the folder where nothing is left in it but counters.
  ~StateStore();

  const std::string& folder() const { return folder_; }

  void put(v1::StoredSession session);
  void put(v1::StoredLease lease);
  void put(v1::StoredCounters counters);
  void remove_session(uint64_t number);
  void remove_lease(const std::string& id);

  // What was left there, of this boot; what cannot be read is removed, with a line in the log.
  std::vector<v1::StoredSession> sessions();
  std::vector<v1::StoredLease> leases();
  v1::StoredCounters counters();

 private:
  StateStore(std::string folder, UniqueFd fd, std::string boot_id)
      : folder_(std::move(folder)), fd_(std::move(fd)), boot_id_(std::move(boot_id)) {}
  template <class Message>
  void write(const std::string& name, Message& message);
  template <class Message>
  bool read(const std::string& name, Message& message);
  template <class Message>
  std::vector<Message> read_all(const char* prefix);
  std::vector<std::string> names() const;
  void remove(const std::string& name);

  const std::string folder_;
  const UniqueFd fd_;  // of the folder, locked
  const std::string boot_id_;
};

}  // namespace flagos::daemon
