// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "proto/socket/unix_socket.h"
#include "server/common/strings.h"
#include "server/daemon/clients/socket_file.h"
#include "tests/support/daemon_process.h"

namespace flagos::daemon {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class SocketFileTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/d.sock"; }
  testing::TemporaryFolder folder_;
};

TEST_F(SocketFileTest, IsForOwnerAndGroupWhateverTheUmask) {
  for (const mode_t mask : {0000, 0077, 0777}) {
    const mode_t before = ::umask(mask);
    const auto file = SocketFile::Create(path());
    ::umask(before);
    ASSERT_TRUE(file.ok()) << MessageOf(file.status());
    struct stat status {};
    ASSERT_EQ(::stat(path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0660u);
    EXPECT_TRUE(ConnectUnix(path()).ok());
  }
}

TEST_F(SocketFileTest, LeavesNothingBehind) {
  { const auto file = SocketFile::Create(path()); }
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(SocketFileTest, ASecondOwnerIsRefusedAndTheFirstNamed) {
  const auto first = SocketFile::Create(path());
  ASSERT_TRUE(first.ok());
  const auto second = SocketFile::Create(path());
  EXPECT_TRUE(absl::IsAlreadyExists(second.status()));
  EXPECT_EQ(MessageOf(second.status()), Cat("another flagosd, with pid ", ::getpid(), ", has the socket ", path(),
                                            "; stop it, or give this one a socket of its own (--socket)"));
  EXPECT_TRUE(ConnectUnix(path()).ok()) << "the first is untouched";
}

TEST_F(SocketFileTest, ReplacesTheSocketOfADeadOwner) {
  // As a process that was killed leaves it: a socket that nobody listens on, and a lock file that nobody locks.
  folder_.write("d.sock.lock", "4711\n");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = path();
  std::copy(name.begin(), name.end(), address.sun_path);
  {
    const UniqueFd dead(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ASSERT_FALSE(ConnectUnix(path()).ok());
  const auto file = SocketFile::Create(path());
  ASSERT_TRUE(file.ok()) << MessageOf(file.status());
  EXPECT_TRUE(ConnectUnix(path()).ok());
}

TEST_F(SocketFileTest, DoesNotReplaceWhatIsNoSocket) {
  folder_.write("d.sock", "precious");
  const auto file = SocketFile::Create(path());
  EXPECT_THAT(MessageOf(file.status()), HasSubstr("is there and is no socket"));
  EXPECT_TRUE(fs::is_regular_file(path()));
}

TEST_F(SocketFileTest, DoesNotRemoveASocketThatTookItsPlace) {
  auto file = SocketFile::Create(path());
  ASSERT_TRUE(file.ok());
  fs::remove(path());
  folder_.write("d.sock", "another's");
  file->reset();
  EXPECT_TRUE(fs::exists(path()));
}

TEST_F(SocketFileTest, SaysWhatIsWrongWithThePath) {
  EXPECT_THAT(MessageOf(SocketFile::Create(folder_.path() + "/a/b/c.sock").status()),
              HasSubstr("No such file or directory"));
  EXPECT_THAT(MessageOf(SocketFile::Create(folder_.path() + "/" + std::string(120, 'x')).status()),
              HasSubstr("is too long"));
  const auto file = SocketFile::Create(folder_.path() + "/made/d.sock");
  EXPECT_TRUE(file.ok()) << "one folder is made";
}

}  // namespace
}  // namespace flagos::daemon
