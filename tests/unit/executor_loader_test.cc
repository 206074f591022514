// SPDX-License-Identifier: Apache-2.0
// What the program says about vendors that it cannot load.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/support/executor_process.h"

namespace flagos::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ExecutorLoaderTest : public ::testing::Test {
 protected:
  ExecutorLoaderTest() {
    char name[] = "/tmp/flagos-vendors-XXXXXX";
    root_ = ::mkdtemp(name);
    std::filesystem::create_directory(root_ / "odd");
  }
  ~ExecutorLoaderTest() override { std::filesystem::remove_all(root_); }

  // The vendor odd with this manifest, and `library`, if any, as its library.
  void write(const std::string& manifest, const std::string& library = {}) {
    std::ofstream(root_ / "odd" / "manifest.toml") << manifest;
    if (!library.empty()) std::filesystem::create_symlink(library, root_ / "odd" / "libflagos_odd.so");
  }
  // What an executor says that is to load vendor `name`; empty if it is ready.
  std::string complaint(const std::string& name = "odd", std::vector<std::string> arguments = {}) {
    ExecutorProcess executor({.vendor = name, .vendor_dir = root_.string(), .arguments = std::move(arguments)});
    const auto ready = executor.receive();
    if (!ready) return "no record: " + executor.log();
    if (ready->status == 0) return {};
    EXPECT_EQ(executor.wait(), 1);
    EXPECT_THAT(executor.log(), HasSubstr("the vendor did not start"));
    return ReadText(ready->message);
  }

  std::filesystem::path root_;
};

constexpr const char* kPlain = "name = \"odd\"\nlibrary = \"libflagos_odd.so\"\n";

TEST_F(ExecutorLoaderTest, NamesAMissingManifest) {
  EXPECT_THAT(complaint(),
              AllOf(HasSubstr("no vendor manifest"), HasSubstr("/odd/manifest.toml"), HasSubstr("--vendor-dir")));
}

TEST_F(ExecutorLoaderTest, RefusesNamesThatLeaveTheFolder) {
  EXPECT_THAT(complaint("../odd"), HasSubstr("no vendor's name"));
}

TEST_F(ExecutorLoaderTest, NamesTheLineThatDoesNotParse) {
  write("name = \"odd\"\nlibrary = \n");
  EXPECT_THAT(complaint(), AllOf(HasSubstr("does not parse in line 2"), HasSubstr("manifest.toml")));
}

TEST_F(ExecutorLoaderTest, NamesTheKeyThatIsWrong) {
  write("name = \"odd\"\nlibrary = \"../x.so\"\n");
  EXPECT_THAT(complaint(), HasSubstr("library must be the name of a file beside the manifest"));
  write("name = \"odd\"\nlibrary = \"x.so\"\npreload = [3]\n");
  EXPECT_THAT(complaint(), HasSubstr("preload must be a list of texts"));
  write("name = \"other\"\nlibrary = \"x.so\"\n");
  EXPECT_THAT(complaint(), HasSubstr("that of vendor other"));
}

TEST_F(ExecutorLoaderTest, LoadsWhatInterposesFirst) {
  write("name = \"odd\"\nlibrary = \"libflagos_odd.so\"\ninterpose = [\"libfaster.so\"]\n[libtorch]\n");
  EXPECT_THAT(complaint(), HasSubstr("/odd/libfaster.so"));
}

TEST_F(ExecutorLoaderTest, NamesAMissingLibrary) {
  write(kPlain);
  EXPECT_THAT(complaint(), AllOf(HasSubstr("no library"), HasSubstr("libflagos_odd.so")));
}

TEST_F(ExecutorLoaderTest, SurvivesWhatCannotBeLookedAt) {
  std::filesystem::create_symlink("manifest.toml", root_ / "odd" / "manifest.toml");
  EXPECT_THAT(complaint(), AllOf(HasSubstr("cannot look for the vendor manifest"), HasSubstr("symbolic links")));
  std::filesystem::remove(root_ / "odd" / "manifest.toml");
  write(kPlain, "libflagos_odd.so");  // a link to itself
  EXPECT_THAT(complaint(), AllOf(HasSubstr("cannot load vendor odd"), HasSubstr("symbolic links")));
}

TEST_F(ExecutorLoaderTest, SaysWhyALibraryDoesNotLoad) {
  write(kPlain);
  std::ofstream(root_ / "odd" / "libflagos_odd.so") << "this is no library";
  EXPECT_THAT(complaint(), AllOf(HasSubstr("cannot load vendor odd"), HasSubstr("libflagos_odd.so")));
}

TEST_F(ExecutorLoaderTest, RefusesALibraryThatIsNoVendor) {
  write(kPlain, std::filesystem::canonical("/proc/self/exe").parent_path().root_path().string() +
                    "lib/x86_64-linux-gnu/libm.so.6");
  EXPECT_THAT(complaint(), HasSubstr("does not export flagos_vendor"));
}

TEST_F(ExecutorLoaderTest, RefusesAVendorOfAnotherInterface) {
  write(kPlain, BuildFolder() + "/tests/vendors/outdated/libflagos_outdated.so");
  EXPECT_THAT(complaint(), HasSubstr("built for version 2 of the vendor interface"));
}

TEST_F(ExecutorLoaderTest, RefusesAnotherVendorsLibrary) {
  write(kPlain, BuildFolder() + "/vendors/null/libflagos_null.so");
  EXPECT_THAT(complaint(), HasSubstr("is vendor null, not odd"));
}

TEST_F(ExecutorLoaderTest, PassesOnWhatTheVendorSays) {
  std::filesystem::create_directory_symlink(BuildFolder() + "/vendors/null", root_ / "null");
  EXPECT_EQ(complaint("null"), "");
  EXPECT_THAT(complaint("null", {"--option", "devices=none"}), HasSubstr("option devices is \"none\""));
}

TEST_F(ExecutorLoaderTest, SaysWhatToDoWithoutLibtorch) {
  ::setenv("FLAGOS_RUNTIMES", (root_ / "runtimes").c_str(), 1);
  write(std::string(kPlain) + "[libtorch]\nversions = [\"2.13\"]\n");
  EXPECT_THAT(complaint(), AllOf(HasSubstr("nobody says where"), HasSubstr("--libtorch"), HasSubstr("torch 2.13"),
                                 HasSubstr("flagosctl runtime install cpu")));
  EXPECT_THAT(complaint("odd", {"--libtorch", "/nonexistent"}),
              AllOf(HasSubstr("there is no /nonexistent/libc10.so"), HasSubstr("--libtorch")));
}

TEST_F(ExecutorLoaderTest, TakesAnInstalledRuntimeThatFits) {
  const std::filesystem::path runtimes = root_ / "runtimes";
  ::setenv("FLAGOS_RUNTIMES", runtimes.c_str(), 1);
  write(std::string(kPlain) + "[libtorch]\nversions = [\"2.13\"]\n");
  const auto install = [&](const std::string& version) {
    std::filesystem::path folder = runtimes / ("cpu-" + version);
    std::filesystem::create_directories(folder / "lib/torch/lib");
    std::ofstream(folder / "runtime.toml") << "name = \"cpu\"\nversion = \"" << version << "\"\n";
    for (const char* const file : {"sha256sums", "lib/torch/lib/libc10.so", "lib/torch/lib/libtorch_cpu.so"}) {
      std::ofstream(folder / file) << "this is no library";
    }
    return folder;
  };
  install("2.12.1");
  EXPECT_THAT(complaint(), HasSubstr("nobody says where"));
  const auto fitting = install("2.13.0+cpu");
  EXPECT_THAT(complaint(), HasSubstr("cannot load " + (fitting / "lib/torch/lib/libc10.so").string()));
  std::filesystem::permissions(fitting, std::filesystem::perms::others_write, std::filesystem::perm_options::add);
  EXPECT_THAT(complaint(), HasSubstr("cpu-2.13.0+cpu: writable by others"));
  ::unsetenv("FLAGOS_RUNTIMES");
}

#ifdef FLAGOS_TEST_LIBTORCH
TEST_F(ExecutorLoaderTest, RefusesALibtorchOfAnotherVersion) {
  write(std::string(kPlain) + "[libtorch]\npath = \"" FLAGOS_TEST_LIBTORCH "\"\nversions = [\"1.13\"]\n");
  EXPECT_THAT(complaint(), AllOf(HasSubstr("is version 2."), HasSubstr("was built for 1.13")));
}

TEST_F(ExecutorLoaderTest, LoadsLibtorchBeforeTheVendor) {
  write(std::string(kPlain) + "[libtorch]\nversions = [\"2\"]\n", BuildFolder() + "/vendors/null/libflagos_null.so");
  EXPECT_THAT(complaint("odd", {"--libtorch", FLAGOS_TEST_LIBTORCH}), HasSubstr("is vendor null, not odd"));
}
#endif

}  // namespace
}  // namespace flagos::testing
