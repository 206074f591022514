// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/sessions/share.h"

#include <algorithm>
#include <bitset>

#include "server/common/log.h"
#include "server/common/status.h"

namespace flagos::daemon {
namespace {

double Seconds(uint64_t nanoseconds) { return static_cast<double>(std::min<uint64_t>(nanoseconds, INT64_MAX)) / 1e9; }

}  // namespace

SharePage::SharePage(UniqueFd fd, Mapping mapping)
    : fd_(std::move(fd)), mapping_(std::move(mapping)), arbiter_(*reinterpret_cast<ArbiterPage*>(mapping_.data())) {}

absl::StatusOr<std::shared_ptr<SharePage>> SharePage::Create() {
  auto page = CreateArbiterPage();
  if (!page.ok()) return ToStatus(page.error());
  return std::shared_ptr<SharePage>(new SharePage(std::move(page.value().fd), std::move(page.value().mapping)));
}

absl::StatusOr<std::shared_ptr<SharePage>> SharePage::Adopt(UniqueFd fd) {
  auto mapping = MapArbiterPage(fd.get());
  if (!mapping.ok()) return ToStatus(mapping.error());
  std::shared_ptr<SharePage> page(new SharePage(std::move(fd), std::move(mapping).value()));
  page->reap();
  // Entries of leases whose sessions ended meanwhile are free.
  std::bitset<kArbiterLeases> used;
  for (const ArbiterSlot& slot : page->arbiter_.page().slots) {
    if (slot.session.load() != 0) used.set(slot.lease.load() % kArbiterLeases);
  }
  for (uint32_t entry = 1; entry < kArbiterLeases; ++entry)
    page->arbiter_.page().leases[entry].taken.store(used[entry]);
  return page;
}

std::shared_ptr<LeaseShare> LeaseShare::Open(std::shared_ptr<SharePage> page, const ShareTerms& terms) {
  auto& leases = page->arbiter_.page().leases;
  const auto free = std::find_if(leases.begin() + 1, leases.end(), [](const auto& l) { return l.taken.load() == 0; });
  if (free == leases.end()) {
    log::Warn("the arbiter has no place for another lease, which gets the usual share", {{"leases", leases.size()}});
    return std::shared_ptr<LeaseShare>(new LeaseShare(std::move(page), 0, ShareTerms()));
  }
  const auto entry = static_cast<uint32_t>(free - leases.begin());
  for (ArbiterUse& use : free->devices) {
    use.used.store(0);
    use.virtual_ns.store(0);
    use.not_before.store(0);
  }
  page->arbiter_.set_terms(entry, terms);
  free->taken.store(1);
  return std::shared_ptr<LeaseShare>(new LeaseShare(std::move(page), entry, terms));
}

std::shared_ptr<LeaseShare> LeaseShare::Adopt(std::shared_ptr<SharePage> page, uint32_t entry) {
  entry = entry < kArbiterLeases ? entry : 0;
  if (entry != 0) page->arbiter_.page().leases[entry].taken.store(1);
  const ShareTerms terms = page->arbiter_.terms(entry);
  return std::shared_ptr<LeaseShare>(new LeaseShare(std::move(page), entry, terms));
}

LeaseShare::~LeaseShare() {
  if (entry_ != 0) page_->arbiter_.page().leases[entry_].taken.store(0);
}

double LeaseShare::used(const DeviceSet& devices) const {
  double seconds = 0;
  for (const uint32_t device : devices) {
    if (entry_ != 0 && device < kMaxDevices) {
      seconds += Seconds(page_->arbiter_.page().leases[entry_].devices[device].used.load());
    }
  }
  return seconds;
}

SessionShare LeaseShare::session(uint64_t number) const {
  for (const ArbiterSlot& slot : page_->arbiter_.page().slots) {
    if (slot.session.load() == number) return {.throttled = Seconds(slot.throttled.load())};
  }
  return {};
}

}  // namespace flagos::daemon
