// SPDX-License-Identifier: Apache-2.0
// What doctor says of machines with and without NVIDIA GPUs; none is needed.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "server/common/fd.h"
#include "server/ctl/doctor/library.h"
#include "server/ctl/doctor/nvidia.h"
#include "server/ctl/doctor/reading.h"
#include "tests/support/daemon_process.h"
#include "vendors/cpu/identity.h"

namespace flagos::ctl {
namespace {

namespace fs = std::filesystem;

constexpr char kModule[] =
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (root@host)\n";

class Nvidia : public ::testing::Test {
 protected:
  // A machine where all is well.
  Nvidia() {
    folder_.write("proc/driver/nvidia/version", kModule);
    folder_.write("dev/nvidiactl", "");
    folder_.write("dev/nvidia0", "");
    machine_.root = folder_.path();
    machine_.load = [this](const std::string& library) {
      return missing_.contains(library) ? absl::NotFoundError("cannot open " + library) : absl::OkStatus();
    };
    DeviceReading gpu;
    gpu.uuid = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 1, 2, 3, 4, 5, 6, 7, 8};
    gpu.compute_mode = "default";
    machine_.readings = std::vector<DeviceReading>{gpu, DeviceReading()};
  }
  // The one check that is not well; its name is empty where all are, and "several" where it is not alone.
  Check wrong() const {
    Checks checks;
    CheckNvidiaMachine(machine_, checks);
    Check found;
    for (const Check& check : checks) {
      EXPECT_EQ(check.verdict == Verdict::kOk, check.advice.empty()) << check.name << ": " << check.found;
      if (check.verdict == Verdict::kOk) continue;
      const std::string name = found.name.empty() ? check.name : "several";
      found = check;
      found.name = name;
    }
    return found;
  }
  void expect(const std::string& name, Verdict verdict, const std::string& found) const {
    const Check check = wrong();
    EXPECT_EQ(check.name, name) << check.found;
    EXPECT_EQ(check.verdict, verdict);
    EXPECT_NE(check.found.find(found), std::string::npos) << check.found;
  }

  testing::TemporaryFolder folder_;
  std::set<std::string> missing_;
  NvidiaMachine machine_;
};

TEST_F(Nvidia, IsSilentWhereAllIsWell) {
  EXPECT_EQ(wrong().name, "") << wrong().found;
  machine_.visible = "0,GPU-01234567-89ab, 1";
  EXPECT_EQ(wrong().name, "") << wrong().found;
}

TEST_F(Nvidia, TellsADriverThatIsOldOrAbsent) {
  folder_.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug\n");
  expect("NVIDIA driver", Verdict::kFail, "535.104.05 is too old");
  fs::remove(folder_.path() + "/proc/driver/nvidia/version");
  expect("NVIDIA driver", Verdict::kFail, "there is none");
  machine_.readings->front().driver = "590.10";
  EXPECT_EQ(wrong().name, "") << "NVML says it where /proc does not: " << wrong().found;
  machine_.readings->front().driver = "570.10";
  expect("NVIDIA driver", Verdict::kFail, "570.10 is too old");
}

TEST_F(Nvidia, TellsLibrariesThatAreMissing) {
  missing_ = {"libcuda.so.1"};
  expect("libcuda.so.1", Verdict::kFail, "cannot open libcuda.so.1");
  missing_ = {"libnvidia-ml.so.1"};
  expect("libnvidia-ml.so.1", Verdict::kWarn, "cannot open");
  machine_.readings = absl::UnavailableError("for that reason");
  expect("libnvidia-ml.so.1", Verdict::kWarn, "cannot open");  // once is enough
}

TEST_F(Nvidia, NeedsNcclForSeveralDevicesOnly) {
  missing_ = {"libnccl.so.2"};
  expect("libnccl.so.2", Verdict::kWarn, "cannot open");
}

TEST_F(Nvidia, TellsNodesThatAreMissingOrClosed) {
  fs::remove(folder_.path() + "/dev/nvidia0");
  expect("/dev/nvidia0", Verdict::kFail, "is not there");
  fs::create_symlink("nvidia0", folder_.path() + "/dev/nvidia0");  // leads nowhere, for root too
  expect("/dev/nvidia0", Verdict::kFail, "cannot open it");
  fs::remove(folder_.path() + "/dev/nvidia0");
  folder_.write("dev/nvidia3", "");
  EXPECT_EQ(wrong().name, "") << "a container may have any GPU: " << wrong().found;
  fs::remove(folder_.path() + "/dev/nvidiactl");
  expect("/dev/nvidiactl", Verdict::kFail, "is not there");
}

TEST_F(Nvidia, TellsComputeModesThatKeepExecutorsOut) {
  machine_.readings->back().compute_mode = "exclusive process";
  expect("GPU 1", Verdict::kWarn, "only one executor");
  machine_.readings->back().compute_mode = "prohibited";
  expect("GPU 1", Verdict::kFail, "no program can compute");
}

TEST_F(Nvidia, TellsWhyThereAreNoFigures) {
  machine_.readings = absl::UnavailableError("figures of GPUs cannot be read: a reason");
  machine_.visible = "7";
  expect("figures of GPUs", Verdict::kWarn, "a reason");
}

TEST_F(Nvidia, TellsVisibleDevicesThatDoNotExist) {
  for (const char* const visible : {"2", "0,2,1", "GPU-99", "GPU-", "-1", "0,,1", "none"}) {
    machine_.visible = visible;
    expect("CUDA_VISIBLE_DEVICES", Verdict::kWarn, "names \"");
  }
  machine_.visible = "";
  expect("CUDA_VISIBLE_DEVICES", Verdict::kWarn, "no GPU is visible");
  machine_.visible = "MIG-0123";
  EXPECT_EQ(wrong().name, "") << wrong().found;
}

TEST(Library, IsLoadedWhereItCannotHarm) {
  EXPECT_TRUE(TryLoad("libc.so.6").ok());
  const absl::Status absent = TryLoad("libflagos-no-such.so.1");
  EXPECT_EQ(absent.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(absent.message().find("libflagos-no-such.so.1"), absl::string_view::npos) << absent;
  const absl::Status crash = TryLoad(FLAGOS_CRASHING_LIBRARY);
  EXPECT_EQ(crash.code(), absl::StatusCode::kAborted) << crash;
}

TEST(Reading, IsTakenWithoutADaemon) {
  const std::string build = fs::path(OwnExecutable()).parent_path().parent_path();
  const auto readings = TakeReading(build, "cpu");
  ASSERT_TRUE(readings.ok()) << readings.status();
  ASSERT_EQ(readings->size(), 1u);
  EXPECT_EQ(readings->front().uuid, cpu::UuidOf(0));
  const auto unwatched = TakeReading(build, "null");
  EXPECT_NE(unwatched.status().message().find("libflagos_null_monitor.so"), absl::string_view::npos);
  EXPECT_FALSE(TakeReading("/nonexistent", "cpu").ok());
}

}  // namespace
}  // namespace flagos::ctl
