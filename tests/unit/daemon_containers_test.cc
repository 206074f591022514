// SPDX-License-Identifier: Apache-2.0
// What a container is given, and which container a client is in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "server/daemon/clients/socket_file.h"
#include "server/daemon/containers/allocations.h"
#include "server/daemon/containers/cdi.h"
#include "server/daemon/containers/cgroup.h"
#include "server/daemon/sessions/lease.h"
#include "tests/support/daemon_process.h"

namespace flagos::daemon {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

TEST(Cgroup, IsThatOfTheUnifiedHierarchy) {
  EXPECT_EQ(*ParseCgroup("0::/system.slice/docker-1.scope\n"), "/system.slice/docker-1.scope");
  EXPECT_EQ(*ParseCgroup("12:memory:/other\n1:name=systemd:/x\n0::/user.slice\n"), "/user.slice");
  EXPECT_EQ(*ParseCgroup("0::/\n"), "/");
}

TEST(Cgroup, IsRefusedWhereTheKernelHidesIt) {
  EXPECT_THAT(std::string(ParseCgroup("0::/../../outside\n").status().message()), HasSubstr("cgroup namespace"));
  EXPECT_THAT(std::string(ParseCgroup("0::/..\n").status().message()), HasSubstr("cgroup namespace"));
  EXPECT_FALSE(ParseCgroup("").ok());
  EXPECT_FALSE(ParseCgroup("0::\n").ok());
  EXPECT_FALSE(ParseCgroup("4:memory:/x\n").ok());
  EXPECT_FALSE(CgroupOf(0).ok());
}

TEST(Cgroup, HoldsWhatIsBelowItAndNotItsNeighbour) {
  const Cgroup outer{"/a/b", 0};
  EXPECT_TRUE(IsWithin({"/a/b", 0}, outer));
  EXPECT_TRUE(IsWithin({"/a/b/c", 0}, outer));
  EXPECT_FALSE(IsWithin({"/a/bc", 0}, outer));
  EXPECT_FALSE(IsWithin({"/a", 0}, outer));
  EXPECT_FALSE(IsWithin({"/a/b", 7}, Cgroup{"/a/b", 8})) << "a later group of the same name";
}

TEST(Cdi, IsAMountForEachLeaseAndNoDeviceNode) {
  const auto json = nlohmann::json::parse(CdiSpecification({{"l1", "/run/flagos/containers/l1/mount"}, {"l2", "/x"}}));
  EXPECT_EQ(json["cdiVersion"], "0.6.0");
  EXPECT_EQ(json["kind"], "flagos.io/device");
  ASSERT_EQ(json["devices"].size(), 2u);
  EXPECT_EQ(json["devices"][0]["name"], "l1");
  const auto& edits = json["devices"][0]["containerEdits"];
  EXPECT_FALSE(edits.contains("deviceNodes"));
  EXPECT_EQ(edits["mounts"][0]["hostPath"], "/run/flagos/containers/l1/mount");
  EXPECT_EQ(edits["mounts"][0]["containerPath"], "/run/flagos");
}

TEST(Cdi, FileIsReplacedAsAWholeAndGoesWithTheLastLease) {
  const testing::TemporaryFolder folder;
  const std::string file = folder.path() + "/flagos.json";
  ASSERT_TRUE(WriteCdi(file, {{"l1", "/a"}}).ok());
  struct stat first {
  }, second{};
  ASSERT_EQ(::stat(file.c_str(), &first), 0);
  ASSERT_TRUE(WriteCdi(file, {{"l1", "/a"}, {"l2", "/b"}}).ok());
  ASSERT_EQ(::stat(file.c_str(), &second), 0);
  EXPECT_NE(first.st_ino, second.st_ino) << "a reader has the whole of one or of the other";
  EXPECT_EQ(second.st_mode & 0777u, 0644u);
  ASSERT_TRUE(WriteCdi(file, {}).ok());
  EXPECT_FALSE(fs::exists(file));
  EXPECT_TRUE(WriteCdi(file, {}).ok());
  EXPECT_THAT(std::string(WriteCdi("/no/such/folder/x.json", {{"l1", "/a"}}).message()), HasSubstr("[containers] cdi"));
}

class AllocationsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto socket = SocketFile::Create(Allocations::SocketOf(folder_.path()), 0666);
    ASSERT_TRUE(socket.ok()) << socket.status();
    socket_ = *std::move(socket);
  }
  const testing::TemporaryFolder folder_;
  std::unique_ptr<SocketFile> socket_;
  Allocations allocations_{folder_.path()};
};

TEST_F(AllocationsTest, AFolderHoldsTheSocketAndTheTokenAndNothingElse) {
  const auto made = allocations_.create("l1", ::geteuid(), "ab12");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(*made, allocations_.path_of("l1"));
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(*made)) names.insert(entry.path().filename());
  EXPECT_THAT(names, ::testing::ElementsAre("flagosd.sock", "token"));
  struct stat linked {
  }, original{};
  ASSERT_EQ(::stat((*made + "/flagosd.sock").c_str(), &linked), 0);
  ASSERT_EQ(::stat(Allocations::SocketOf(folder_.path()).c_str(), &original), 0);
  EXPECT_EQ(linked.st_ino, original.st_ino);
  std::string token;
  std::ifstream(*made + "/token") >> token;
  EXPECT_EQ(token, "ab12");
  EXPECT_EQ(fs::status(folder_.path() + "/l1").permissions(), fs::perms::owner_all) << "nobody else gets in";
  EXPECT_TRUE(allocations_.create("l1", ::geteuid(), "ab12").ok()) << "again, after a restart";
  allocations_.remove("l1");
  EXPECT_FALSE(fs::exists(folder_.path() + "/l1"));
}

TEST_F(AllocationsTest, TheLeasesUserGetsInAndOthersDoNot) {
  if (::geteuid() != 0) GTEST_SKIP() << "trying as other users takes root";
  ::chmod(folder_.path().c_str(), 0711);
  const auto made = allocations_.create("l1", 4711, "ab12");
  if (!made.ok() && made.status().message().find("not supported") != std::string::npos) {
    GTEST_SKIP() << "/tmp has no access control lists: " << made.status();
  }
  ASSERT_TRUE(made.ok()) << made.status();
  const auto reads = [&](uid_t uid) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (::setresgid(uid, uid, uid) != 0 || ::setresuid(uid, uid, uid) != 0) ::_exit(2);
      ::_exit(::access((*made + "/token").c_str(), R_OK) == 0 ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WEXITSTATUS(status) == 0;
  };
  EXPECT_TRUE(reads(4711));
  EXPECT_FALSE(reads(4712));
}

TEST_F(AllocationsTest, WhatIsLeftOfUnknownLeasesGoes) {
  ASSERT_TRUE(allocations_.create("l1", ::geteuid(), "ab").ok());
  ASSERT_TRUE(allocations_.create("l2", ::geteuid(), "cd").ok());
  allocations_.keep_only({"l2"});
  EXPECT_FALSE(fs::exists(folder_.path() + "/l1"));
  EXPECT_TRUE(fs::exists(allocations_.path_of("l2") + "/token"));
  EXPECT_TRUE(fs::exists(Allocations::SocketOf(folder_.path())));
}

TEST(ContainerLease, ATokenServesTheContainerThatUsedItFirst) {
  auto loop = EventLoop::Create();
  LeaseTable leases(**loop);
  Lease& lease = **leases.open("", 1000, {}, std::chrono::hours(1));
  const Cgroup first{"/machine/one", 0}, below{"/machine/one/init", 0}, other{"/machine/two", 0};
  EXPECT_FALSE(leases.find(kNoToken, first).ok());
  ASSERT_EQ(*leases.find(lease.token, first), &lease);
  EXPECT_TRUE(leases.find(lease.token, below).ok());
  EXPECT_THAT(std::string(leases.find(lease.token, other).status().message()), HasSubstr("another container's"));
  // As another flagosd has it.
  LeaseTable later(**loop);
  ASSERT_TRUE(later.restore(LeaseTable::Store(lease)).ok());
  EXPECT_FALSE(later.find(lease.token, other).ok());
  EXPECT_TRUE(later.find(lease.token, first).ok());
}

}  // namespace
}  // namespace flagos::daemon
