// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "server/ctl/doctor/check.h"

namespace flagos::ctl {
namespace {

namespace fs = std::filesystem;

const Check* Find(const Checks& checks, const std::string& name) {
  for (const Check& check : checks) {
    if (check.name == name) return &check;
  }
  return nullptr;
}

TEST(Doctor, EveryProblemComesWithAdvice) {
  Checks checks;
  CheckMachine(checks);
  CheckInstallation(checks);
  CheckNvidia(checks);
  CheckEnvironment(checks);
  EXPECT_GE(checks.size(), 6u);
  for (const Check& check : checks) {
    EXPECT_FALSE(check.name.empty() || check.found.empty());
    EXPECT_EQ(check.verdict == Verdict::kOk, check.advice.empty()) << check.name << ": " << check.found;
  }
}

TEST(Doctor, AFailureKeepsItsLines) {
  const Check check = FailedCheck("endpoint", absl::UnavailableError("what\nwhy\nwhat to do"));
  EXPECT_EQ(check.found, "what: why");
  EXPECT_EQ(check.advice, "what to do");
  EXPECT_EQ(FailedCheck("x", absl::UnavailableError("what")).found, "what");
}

class Installation : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/flagos-doctor-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder = name;
  }
  void TearDown() override { fs::remove_all(folder); }

  void write(const fs::path& path, const std::string& text, fs::perms mode = fs::perms::owner_all) {
    fs::create_directories((folder / path).parent_path());
    std::ofstream(folder / path) << text;
    fs::permissions(folder / path, mode);
  }
  Check vendor() {
    Checks checks;
    CheckInstallationIn(folder, checks);
    const Check* const check = Find(checks, "vendor acme");
    return check == nullptr ? Check{} : *check;
  }

  fs::path folder;
};

TEST_F(Installation, TellsWhatIsMissing) {
  Checks checks;
  CheckInstallationIn(folder, checks);
  EXPECT_EQ(Find(checks, "flagosd")->verdict, Verdict::kFail);
  EXPECT_EQ(Find(checks, "flagos-executor")->verdict, Verdict::kFail);
  EXPECT_EQ(Find(checks, "flagos-monitor")->verdict, Verdict::kFail);
  EXPECT_EQ(Find(checks, "vendors")->verdict, Verdict::kFail);
  write("bin/flagosd", "");
  checks.clear();
  CheckInstallationIn(folder, checks);
  EXPECT_EQ(Find(checks, "flagosd")->verdict, Verdict::kOk);
}

TEST_F(Installation, SurvivesWhatCannotBeLookedAt) {
  write("vendors/acme/manifest.toml", "name = \"acme\"\nlibrary = \"libflagos_acme.so\"\n");
  fs::create_symlink("loop", folder / "vendors" / "loop");
  fs::create_symlink("libflagos_acme.so", folder / "vendors" / "acme" / "libflagos_acme.so");
  EXPECT_EQ(vendor().verdict, Verdict::kFail);
  EXPECT_NE(vendor().found.find("libflagos_acme.so"), std::string::npos) << vendor().found;
}

TEST_F(Installation, TellsAMissingLibtorch) {
  const std::string manifest = "name = \"acme\"\nlibrary = \"libflagos_acme.so\"\n";
  write("vendors/acme/manifest.toml", manifest);
  EXPECT_EQ(vendor().verdict, Verdict::kFail) << "no library";
  write("vendors/acme/libflagos_acme.so", "");
  EXPECT_EQ(vendor().verdict, Verdict::kOk) << vendor().found;

  const fs::path torch = folder / "torch";
  write("vendors/acme/manifest.toml", manifest + "[libtorch]\npath = \"" + torch.string() + "\"\n");
  EXPECT_EQ(vendor().verdict, Verdict::kFail);
  EXPECT_NE(vendor().found.find("libc10.so"), std::string::npos) << vendor().found;
  EXPECT_NE(vendor().advice.find("[vendor.acme] libtorch"), std::string::npos) << vendor().advice;
  write("torch/libc10.so", "");
  write("torch/libtorch_cpu.so", "");
  EXPECT_EQ(vendor().verdict, Verdict::kOk) << vendor().found;

  write("vendors/acme/manifest.toml", "name = \n");
  EXPECT_EQ(vendor().verdict, Verdict::kFail) << "no TOML";
}

class DoctorRuntimes : public Installation {
 protected:
  static constexpr const char* kName = "cpu-2.13.0+cpu";

  void SetUp() override {
    Installation::SetUp();
    write("vendors/cpu/manifest.toml", "name = \"cpu\"\nlibrary = \"x.so\"\n[libtorch]\nversions = [\"2.13.0\"]\n");
  }
  void install(const std::string& version) {
    const fs::path runtime = fs::path("runtimes") / kName;
    write(runtime / "runtime.toml", "name = \"cpu\"\nversion = \"" + version + "\"\n");
    for (const char* const file : {"sha256sums", "lib/torch/lib/libc10.so", "lib/torch/lib/libtorch_cpu.so"}) {
      write(runtime / file, "");
    }
  }
  // Of the runtime itself, which nothing is said of where it is in order; and of the vendor that needs one.
  const Check* runtime() { return Find(check(), std::string("runtime ") + kName); }
  const Check* vendor_needs() { return Find(check(), "runtime of vendor cpu"); }

 private:
  const Checks& check() {
    checks_.clear();
    CheckRuntimes(folder / "vendors", folder / "runtimes", checks_);
    return checks_;
  }
  Checks checks_;
};

TEST_F(DoctorRuntimes, TellsThatOneIsMissing) {
  ASSERT_NE(vendor_needs(), nullptr);
  EXPECT_EQ(vendor_needs()->verdict, Verdict::kWarn);
  EXPECT_NE(vendor_needs()->advice.find("flagosctl runtime install cpu"), std::string::npos);
  install("2.13.0+cpu");
  EXPECT_EQ(vendor_needs()->verdict, Verdict::kOk) << vendor_needs()->found;
  EXPECT_EQ(runtime(), nullptr);
  write("vendors/cpu/manifest.toml", "name = \"cpu\"\nlibrary = \"x.so\"\n");
  EXPECT_EQ(vendor_needs(), nullptr) << "a vendor that hosts no libtorch";
}

TEST_F(DoctorRuntimes, TellsAWrongVersion) {
  install("2.12.0+cpu");
  EXPECT_EQ(vendor_needs()->verdict, Verdict::kWarn);
  EXPECT_NE(vendor_needs()->found.find("2.13.0"), std::string::npos) << vendor_needs()->found;
  install("2.13.0+cu130");
  EXPECT_EQ(vendor_needs()->verdict, Verdict::kOk) << vendor_needs()->found;
}

TEST_F(DoctorRuntimes, TellsWhoElseCanWrite) {
  install("2.13.0+cpu");
  ASSERT_EQ(runtime(), nullptr);
  const fs::path library = folder / "runtimes" / kName / "lib/torch/lib/libc10.so";
  for (const fs::perms open : {fs::perms::group_write, fs::perms::others_write}) {
    fs::permissions(library, open, fs::perm_options::add);
    ASSERT_NE(runtime(), nullptr);
    EXPECT_EQ(runtime()->verdict, Verdict::kFail);
    EXPECT_NE(runtime()->found.find("libc10.so"), std::string::npos) << runtime()->found;
    EXPECT_EQ(vendor_needs()->verdict, Verdict::kWarn) << "nobody loads it";
    fs::permissions(library, open, fs::perm_options::remove);
    EXPECT_EQ(runtime(), nullptr);
  }
  fs::remove(library);
  EXPECT_EQ(runtime()->verdict, Verdict::kFail) << "incomplete";
}

TEST(DoctorEnvironment, KnowsATokenFromATypo) {
  ::setenv("FLAGOS_TOKEN", "secret", 1);
  Checks checks;
  CheckEnvironment(checks);
  EXPECT_EQ(Find(checks, "FLAGOS_TOKEN")->verdict, Verdict::kFail);
  ::setenv("FLAGOS_TOKEN", std::string(64, 'a').c_str(), 1);
  checks.clear();
  CheckEnvironment(checks);
  EXPECT_EQ(Find(checks, "FLAGOS_TOKEN")->verdict, Verdict::kOk);
  EXPECT_EQ(Find(checks, "FLAGOS_TOKEN")->found.find("aaaa"), std::string::npos) << "a token is not printed";
  ::unsetenv("FLAGOS_TOKEN");
}

TEST(DoctorEnvironment, ReadsKernelRoutes) {
  ::setenv("FLAGOS_BACKEND_CONFIG", "/nonexistent/routes", 1);
  Checks checks;
  CheckEnvironment(checks);
  EXPECT_EQ(Find(checks, "FLAGOS_BACKEND_CONFIG")->verdict, Verdict::kFail);
  EXPECT_NE(Find(checks, "FLAGOS_BACKEND_CONFIG")->found.find("/nonexistent/routes"), std::string::npos);
  ::setenv("FLAGOS_BACKEND_CONFIG", "/dev/null", 1);
  checks.clear();
  CheckEnvironment(checks);
  EXPECT_EQ(Find(checks, "FLAGOS_BACKEND_CONFIG")->verdict, Verdict::kOk);
  ::unsetenv("FLAGOS_BACKEND_CONFIG");
}

}  // namespace
}  // namespace flagos::ctl
