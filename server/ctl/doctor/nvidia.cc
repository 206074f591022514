// SPDX-License-Identifier: Apache-2.0
#include "server/ctl/doctor/nvidia.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "server/common/fd.h"
#include "server/ctl/doctor/library.h"
#include "server/ctl/doctor/reading.h"

namespace flagos::ctl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVendor = "cuda";
constexpr const char* kNvml = "libnvidia-ml.so.1";
constexpr int kOldestDriver = 580;  // for CUDA 13

// "580.65.06" of /proc/driver/nvidia/version, or as NVML says it; empty: neither does.
std::string DriverVersion(const NvidiaMachine& machine) {
  std::ifstream file(machine.root + "/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  // "NVRM version: NVIDIA UNIX ... Kernel Module for x86_64  580.65.06  Release Build ..."
  for (const auto word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
    int major = 0;
    const std::vector<std::string> parts = absl::StrSplit(word, '.');
    if (parts.size() >= 2 && absl::SimpleAtoi(parts[0], &major) && major > 100) return std::string(word);
  }
  if (!machine.readings.ok() || machine.readings->empty()) return {};
  return machine.readings->front().driver.value_or("");
}

void CheckDriver(const NvidiaMachine& machine, Checks& checks) {
  const std::string version = DriverVersion(machine);
  int major = 0;
  if (!absl::SimpleAtoi(version.substr(0, version.find('.')), &major)) {
    checks.push_back({"NVIDIA driver", Verdict::kFail, "there is none: its kernel module is not loaded",
                      "install the NVIDIA driver, 580 or later, and load it: modprobe nvidia"});
  } else if (major < kOldestDriver) {
    checks.push_back({"NVIDIA driver", Verdict::kFail, absl::StrCat(version, " is too old for CUDA 13"),
                      "install version 580 or later"});
  } else {
    checks.push_back({"NVIDIA driver", Verdict::kOk, version, ""});
  }
}

struct Library {
  const char* name;
  Verdict without;
  const char* advice;
};

void CheckLibraries(const NvidiaMachine& machine, Checks& checks) {
  static constexpr Library kLibraries[] = {
      {"libcuda.so.1", Verdict::kFail,
       "install the NVIDIA driver's libraries; in a container, give it the GPU (docker run --gpus all)"},
      {kNvml, Verdict::kWarn,
       "without it flagosctl shows no figures of GPUs; it comes with the driver (NVIDIA_DRIVER_CAPABILITIES=utility)"},
      {"libnccl.so.2", Verdict::kWarn,
       "needed only for jobs on several devices; a PyTorch from pip has one of its own, which is not looked at here"},
  };
  for (const Library& library : kLibraries) {
    const absl::Status status = machine.load(library.name);
    if (status.ok()) {
      checks.push_back({library.name, Verdict::kOk, "can be loaded", ""});
    } else {
      checks.push_back({library.name, library.without, std::string(status.message()), library.advice});
    }
  }
}

// Whether this user can open a device node.
void CheckNode(const NvidiaMachine& machine, const std::string& node, Checks& checks) {
  if (::access((machine.root + node).c_str(), R_OK | W_OK) == 0) {
    checks.push_back({node, Verdict::kOk, "can be opened", ""});
  } else if (errno == ENOENT) {
    checks.push_back({node, Verdict::kFail, "is not there",
                      "run nvidia-smi once as root, which makes it; in a container, give it the GPU"});
  } else {
    checks.push_back({node, Verdict::kFail, absl::StrCat("this user cannot open it: ", std::strerror(errno)),
                      "let flagosd's user read and write it (its group, or the driver's NVreg_DeviceFileMode)"});
  }
}

// "/dev/nvidia0" and so on: a container may have any of them.
std::vector<std::string> GpuNodes(const NvidiaMachine& machine) {
  constexpr absl::string_view kPrefix = "nvidia";
  std::error_code error;
  std::vector<std::string> nodes;
  for (fs::directory_iterator at(machine.root + "/dev", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    int number = 0;
    if (absl::StartsWith(name, kPrefix) && absl::SimpleAtoi(name.substr(kPrefix.size()), &number)) {
      nodes.push_back("/dev/" + name);
    }
  }
  std::ranges::sort(nodes);
  return nodes;
}

void CheckNodes(const NvidiaMachine& machine, Checks& checks) {
  CheckNode(machine, "/dev/nvidiactl", checks);
  std::vector<std::string> nodes = GpuNodes(machine);
  if (nodes.empty()) nodes.emplace_back("/dev/nvidia0");
  for (const std::string& node : nodes) CheckNode(machine, node, checks);
}

void CheckModes(const NvidiaMachine& machine, Checks& checks) {
  if (!machine.readings.ok()) {
    const auto says_why = [](const Check& check) { return check.name == kNvml && check.verdict != Verdict::kOk; };
    if (std::ranges::any_of(checks, says_why)) return;
    checks.push_back({"figures of GPUs", Verdict::kWarn, std::string(machine.readings.status().message()),
                      "flagosd works without them, and says the same in its log"});
    return;
  }
  for (size_t i = 0; i < machine.readings->size(); ++i) {
    const std::string mode = (*machine.readings)[i].compute_mode.value_or("default");
    if (mode == "default") continue;
    const bool exclusive = absl::StartsWith(mode, "exclusive");
    checks.push_back({absl::StrCat("GPU ", i), exclusive ? Verdict::kWarn : Verdict::kFail,
                      absl::StrCat("its compute mode is ", mode, ": ",
                                   exclusive ? "only one executor can use it at a time, the warm one included"
                                             : "no program can compute on it"),
                      absl::StrCat("nvidia-smi -i ", i, " -c DEFAULT")});
  }
}

// "gpu-01234567-...", in small letters.
std::string UuidText(const DeviceUuid& uuid) {
  std::string text = "gpu-";
  for (size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    absl::StrAppend(&text, absl::Hex(uuid[i], absl::kZeroPad2));
  }
  return text;
}

// Whether CUDA finds a GPU of that number, or with a UUID that begins so.
bool Names(const std::vector<DeviceReading>& gpus, const std::string& word) {
  if (absl::StartsWithIgnoreCase(word, "mig-")) return true;  // instances are not told apart here
  size_t number = 0;
  if (absl::SimpleAtoi(word, &number)) return number < gpus.size();
  const std::string wanted = absl::AsciiStrToLower(word);
  return wanted.size() > 4 && std::ranges::any_of(gpus, [&](const DeviceReading& gpu) {
           return absl::StartsWith(UuidText(gpu.uuid), wanted);
         });
}

void CheckVisible(const NvidiaMachine& machine, Checks& checks) {
  constexpr const char* kVariable = "CUDA_VISIBLE_DEVICES";
  if (!machine.visible || !machine.readings.ok()) return;
  if (machine.visible->empty()) {
    checks.push_back({kVariable, Verdict::kWarn, "is set to nothing: no GPU is visible", "unset it, or name GPUs"});
    return;
  }
  for (const auto part : absl::StrSplit(*machine.visible, ',')) {
    const std::string word(absl::StripAsciiWhitespace(part));
    if (Names(*machine.readings, word)) continue;
    checks.push_back({kVariable, Verdict::kWarn,
                      absl::StrCat("names \"", word, "\", which is none of the GPUs here (", machine.readings->size(),
                                   "): CUDA ignores it and what comes after it"),
                      "correct it where flagosd is started; nvidia-smi -L lists the GPUs"});
    return;
  }
  checks.push_back({kVariable, Verdict::kOk, *machine.visible, ""});
}

}  // namespace

void CheckNvidiaMachine(const NvidiaMachine& machine, Checks& checks) {
  CheckDriver(machine, checks);
  CheckLibraries(machine, checks);
  CheckNodes(machine, checks);
  CheckModes(machine, checks);
  CheckVisible(machine, checks);
}

void CheckNvidia(Checks& checks) {
  const fs::path folder = fs::path(OwnExecutable()).parent_path().parent_path();
  std::error_code hidden;
  if (!fs::exists(folder / "vendors" / kVendor / "manifest.toml", hidden)) return;
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  CheckNvidiaMachine({.root = "",
                      .visible = visible == nullptr ? std::nullopt : std::optional<std::string>(visible),
                      .load = TryLoad,
                      .readings = TakeReading(folder, kVendor)},
                     checks);
}

}  // namespace flagos::ctl
