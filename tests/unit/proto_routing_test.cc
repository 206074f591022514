// SPDX-License-Identifier: Apache-2.0
// Kernel routes: what files and variables say, which route holds, and what leads nowhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "proto/routing/check.h"
#include "proto/routing/environment.h"
#include "proto/routing/route_file.h"
#include "proto/routing/route_table.h"

namespace flagos {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RouteFileTest : public ::testing::Test {
 protected:
  RouteFileTest() : folder_(std::filesystem::temp_directory_path() / ("flagos-routes-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_ / "more");
  }
  ~RouteFileTest() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    const auto path = folder_ / name;
    std::ofstream(path) << text;
    return path.string();
  }
  std::string complaint(const std::string& text) {
    const auto read = ReadRouteFile(write("bad.conf", text), "a test");
    return read.ok() ? "" : read.error().message;
  }
  // "aten::sum -> accurate", in the order of the lines.
  static std::vector<std::string> routes(const std::string& path) {
    const auto read = ReadRouteFile(path, "a test");
    EXPECT_TRUE(read.ok()) << read.error().message;
    std::vector<std::string> texts;
    if (!read.ok()) return texts;
    for (const Route& route : read.value()) texts.push_back(OperatorText(route) + " -> " + route.library);
    return texts;
  }

  const std::filesystem::path folder_;
};

TEST_F(RouteFileTest, HasALineForEachRoute) {
  const std::string path = write("a.conf",
                                 "# comment\n\n sum = fast # why\r\naten::add.Tensor=native\nmean.default = "
                                 "x-1_y\n\tmine::op.out\t=\tfast");
  EXPECT_THAT(routes(path), ElementsAre("aten::sum -> fast", "aten::add.Tensor -> native",
                                        "aten::mean.default -> x-1_y", "mine::op.out -> fast"));
  EXPECT_EQ(ReadRouteFile(path, "a test").value()[1].origin, path + ":4");
}

TEST_F(RouteFileTest, IncludesRelativeToTheFile) {
  write("more/b.conf", "include c.conf\nsum = b\n");
  write("more/c.conf", "sum = c\ndot = c\n");
  const std::string absolute = write("d.conf", "mm = d");
  const std::string path = write("a.conf", "sum = a\ninclude more/b.conf\ninclude " + absolute + "\n");
  EXPECT_THAT(routes(path),
              ElementsAre("aten::sum -> a", "aten::sum -> c", "aten::dot -> c", "aten::sum -> b", "aten::mm -> d"));
}

TEST_F(RouteFileTest, NamesTheLineThatIsWrong) {
  for (const char* const line : {"sum", "sum =", "= fast", "sum accurate", "sum == fast", "su m = fast", "sum = fa st",
                                 "sum. = fast", "::sum = fast", "sum.a.b = fast", "include", "sum = ../x"}) {
    EXPECT_THAT(complaint(std::string("# fine\n") + line + "\n"),
                AllOf(HasSubstr("bad.conf:2: "), HasSubstr("is no route; write OPERATOR = LIBRARY")))
        << line;
  }
  EXPECT_THAT(complaint("\x1b[2J = x"), HasSubstr("'?[2J = x'")) << "would steer the terminal that shows it";
}

TEST_F(RouteFileTest, NamesTheFileThatCannotBeRead) {
  const auto missing = ReadRouteFile("/nonexistent/routes", "FLAGOS_BACKEND_CONFIG");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kValue);
  EXPECT_THAT(missing.error().message,
              AllOf(HasSubstr("/nonexistent/routes, which FLAGOS_BACKEND_CONFIG names"), HasSubstr("No such file")));
  EXPECT_THAT(ReadRouteFile(folder_.string(), "x").error().message, HasSubstr("Is a directory"));
  EXPECT_THAT(complaint("include gone.conf"),
              AllOf(HasSubstr("gone.conf, which "), HasSubstr("bad.conf:1 names"), HasSubstr("No such file")));
  EXPECT_THAT(complaint(std::string(2 << 20, '#')), HasSubstr("larger than 1 MiB"));
}

TEST_F(RouteFileTest, EndsWhereFilesIncludeEachOther) {
  EXPECT_THAT(complaint("sum = a\ninclude bad.conf\n"),
              AllOf(HasSubstr("bad.conf:2: "), HasSubstr("deeper than 8 files")));
  write("9.conf", "sum = deep\n");
  for (int i = 8; i >= 1; --i) {
    write(std::to_string(i) + ".conf", "include " + std::to_string(i + 1) + ".conf\n");
  }
  EXPECT_THAT(routes((folder_ / "1.conf").string()), ElementsAre("aten::sum -> deep")) << "eight files below the first";
  EXPECT_THAT(complaint("include 1.conf\n"), AllOf(HasSubstr("8.conf:1: "), HasSubstr("deeper than 8 files")));
}

TEST_F(RouteFileTest, EndsWhereIncludesFanOut) {
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += "sum = a\n";
  write("lines.conf", lines);
  std::string fan;
  for (int i = 0; i < 200; ++i) fan += "include lines.conf\n";
  EXPECT_THAT(complaint(fan), HasSubstr("more than 100000 lines"));
}

Route RouteOf(const std::string& op, const std::string& library) {
  Route route = *ParseOperator(op);
  route.library = library;
  route.origin = "here";
  return route;
}

TEST(RouteTable, TheLastRouteHolds) {
  const RouteTable table({RouteOf("sum", "all"), RouteOf("sum.dim_IntList", "one"), RouteOf("mean.dim", "one"),
                          RouteOf("mean", "all"), RouteOf("dot.default", "plain")});
  const auto library = [&](const char* full) {
    const Route* const route = table.find(full);
    return route == nullptr ? std::string() : route->library;
  };
  EXPECT_EQ(library("aten::sum"), "all");
  EXPECT_EQ(library("aten::sum.dim_IntList"), "one");
  EXPECT_EQ(library("aten::mean.dim"), "all");
  EXPECT_EQ(library("aten::dot"), "plain");
  EXPECT_EQ(library("aten::dot.out"), "");
  EXPECT_EQ(library("aten::su"), "");
  EXPECT_EQ(library("mine::sum"), "");
  EXPECT_TRUE(RouteTable().empty());
}

const std::vector<std::string> kOperators = {"aten::add.Tensor", "aten::add_.Tensor", "aten::__and__.Tensor",
                                             "aten::dot",        "aten::empty",       "aten::softmax.int",
                                             "mine::op.out",     "aten::copy_"};

std::vector<std::string> OfVariables(std::vector<const char*> environment) {
  environment.push_back(nullptr);
  EXPECT_EQ(HasRouteVariables(environment.data()), environment.size() > 1);
  const auto read = RoutesOfVariables(environment.data(), kOperators);
  if (!read.ok()) return {read.error().message};
  std::vector<std::string> texts;
  for (const Route& route : read.value()) texts.push_back(OperatorText(route) + " -> " + route.library);
  return texts;
}

TEST(RouteVariables, NameOperatorsWithoutDots) {
  EXPECT_THAT(OfVariables({"FLAGOS_OP_add__Tensor=a"}), ElementsAre("aten::add.Tensor -> a"));
  EXPECT_THAT(OfVariables({"FLAGOS_OP_add=a"}), ElementsAre("aten::add -> a"));
  EXPECT_THAT(OfVariables({"FLAGOS_OP_add___Tensor=a"}), ElementsAre("aten::add_.Tensor -> a"));
  EXPECT_THAT(OfVariables({"FLAGOS_OP___and____Tensor=a"}), ElementsAre("aten::__and__.Tensor -> a"));
  EXPECT_THAT(OfVariables({"FLAGOS_OP_dot__default=native"}), ElementsAre("aten::dot.default -> native"));
  EXPECT_THAT(OfVariables({"FLAGOS_OP_mine__op__out=a"}), ElementsAre("mine::op.out -> a"));
  EXPECT_THAT(OfVariables({"FLAGOS_OP_aten__dot=a"}), ElementsAre("aten::dot -> a"));
}

TEST(RouteVariables, OfOneOverloadWinOverThoseOfAll) {
  EXPECT_THAT(OfVariables({"FLAGOS_OP_add__Tensor=a", "FLAGOS_OP_add=b"}),
              ElementsAre("aten::add -> b", "aten::add.Tensor -> a"));
}

TEST(RouteVariables, SayWhatIsWrong) {
  EXPECT_THAT(OfVariables({"FLAGOS_OP_ad=a"}),
              ElementsAre(AllOf(HasSubstr("FLAGOS_OP_ad names no operator"), HasSubstr("FLAGOS_OP_add__Tensor"))));
  EXPECT_THAT(OfVariables({"FLAGOS_OP_add=a b"}), ElementsAre(HasSubstr("FLAGOS_OP_add does not hold the name")));
  const char* const others[] = {"FLAGOS_OP_add=", "FLAGOS_OPERATOR=x", "PATH=/", nullptr};
  EXPECT_FALSE(HasRouteVariables(others));
  EXPECT_THAT(RoutesOfVariables(others, kOperators).value(), IsEmpty());
}

const std::vector<KernelLibraryInfo> kLibraries = {{"fast", "", "", {"aten::dot", "aten::add.Tensor"}},
                                                   {"broken", "", "the library broken cannot be used", {}}};

std::string Checked(const std::string& op, const std::string& library) {
  const std::vector<Route> routes = {RouteOf(op, library)};
  const auto offered = [](const std::string& full) { return full != "aten::softmax.int" && full != "aten::empty"; };
  const auto notes = CheckRoutes(routes, {kOperators, offered, kLibraries});
  if (!notes.ok()) return notes.error().message;
  return notes.value().empty() ? "" : "note: " + notes.value().front();
}

TEST(CheckRoutes, SaysWhatLeadsNowhere) {
  EXPECT_EQ(Checked("add", "fast"), "");
  EXPECT_EQ(Checked("add.Tensor", "native"), "");
  EXPECT_EQ(Checked("empty", "native"), "") << "it is what happens anyway";
  EXPECT_THAT(Checked("add", "fats"), AllOf(HasSubstr("here: there is no kernel library 'fats'"),
                                            HasSubstr("there are: native, fast, broken")));
  EXPECT_EQ(Checked("add", "broken"), "here: the library broken cannot be used");
  EXPECT_THAT(Checked("ad", "native"), HasSubstr("here: PyTorch has no operator 'aten::ad'"));
  EXPECT_THAT(Checked("add.Scalar", "fast"), HasSubstr("no operator 'aten::add.Scalar'"));
  EXPECT_THAT(Checked("empty", "fast"), HasSubstr("'aten::empty' makes storages, views or copies"));
  EXPECT_THAT(Checked("copy_", "fast"), HasSubstr("makes storages, views or copies"));
  EXPECT_THAT(Checked("softmax", "fast"), AllOf(HasSubstr("never reach a device"), HasSubstr("FLAGOS_LOG=dispatch")));
}

TEST(CheckRoutes, NotesWhatALibraryHasNoKernelFor) {
  EXPECT_THAT(Checked("add_", "fast"),
              AllOf(HasSubstr("note: here: kernel library 'fast' has no kernel for 'aten::add_'"),
                    HasSubstr("the vendor's own")));
}

}  // namespace
}  // namespace flagos
