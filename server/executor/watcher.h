// SPDX-License-Identifier: Apache-2.0
// The thread that watches a session's surroundings: the client, flagosd and signals. It never waits for the dispatch
// thread, so a session ends in time whatever its vendor is doing.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "proto/shm/memfd.h"
#include "server/executor/channel.h"
#include "server/executor/rejoin.h"

namespace flagos::executor {

class Watcher {
 public:
  struct Reactions {
    // Nobody is served any more: the client is gone, or the session did not end by itself after flagosd went.
    std::function<void(const std::string& cause)> end_now;
    // Finish what is running, tell the client `reason`, and end.
    std::function<void(const std::string& reason)> end_soon;
    // About once a second, where nothing else happens.
    std::function<void()> tick;
  };
  struct Watched {
    Channel* channel = nullptr;          // received from here alone
    int liveness = -1;                   // hangs up with the client's last copy
    int client = -1;                     // pidfd; a forked child may keep the liveness socket, so this one decides too
    int signals = -1;                    // signalfd: as kEnd
    bool end_with_daemon = false;        // kEndWithDaemon
    const Rejoiner* rejoiner = nullptr;  // finds a new flagosd
  };

  // Starts the thread. Everything is borrowed; reactions are called from the thread.
  Watcher(const Watched& watched, Reactions reactions);
  // Stops and joins it.
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

 private:
  void watch();
  void hear_daemon();
  void hear_answer();
  void knock(uint64_t now);
  // What is polled for flagosd's side; -1: nothing.
  int daemon_fd() const;

  const Watched watched_;
  const Reactions reactions_;
  const UniqueFd stop_;      // eventfd
  bool abandoned_ = false;   // flagosd went and the session was told to end
  bool connected_ = true;    // the channel has a flagosd at its other end
  bool seeks_ = false;       // for another flagosd
  uint64_t next_knock_ = 0;  // CLOCK_MONOTONIC nanoseconds
  UniqueFd joining_;         // a connection whose answer is awaited
  std::thread thread_;
};

}  // namespace flagos::executor
