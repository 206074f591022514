// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "server/ctl/commands.h"
#include "server/ctl/runtime/install.h"
#include "tests/support/wheels.h"

namespace flagos::ctl {
namespace {

namespace fs = std::filesystem;
using executor::RuntimeState;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CtlRuntimeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/flagos-runtime-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder = name;
    root = folder / "runtimes";
  }
  void TearDown() override { fs::remove_all(folder); }

  absl::StatusOr<executor::Runtime> install(const fs::path& from, const std::string& name = "cpu",
                                            const std::string& version = "2.13.0") const {
    return InstallRuntime({root, name, version, from});
  }
  // Why it is refused; afterwards nothing is left.
  std::string refusal(const fs::path& from, const std::string& name = "cpu") const {
    const auto runtime = install(from, name);
    EXPECT_FALSE(runtime.ok());
    EXPECT_THAT(entries(), IsEmpty());
    EXPECT_FALSE(fs::exists(folder / "evil.so"));
    return std::string(runtime.status().message());
  }
  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(root)) names.push_back(entry.path().filename());
    return names;
  }
  struct Answer {
    int code;
    std::string out, err;
  };
  Answer run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--root", root, "--vendor-dir", folder / "vendors"});
    std::ostringstream out, err;
    const int code = ctl::Run(arguments, out, err, false);
    return {code, out.str(), err.str()};
  }
  void add_vendor() const {
    fs::create_directories(folder / "vendors" / "cpu");
    std::ofstream(folder / "vendors" / "cpu" / "manifest.toml")
        << "name = \"cpu\"\nlibrary = \"x.so\"\n[libtorch]\nversions = [\"2.13.0\"]\n";
  }

  fs::path folder, root;
};

TEST_F(CtlRuntimeTest, InstallsTheLibrariesOfAWheel) {
  const auto wheel = test::WriteWheel(folder, test::SmallTorch());
  const mode_t mask = ::umask(0);
  const auto runtime = install(wheel);
  ::umask(mask);
  ASSERT_TRUE(runtime.ok()) << runtime.status();
  EXPECT_EQ(runtime->id(), "cpu-2.13.0+cpu");
  EXPECT_EQ(runtime->state, RuntimeState::kOk) << runtime->problem;
  EXPECT_EQ(runtime->source, wheel.string());
  EXPECT_TRUE(fs::exists(runtime->libtorch() / "libgomp.so.1"));
  EXPECT_FALSE(fs::exists(runtime->folder / "lib" / "torch" / "__init__.py"));
  EXPECT_THAT(entries(), ::testing::ElementsAre("cpu-2.13.0+cpu"));
  EXPECT_THAT(*VerifyRuntime(*runtime), IsEmpty());
}

TEST_F(CtlRuntimeTest, InstallsFromAnEnvironmentAndFromAFolderOfWheels) {
  test::WriteEnvironment(folder / "venv", test::SmallTorch());
  EXPECT_TRUE(install(folder / "venv").ok());
  auto torch = test::SmallTorch();
  torch.version = "2.13.0+cu130";
  torch.files["torch/lib/libtorch_cuda.so"] = "cuda";
  test::WriteWheel(folder / "wheels", torch);
  test::WriteWheel(folder / "wheels", {"nvidia_nccl_cu13", "2.27", {{"nvidia/nccl/lib/libnccl.so.2", "nccl"}}});
  const auto runtime = install(folder / "wheels", "cuda");
  ASSERT_TRUE(runtime.ok()) << runtime.status();
  EXPECT_TRUE(fs::exists(runtime->folder / "lib/nvidia/nccl/lib/libnccl.so.2"));
  EXPECT_THAT(*VerifyRuntime(*runtime), IsEmpty());
}

TEST_F(CtlRuntimeTest, ADryRunInstallsAndRemovesNothing) {
  const auto wheel = test::WriteWheel(folder, test::SmallTorch());
  Answer answer = run({"runtime", "install", "cpu", "--version", "2.13.0", "--from", wheel, "--dry-run"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, ::testing::StartsWith("would install cpu-2.13.0+cpu into " + root.string()));
  EXPECT_FALSE(fs::exists(root));
  answer = run({"runtime", "install", "cpu", "--version", "2.12.0", "--from", wheel, "--dry-run"});
  EXPECT_EQ(answer.code, 6) << "as without --dry-run";

  ASSERT_TRUE(install(wheel).ok());
  answer = run({"runtime", "install", "cpu", "--version", "2.13.0", "--from", wheel, "--dry-run"});
  EXPECT_EQ(answer.code, 6) << "it is there";
  answer = run({"runtime", "remove", "cpu", "--dry-run"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_EQ(answer.out, "would remove cpu-2.13.0+cpu\n");
  EXPECT_THAT(entries(), ::testing::ElementsAre("cpu-2.13.0+cpu"));
}

TEST_F(CtlRuntimeTest, RefusesAWrongHash) {
  auto torch = test::SmallTorch();
  torch.wrong_hash_of = "torch/lib/libgomp.so.1";
  EXPECT_THAT(refusal(test::WriteWheel(folder, torch)), HasSubstr("the hash of torch/lib/libgomp.so.1"));
  test::WriteEnvironment(folder / "venv", torch);
  EXPECT_THAT(refusal(folder / "venv"), HasSubstr("the hash of torch/lib/libgomp.so.1"));
}

TEST_F(CtlRuntimeTest, RefusesAPathThatLeavesTheFolder) {
  auto torch = test::SmallTorch();
  torch.files["torch/lib/../../../../../../evil.so"] = "evil";
  EXPECT_THAT(refusal(test::WriteWheel(folder, torch)), HasSubstr("outside the runtime's folder"));
}

TEST_F(CtlRuntimeTest, LeavesOutWhatRecordDoesNotHave) {
  auto torch = test::SmallTorch();
  torch.files["torch/lib/libextra.so"] = torch.unrecorded = "torch/lib/libextra.so";
  const auto runtime = install(test::WriteWheel(folder, torch));
  ASSERT_TRUE(runtime.ok()) << runtime.status();
  EXPECT_FALSE(fs::exists(runtime->libtorch() / "libextra.so"));
}

TEST_F(CtlRuntimeTest, RefusesWhatIsNoWheelOrCutShort) {
  std::ofstream(folder / "torch.whl") << "no zip";
  EXPECT_THAT(refusal(folder / "torch.whl"), HasSubstr("is no wheel"));
  const auto wheel = test::WriteWheel(folder, test::SmallTorch());
  fs::resize_file(wheel, fs::file_size(wheel) / 2);
  EXPECT_THAT(refusal(wheel), HasSubstr("cut short"));
  fs::create_directories(folder / "empty");
  EXPECT_THAT(refusal(folder / "empty"), HasSubstr("there is no torch"));
}

TEST_F(CtlRuntimeTest, RefusesAnotherVersionOrKind) {
  const auto wheel = test::WriteWheel(folder, test::SmallTorch());
  EXPECT_THAT(refusal(wheel, "cuda"), HasSubstr("without CUDA"));
  const auto other = install(wheel, "cpu", "2.12.0");
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("it is torch 2.13.0+cpu, and 2.12.0 is wanted"));
}

// A process that is killed in the middle leaves nothing in place, and the next installation clears what it left.
TEST_F(CtlRuntimeTest, LeavesNothingInPlaceWhenKilled) {
  auto torch = test::SmallTorch();
  torch.files["torch/lib/libtorch_cpu.so"] = std::string(128 << 20, 'x');
  const auto wheel = test::WriteWheel(folder, torch);
  const pid_t child = ::fork();
  if (child == 0) {
    (void)install(wheel);
    ::_exit(0);
  }
  const auto began = [&] {
    for (std::error_code error; const auto& entry : fs::directory_iterator(root, error)) {
      if (fs::exists(entry.path() / "lib" / "torch" / "lib" / "libtorch_cpu.so", error)) return true;
    }
    return false;
  };
  while (!began()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status)) << "it was faster than this test";
  EXPECT_THAT(executor::ListRuntimes(root), IsEmpty());
  EXPECT_EQ(entries().size(), 1u);
  fs::remove(wheel);
  ASSERT_TRUE(install(test::WriteWheel(folder, test::SmallTorch())).ok());
  EXPECT_THAT(entries(), ::testing::ElementsAre("cpu-2.13.0+cpu"));
}

TEST_F(CtlRuntimeTest, OneOfTwoAtOnceIsInPlace) {
  const auto wheel = test::WriteWheel(folder, test::SmallTorch());
  absl::Status statuses[2];
  {
    std::vector<std::jthread> threads;
    for (absl::Status& status : statuses) threads.emplace_back([&] { status = install(wheel).status(); });
  }
  EXPECT_NE(statuses[0].ok(), statuses[1].ok());
  const absl::Status& slower = statuses[0].ok() ? statuses[1] : statuses[0];
  EXPECT_EQ(slower.code(), absl::StatusCode::kAlreadyExists) << slower;
  EXPECT_THAT(entries(), ::testing::ElementsAre("cpu-2.13.0+cpu"));
  EXPECT_THAT(*VerifyRuntime(executor::ListRuntimes(root).at(0)), IsEmpty());
}

TEST_F(CtlRuntimeTest, VerifyTellsWhatChanged) {
  const auto runtime = install(test::WriteWheel(folder, test::SmallTorch()));
  ASSERT_TRUE(runtime.ok());
  std::ofstream(runtime->libtorch() / "libc10.so", std::ios::app) << "!";
  std::ofstream(runtime->libtorch() / "libmore.so") << "new";
  fs::remove(runtime->libtorch() / "libgomp.so.1");
  EXPECT_THAT(*VerifyRuntime(*runtime), ::testing::UnorderedElementsAre("lib/torch/lib/libc10.so has changed",
                                                                        "lib/torch/lib/libmore.so was added",
                                                                        "lib/torch/lib/libgomp.so.1 is missing"));
  EXPECT_EQ(run({"runtime", "verify"}).code, 1);
}

TEST_F(CtlRuntimeTest, ListTellsStateAndVendors) {
  add_vendor();
  const auto wheel = test::WriteWheel(folder, test::SmallTorch());
  const Answer installed = run({"runtime", "install", "cpu", "--from", wheel});
  ASSERT_EQ(installed.code, 0) << installed.err;
  Json row = Json::parse(run({"runtime", "list", "-o", "json"}).out).at("items").at(0);
  EXPECT_EQ(row.at("state"), "ok");
  EXPECT_EQ(row.at("vendors"), Json::array({"cpu"}));
  EXPECT_GT(row.at("size"), 3 << 20);
  EXPECT_EQ(run({"runtime", "verify", "cpu"}).code, 0);

  fs::permissions(executor::ListRuntimes(root).at(0).libtorch() / "libc10.so", fs::perms::others_write,
                  fs::perm_options::add);
  EXPECT_THAT(run({"runtime", "list"}).out, HasSubstr("writable by others"));
  fs::remove(root / "cpu-2.13.0+cpu" / "runtime.toml");
  EXPECT_THAT(run({"runtime", "list"}).out, HasSubstr("incomplete"));
}

TEST_F(CtlRuntimeTest, SaysWhatIsWrongWithACommand) {
  EXPECT_EQ(run({"runtime", "install", "tpu"}).code, 2);
  EXPECT_EQ(run({"runtime", "install", "cpu", "--from", folder}).code, 2) << "no vendor names a version";
  EXPECT_EQ(run({"runtime", "remove", "cpu"}).code, 4);
  EXPECT_EQ(run({"runtime", "list"}).code, 0) << "none is no error";
}

TEST_F(CtlRuntimeTest, WithoutPythonItAsksForAFile) {
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", "/nonexistent", 1);
  const Answer answer = run({"runtime", "install", "cpu", "--version", "2.13.0"});
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(answer.code, 6);
  EXPECT_THAT(answer.err, HasSubstr("--from"));
  EXPECT_THAT(entries(), IsEmpty());
}

TEST_F(CtlRuntimeTest, RemoveIsRefusedWhileAProcessHasItLoaded) {
  const auto runtime = install(test::WriteWheel(folder, test::SmallTorch()));
  ASSERT_TRUE(runtime.ok());
  const int fd = ::open((runtime->libtorch() / "libgomp.so.1").c_str(), O_RDONLY | O_CLOEXEC);
  void* const mapping = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
  ::close(fd);
  ASSERT_NE(mapping, MAP_FAILED);
  const Answer refused = run({"runtime", "remove", "cpu"});
  EXPECT_EQ(refused.code, 6);
  EXPECT_THAT(refused.err, HasSubstr(std::to_string(::getpid())));
  EXPECT_TRUE(fs::exists(runtime->folder));

  ::munmap(mapping, 4096);
  EXPECT_EQ(run({"runtime", "remove", "cpu"}).code, 0);
  EXPECT_THAT(entries(), IsEmpty());
}

}  // namespace
}  // namespace flagos::ctl
