// SPDX-License-Identifier: Apache-2.0
// What doctor says of a node and of flagosd as its service, and that it says nothing where all is well.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>

#include "proto/shm/memfd.h"
#include "server/ctl/doctor/node.h"
#include "server/ctl/doctor/service.h"
#include "tests/support/daemon_process.h"

namespace flagos::ctl {
namespace {

namespace fs = std::filesystem;

class DoctorRoot : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root() / path).parent_path());
    folder_.write(path, text);
  }
  fs::path root() const { return folder_.path(); }
  static void expect_silent(const Checks& checks) {
    for (const Check& check : checks) ADD_FAILURE() << check.name << ": " << check.found;
  }
  static void expect(const Checks& checks, const std::string& name, Verdict verdict, const std::string& found) {
    ASSERT_EQ(checks.size(), 1u);
    EXPECT_EQ(checks[0].name, name);
    EXPECT_EQ(checks[0].verdict, verdict);
    EXPECT_NE(checks[0].found.find(found), std::string::npos) << checks[0].found;
    EXPECT_FALSE(checks[0].advice.empty());
  }

 private:
  ::flagos::testing::TemporaryFolder folder_;
};

class DoctorNode : public DoctorRoot {
 protected:
  // A node where all is well.
  DoctorNode() {
    write("run/systemd/system/x", "");
    write("run/systemd/timesync/synchronized", "");
    write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
    rooms["/var/lib/flagos"] = {.free = 1ull << 30, .total = 1ull << 40, .files_free = 9, .files_total = 10};
    node.root = root();
    node.folders = {"/var/lib/flagos", "/none"};
    node.room = [this](const std::string& folder) {
      return rooms.contains(folder) ? std::optional(rooms[folder]) : std::nullopt;
    };
    node.built = absl::FromUnixSeconds(1'700'000'000);
    node.now = node.built + absl::Hours(1);
  }
  Checks check() {
    Checks checks;
    CheckNodeState(node, checks);
    return checks;
  }

  NodeState node;
  std::map<std::string, Room> rooms;
};

TEST_F(DoctorNode, SaysNothingWhereAllIsWell) { expect_silent(check()); }

TEST_F(DoctorNode, Cgroups) {
  write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io hugememory pids\n");
  expect(check(), "cgroups", Verdict::kWarn, "no memory");
  fs::remove(root() / "sys/fs/cgroup/cgroup.controllers");
  expect(check(), "cgroups", Verdict::kWarn, "version 2");
  fs::remove_all(root() / "run/systemd/system");
  expect_silent(check());
}

TEST_F(DoctorNode, Disks) {
  Room& room = rooms["/var/lib/flagos"];
  room.free = 32 << 20;
  expect(check(), "disk of /var/lib/flagos", Verdict::kWarn, "32MiB of 1TiB");
  room.free = 0;
  expect(check(), "disk of /var/lib/flagos", Verdict::kFail, "0B");
  room.free = 1ull << 30;
  room.files_free = 0;
  expect(check(), "disk of /var/lib/flagos", Verdict::kFail, "another file");
  room.files_total = 0;
  expect_silent(check());
}

TEST_F(DoctorNode, Clock) {
  node.now = absl::FromUnixSeconds(0);
  expect(check(), "clock", Verdict::kFail, "1970-01-01");
  node.now = node.built - absl::Hours(23);
  expect_silent(check());
  fs::remove(root() / "run/systemd/timesync/synchronized");
  expect(check(), "clock", Verdict::kWarn, "timesyncd");
  fs::remove(root() / "run/systemd/timesync");
  expect_silent(check());
}

class DoctorService : public DoctorRoot {
 protected:
  // An installed service.
  DoctorService() {
    write("etc/group", "root:x:0:\nflagosd:x:998:\nflagos:x:" + std::to_string(::getgid()) + ":alice\n");
    write("lib/systemd/system/flagosd.service", "[Service]\n");
    write("lib/systemd/system/flagosd.socket", "[Socket]\n");
    write("etc/systemd/system/flagosd.service.d/override.conf", "[Service]\n");
    write("run/flagos/x", "");
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    std::strncpy(address.sun_path, (root().string() + kSocket).c_str(), sizeof address.sun_path - 1);
    socket_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    mode(0660);
  }
  void mode(mode_t bits) { ::chmod((root().string() + kSocket).c_str(), bits); }
  Checks check(bool system = true) {
    Checks checks;
    CheckServiceFiles({.root = root(), .socket = kSocket, .system = system}, checks);
    return checks;
  }

  static constexpr const char* kSocket = "/run/flagos/flagosd.sock";
  UniqueFd socket_;
};

TEST_F(DoctorService, SaysNothingWhereAllIsWell) {
  expect_silent(check());
  fs::remove(root() / "run/flagos/flagosd.sock");
  expect_silent(check());  // whether it is there is another check's
}

TEST_F(DoctorService, TheSocketsMode) {
  mode(0666);
  expect(check(), "socket", Verdict::kWarn, "mode 0666: every user");
  mode(0600);
  expect(check(), "socket", Verdict::kWarn, "its group may not");
  expect(check(false), "socket", Verdict::kWarn, "its group may not");
}

TEST_F(DoctorService, AContainersSocketIsForEverybody) {
  mode(0666);
  write("run/flagos/token", "");
  expect_silent(check());
}

TEST_F(DoctorService, TheSocketsGroup) {
  write("etc/group", "flagos:x:4242:\n");
  expect(check(), "socket's group", Verdict::kWarn, "not to flagos (4242)");
  expect_silent(check(false));
  write("etc/group", "other:x:4242:\n");
  expect_silent(check());
}

TEST_F(DoctorService, UnitsThatHideThePackages) {
  write("etc/systemd/system/flagosd.service", "[Service]\nUser=me\n");
  expect(check(), "flagosd.service", Verdict::kWarn, "stands before the package's /lib/systemd/system/flagosd.service");
  fs::remove(root() / "lib/systemd/system/flagosd.service");
  expect_silent(check());  // there is no package: it is the unit
  write("lib/systemd/system/flagosd.service", "[Service]\n");
  fs::remove(root() / "etc/systemd/system/flagosd.service");
  fs::create_symlink("/dev/null", root() / "etc/systemd/system/flagosd.service");
  expect(check(), "flagosd.service", Verdict::kWarn, "masks it");
  fs::remove(root() / "etc/systemd/system/flagosd.service");
  fs::create_symlink(root() / "lib/systemd/system/flagosd.service", root() / "etc/systemd/system/flagosd.service");
  expect_silent(check());
}

class DoctorRunning : public DoctorRoot {
 protected:
  // A flagosd that was started 100 s after the boot, at 1000 s.
  DoctorRunning() {
    write("proc/stat", "cpu 1 2 3\nbtime 1000\n");
    write("proc/77/comm", "flagosd\n");
    write("proc/77/stat", "77 (flagosd) S 1 1 1 0 -1 1 0 0 0 0 0 0 0 0 20 0 4 0 " +
                              std::to_string(100 * ::sysconf(_SC_CLK_TCK)) + " 1 2 3\n");
    program("/usr/lib/flagos/bin/flagosd");
  }
  void program(const std::string& path) {
    fs::remove(root() / "proc/77/exe");
    fs::create_symlink(path, root() / "proc/77/exe");
  }
  Checks check(int64_t installed, pid_t pid = 77) {
    Checks checks;
    CheckRunningDaemon({.root = root(),
                        .pid = pid,
                        .installed = "/usr/lib/flagos/bin/flagosd",
                        .installed_since = absl::FromUnixSeconds(installed)},
                       checks);
    return checks;
  }
};

TEST_F(DoctorRunning, SaysNothingOfTheInstalledOne) {
  expect_silent(check(500));
  expect_silent(check(1101));
  expect_silent(check(5000, 78));  // it runs elsewhere
}

TEST_F(DoctorRunning, AProgramThatIsGone) {
  program("/usr/lib/flagos/bin/flagosd (deleted)");
  expect(check(500), "running flagosd", Verdict::kWarn, "replaced or removed");
  write("proc/77/comm", "python\n");
  expect_silent(check(500));
}

TEST_F(DoctorRunning, AProgramOlderThanTheInstalledOne) {
  expect(check(1200), "running flagosd", Verdict::kWarn, "started before /usr/lib/flagos/bin/flagosd was installed");
  program("/home/me/build/bin/flagosd");
  expect_silent(check(1200));
  fs::remove(root() / "proc/77/exe");  // another user's: not ours to read
  expect(check(1200), "running flagosd", Verdict::kWarn, "started before");
}

TEST(DoctorPeer, AnOlderKernelIsNoFault) {
  EXPECT_EQ(PeerCheck(false).verdict, Verdict::kOk);
  EXPECT_NE(PeerCheck(false).found.find("no SO_PEERPIDFD"), std::string::npos);
  EXPECT_EQ(PeerCheck(true).found.find("no SO_PEERPIDFD"), std::string::npos);
}

}  // namespace
}  // namespace flagos::ctl
