// SPDX-License-Identifier: Apache-2.0
// A second process for tests of what two processes share.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <utility>

namespace flagos::testing {

// Runs `body` in a child; its return value is the exit code. Killed if it is still there at the end of the scope.
// REQUIRES that this process has one thread when it starts the child.
class Child {
 public:
  explicit Child(const std::function<int()>& body) : pid_(::fork()) {
    if (pid_ == 0) {
      ::alarm(100);  // whatever happens to the test
      ::_exit(body());
    }
  }
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  // Its exit code, or -SIGNAL.
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  pid_t pid_;
};

}  // namespace flagos::testing
