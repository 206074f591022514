// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/sessions/lease.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>

#include "server/common/log.h"
#include "server/common/status.h"
#include "server/common/strings.h"
#include "server/daemon/state/process_identity.h"

namespace flagos::daemon {
namespace {

// Takes the same time wherever the first difference is.
bool Equal(const Token& a, const Token& b) {
  uint8_t difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == 0;
}

absl::StatusOr<Lease*> Unexpired(Lease* lease) {
  if (!lease->expired) return lease;
  return absl::PermissionDeniedError(
      Cat("the time of lease ", lease->id, " has passed; open another one (flagosctl lease open)"));
}

}  // namespace

std::string ToHex(const Token& token) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : token) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

absl::StatusOr<Lease*> LeaseTable::add(const std::string& id, uid_t uid, const MemoryLimit& memory) {
  auto page = LeaseMemoryPage::Create(memory);
  if (!page.ok()) return page.status();
  Lease& lease = leases_[id];
  lease.id = id;
  lease.uid = uid;
  lease.memory = *std::move(page);
  return &lease;
}

absl::StatusOr<Lease*> LeaseTable::open(std::string name, uid_t uid, DeviceSet devices, Clock::duration ttl,
                                        const MemoryLimit& memory) {
  Token token;
  if (::getrandom(token.data(), token.size(), 0) != static_cast<ssize_t>(token.size())) {
    return SystemError(errno, "cannot make a token", "try again");
  }
  const auto added = add(Cat("l", next_++), uid, memory);
  if (!added.ok()) return added.status();
  Lease& lease = **added;
  lease.name = std::move(name);
  lease.devices = std::move(devices);
  lease.token = token;
  lease.ends = BootNanoseconds() + static_cast<uint64_t>(std::chrono::nanoseconds(ttl).count());
  expire_after(lease, ttl);
  return &lease;
}

void LeaseTable::expire_after(Lease& lease, Clock::duration ttl) {
  lease.expiry = loop_.after(ttl, [this, id = lease.id] {
    Lease& expired = leases_.at(id);
    expired.expired = true;
    end_if_unused(expired);
  });
}

absl::StatusOr<Lease*> LeaseTable::open_own(uid_t uid, const MemoryLimit& memory) {
  return add(Cat("l", next_++), uid, memory);
}

absl::StatusOr<Lease*> LeaseTable::restore_own(const std::string& id, uid_t uid, const MemoryLimit& memory) {
  return add(id, uid, memory);
}

absl::StatusOr<Lease*> LeaseTable::restore(const v1::StoredLease& stored) {
  const auto limit = ParseMemoryLimit(stored.memory_limit());
  if (!limit.ok()) return limit.status();
  const auto added = add(stored.id(), stored.uid(), *limit);
  if (!added.ok()) return added.status();
  Lease& lease = **added;
  lease.name = Printable(stored.name());
  lease.devices.assign(stored.devices().begin(), stored.devices().end());
  std::copy_n(stored.token().begin(), std::min(stored.token().size(), lease.token.size()), lease.token.begin());
  lease.ends = stored.ends();
  if (!stored.container().empty()) lease.container = Cgroup{stored.container(), stored.container_id()};
  lease.page_is_new = true;
  const uint64_t now = BootNanoseconds();
  expire_after(lease, std::chrono::nanoseconds(lease.ends > now ? lease.ends - now : 0));
  return &lease;
}

v1::StoredLease LeaseTable::Store(const Lease& lease) {
  v1::StoredLease stored;
  stored.set_id(lease.id);
  stored.set_name(lease.name);
  stored.set_uid(lease.uid);
  stored.mutable_devices()->Add(lease.devices.begin(), lease.devices.end());
  stored.set_token(std::string(lease.token.begin(), lease.token.end()));
  stored.set_ends(lease.ends);
  stored.set_memory_limit(FormatMemoryLimit(lease.memory->limit()));
  if (lease.share != nullptr) {
    stored.set_weight(lease.share->terms().weight);
    stored.set_max_percent(lease.share->terms().max_percent);
    stored.set_share_class(static_cast<uint32_t>(lease.share->terms().share_class) + 1);
  }
  if (lease.container) {
    stored.set_container(lease.container->path);
    stored.set_container_id(lease.container->id);
  }
  return stored;
}

Lease* LeaseTable::find_token(const Token& token) {
  Lease* found = nullptr;
  for (auto& [id, lease] : leases_) {
    if (Equal(lease.token, token) && !Equal(lease.token, kNoToken)) found = &lease;
  }
  return found;
}

absl::StatusOr<Lease*> LeaseTable::find(const Token& token, uid_t uid) {
  Lease* const found = find_token(token);
  if (found == nullptr || (found->uid != uid && uid != 0)) {
    return absl::PermissionDeniedError(
        "the lease of FLAGOS_TOKEN has ended or is not yours; open another one "
        "(flagosctl lease open), or unset FLAGOS_TOKEN");
  }
  return Unexpired(found);
}

absl::StatusOr<Lease*> LeaseTable::find(const Token& token, const Cgroup& container) {
  Lease* const found = find_token(token);
  if (found == nullptr) {
    return absl::PermissionDeniedError(
        "the lease of this container's token has ended, or there is no token; open a lease on the host "
        "(flagosctl lease open) and mount its folder at /run/flagos");
  }
  if (found->container && !IsWithin(container, *found->container)) {
    return absl::PermissionDeniedError(
        Cat("the token of lease ", found->id, " is another container's; open a lease for each container"));
  }
  if (auto usable = Unexpired(found); !usable.ok()) return usable;
  if (!found->container) found->container = container;
  return found;
}

std::vector<const Lease*> LeaseTable::opened() const {
  std::vector<const Lease*> opened;
  for (const auto& [id, lease] : leases_) {
    if (!Equal(lease.token, kNoToken)) opened.push_back(&lease);
  }
  return opened;
}

Lease* LeaseTable::find(const std::string& id) {
  const auto found = leases_.find(id);
  return found == leases_.end() ? nullptr : &found->second;
}

size_t LeaseTable::opened_by(uid_t uid) const {
  return static_cast<size_t>(std::count_if(leases_.begin(), leases_.end(), [&](const auto& entry) {
    return entry.second.uid == uid && !Equal(entry.second.token, kNoToken);
  }));
}

void LeaseTable::remove_session(const std::string& id, uint64_t session) {
  Lease* const lease = find(id);
  if (lease == nullptr) return;  // closed before
  lease->sessions.erase(session);
  end_if_unused(*lease);
}

void LeaseTable::end_if_unused(Lease& lease) {
  if (lease.sessions.empty() && (lease.expired || Equal(lease.token, kNoToken))) close(lease);
}

void LeaseTable::close(Lease& lease) {
  if (!Equal(lease.token, kNoToken)) {
    log::Info("lease ended", {{"lease", lease.id}, {"name", lease.name}});
    if (ended_) ended_(lease);
  }
  leases_.erase(std::string(lease.id));
}

}  // namespace flagos::daemon
