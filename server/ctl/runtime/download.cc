// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "server/ctl/exit_code.h"
#include "server/ctl/runtime/install.h"

extern char** environ;

namespace flagos::ctl {
namespace {

// Runs a program of PATH to its end; what it prints goes to standard error. Its exit status, or -errno.
int RunToEnd(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, argv[0], &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return -error;
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return -errno;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

absl::Status DownloadWheels(const InstallRequest& request, const std::string& folder) {
  std::vector<std::string> command = {
      "python3",       "-m",    "pip",    "download", "--disable-pip-version-check", "--no-input",
      "--only-binary", ":all:", "--dest", folder};
  // CUDA's libraries are packages of their own, which a torch for CUDA names as what it depends on.
  if (request.name != "cuda") command.emplace_back("--no-deps");
  const bool any_patch = std::ranges::count(request.version, '.') < 2;  // "2.13" is 2.13.0 to pip, and more to a vendor
  command.push_back(absl::StrCat("torch==", request.version, any_patch ? ".*" : ""));
  const int result = RunToEnd(command);
  if (result == 0) return absl::OkStatus();
  const std::string why = result < 0
                              ? absl::StrCat("python3 does not start: ", std::strerror(-result))
                              : absl::StrCat("python3 -m pip download ended with ", result, "; it said why above");
  return Failure(
      absl::StatusCode::kFailedPrecondition, absl::StrCat("cannot fetch torch ", request.version), why,
      "correct pip's configuration, or name a wheel, a folder of wheels or a virtual environment with --from");
}

}  // namespace flagos::ctl
