// SPDX-License-Identifier: Apache-2.0
// Sessions served by the executor's core on a thread of the test. executor_process.h starts the real program.
#pragma once

#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "proto/socket/unix_socket.h"
#include "server/executor/dispatcher.h"
#include "server/executor/host.h"
#include "server/executor/regions.h"
#include "tests/support/session_client.h"
#include "vendors/interface/vendor.h"

namespace flagos::testing {

class ExecutorSession {
 public:
  explicit ExecutorSession(std::unique_ptr<vendor::Vendor> vendor, const vendor::Options& options = {},
                           uint64_t memory_quota = 0, uint64_t ring_bytes = kMinRingBytes)
      : memory_(ring_bytes),
        client_(memory_),
        vendor_(std::move(vendor)),
        devices_(Must(vendor_->start(options))),
        regions_(Must(executor::SessionRegions::Map(memory_.ring_read_only.get(), memory_.executor_fd.get(),
                                                    memory_.arena_fd.get(), memory_.ring_bytes, memory_.arena_bytes))),
        account_(Account(memory_quota, devices_.size())),
        host_(regions_, account_.get(), TotalMemory(), descriptors_.second.get()),
        backend_(Must(vendor_->open(host_))),
        dispatcher_(host_, *backend_),
        thread_([this] { cause_ = dispatcher_.run(); }) {}

  ~ExecutorSession() {
    end("the test is over");
    if (thread_.joinable()) thread_.join();
  }

  SessionClient& client() { return client_; }
  const SessionMemory& memory() const { return memory_; }
  // The client's end of the socket on which descriptors come and go.
  int descriptors() const { return descriptors_.first.get(); }
  void end(const std::string& reason) { dispatcher_.end({ErrorCode::kOk, reason}); }
  // Waits for the session's end, which somebody else brings about.
  const executor::EndCause& cause() {
    if (thread_.joinable()) thread_.join();
    return cause_;
  }

 private:
  // Of a lease of its own, with this quota on each device.
  static std::unique_ptr<LeaseAccount> Account(uint64_t quota, size_t devices) {
    NewLeasePage page = Must(CreateLeasePage());
    for (auto& of_device : LeasePageOf(page.mapping).quota) of_device.store(quota);
    std::vector<uint32_t> numbers(devices);
    std::iota(numbers.begin(), numbers.end(), 0u);
    return Must(LeaseAccount::Join(std::move(page.fd), 7, std::move(numbers)));
  }
  std::vector<uint64_t> TotalMemory() const {
    std::vector<uint64_t> bytes;
    for (const DeviceRecord& device : devices_) bytes.push_back(device.total_memory);
    return bytes;
  }

  const SessionMemory memory_;
  SessionClient client_;
  const std::unique_ptr<vendor::Vendor> vendor_;
  const std::vector<DeviceRecord> devices_;
  const executor::SessionRegions regions_;
  const std::pair<UniqueFd, UniqueFd> descriptors_ = Must(UnixPair());
  const std::unique_ptr<LeaseAccount> account_;
  executor::SessionHost host_;
  const std::unique_ptr<vendor::Backend> backend_;
  executor::Dispatcher dispatcher_;
  executor::EndCause cause_;
  std::thread thread_;
};

}  // namespace flagos::testing
