// SPDX-License-Identifier: Apache-2.0
// What systemd is to a service that tells it how it is (sd_notify).
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "proto/shm/memfd.h"
#include "tests/support/daemon_process.h"

namespace flagos::testing {

// While it lives, processes that are started have its socket in NOTIFY_SOCKET.
class ServiceManager {
 public:
  ServiceManager() {
    const std::string path = folder_.path() + "/notify";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const timeval patience{20, 0};
    if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0) {
      throw std::runtime_error("cannot listen at " + path);
    }
    ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  }
  ~ServiceManager() { ::unsetenv("NOTIFY_SOCKET"); }
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  // The next thing that it is told; "nothing" where none comes in time.
  std::string next() {
    char text[256];
    const ssize_t size = ::recv(socket_.get(), text, sizeof text, 0);
    return size > 0 ? std::string(text, static_cast<size_t>(size)) : "nothing";
  }

 private:
  TemporaryFolder folder_;
  const UniqueFd socket_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
};

}  // namespace flagos::testing
