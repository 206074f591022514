// SPDX-License-Identifier: Apache-2.0
// What a container mounts at /run/flagos: for each lease a folder with a socket and the lease's token, and nothing
// else.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>

#include "absl/status/statusor.h"

namespace flagos::daemon {

// FOLDER/flagosd.sock is the socket that containers come by, open to everybody, for it admits only with a token;
// FOLDER/LEASE/mount holds a link of it and the file `token`. FOLDER/LEASE can be entered by the lease's user and by
// flagosd's, so that a container of either can mount what is in it, while a user in the container may be any.
//
// Loop thread only.
class Allocations {
 public:
  explicit Allocations(std::string folder) : folder_(std::move(folder)) {}

  // The socket of containers, in `folder`.
  static std::string SocketOf(const std::string& folder) { return folder + "/flagosd.sock"; }

  // Makes the folder of a lease, or what is missing of it, and returns the path that a container mounts.
  absl::StatusOr<std::string> create(const std::string& lease, uid_t uid, const std::string& token);
  void remove(const std::string& lease);
  // Removes every folder of a lease that is none of these.
  void keep_only(const std::set<std::string>& leases);

  std::string path_of(const std::string& lease) const { return folder_ + "/" + lease + "/mount"; }

 private:
  const std::string folder_;
};

// Lets one more user enter a folder of ours: an entry of its access control list. Needs no capability.
absl::Status GrantEntry(const std::string& folder, uid_t uid);

}  // namespace flagos::daemon
