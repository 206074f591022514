// SPDX-License-Identifier: Apache-2.0
// The thread that sees what has happened on the devices, so that the dispatch thread never waits for them.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "proto/wire/error.h"

namespace flagos::cuda {

class Waiter {
 public:
  using Done = std::function<void(const Error&)>;

  // `failed` is called from the thread with the error of the device, and gives the one that `done` is told.
  using Failed = std::function<Error(const Error&)>;
  explicit Waiter(Failed failed);
  // Calls what has not happened with an error.
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // Calls `done` from the thread once all events have happened, or one has failed. Borrows the events until then; the
  // list must not be empty. Thread safe.
  void wait(std::vector<cudaEvent_t> events, Done done);

 private:
  struct Pending {
    std::vector<cudaEvent_t> events;
    Done done;
  };
  void loop();
  // Whether it is settled; then `done` was called.
  bool settle(Pending& pending);

  const Failed failed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Pending> added_;     // GUARDED_BY(mutex_)
  bool ending_ = false;            // GUARDED_BY(mutex_)
  std::atomic<bool> news_{false};  // added_ or ending_ changed
  std::thread thread_;
};

}  // namespace flagos::cuda
