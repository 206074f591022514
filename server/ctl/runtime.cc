// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <CLI/CLI.hpp>

#include <filesystem>

#include "server/common/status.h"
#include "server/ctl/commands.h"
#include "server/ctl/exit_code.h"
#include "server/ctl/render.h"
#include "server/ctl/runtime/install.h"
#include "server/ctl/schemas.h"
#include "server/ctl/vendors.h"

namespace flagos::ctl {
namespace {

namespace fs = std::filesystem;

using executor::Manifest;
using executor::Runtime;

struct State {
  InstallRequest request{.root = executor::RuntimesRoot(), .name = {}, .version = {}, .from = {}};
  std::string vendors = VendorFolder();
  std::string name;
  bool dry_run = false;
};

uint64_t SizeOf(const fs::path& folder) {
  uint64_t size = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code hidden;
    if (at->is_regular_file(hidden)) size += at->file_size(hidden);
  }
  return size;
}

Json ToJson(const Runtime& runtime, const std::vector<Manifest>& vendors) {
  Json fitting = Json::array();
  for (const Manifest& manifest : vendors) {
    if (executor::Fits(runtime, manifest)) fitting.push_back(manifest.name);
  }
  return {{"runtime", runtime.id()},    {"name", runtime.name},
          {"version", runtime.version}, {"size", SizeOf(runtime.folder)},
          {"vendors", fitting},         {"state", executor::RuntimeStateName(runtime.state)},
          {"problem", runtime.problem}, {"installed", runtime.installed},
          {"source", runtime.source},   {"libtorch", runtime.libtorch().string()}};
}

// The only version that a vendor names which takes runtimes of this name.
absl::StatusOr<std::string> VersionFor(const std::string& name, const std::string& vendors) {
  for (const Manifest& manifest : ReadVendors(vendors)) {
    if (manifest.hosts_torch && manifest.torch_versions.size() == 1 && executor::RuntimeNameFor(manifest) == name) {
      return manifest.torch_versions.front();
    }
  }
  return Failure(absl::StatusCode::kInvalidArgument, "no version is given",
                 absl::StrCat("no vendor in ", vendors, " says which torch it needs of ", name), "give --version");
}

absl::Status Install(const Program& program, const State& state) {
  InstallRequest request = state.request;
  if (request.version.empty()) {
    auto version = VersionFor(request.name, state.vendors);
    if (!version.ok()) return version.status();
    request.version = *std::move(version);
  }
  if (state.dry_run) {
    const auto plan = PlanRuntime(request);
    if (!plan.ok()) return plan.status();
    return program.print(absl::StrCat("would install ", *plan, " into ", request.root, " from ",
                                      request.from.empty() ? "pip download" : request.from, "\n"));
  }
  const auto runtime = InstallRuntime(request);
  if (!runtime.ok()) return runtime.status();
  return program.print(RenderItem(RuntimeSchema(), ToJson(*runtime, ReadVendors(state.vendors)), program.options.view));
}

absl::Status List(const Program& program, const State& state) {
  const std::vector<Manifest> vendors = ReadVendors(state.vendors);
  Listing listing{&RuntimeSchema(), {}};
  for (const Runtime& runtime : executor::ListRuntimes(state.request.root)) {
    listing.rows.push_back(ToJson(runtime, vendors));
  }
  return program.print(RenderList(std::move(listing), program.options.view));
}

// The runtime with this id, or the only one whose id begins so.
absl::StatusOr<Runtime> Find(const std::string& root, const std::string& name) {
  std::vector<Runtime> found;
  std::vector<std::string> ids;
  for (Runtime& runtime : executor::ListRuntimes(root)) {
    if (runtime.id() == name) return runtime;
    if (!name.empty() && runtime.id().starts_with(name)) {
      ids.push_back(runtime.id());
      found.push_back(std::move(runtime));
    }
  }
  if (found.size() == 1) return found.front();
  return Failure(found.empty() ? absl::StatusCode::kNotFound : absl::StatusCode::kInvalidArgument,
                 absl::StrCat(found.empty() ? "there is no runtime " : "there are several runtimes ", name),
                 found.empty() ? absl::StrCat("none in ", root, " is called so") : absl::StrJoin(ids, ", "),
                 "see flagosctl runtime list");
}

absl::Status Verify(const Program& program, const State& state) {
  std::vector<Runtime> runtimes = executor::ListRuntimes(state.request.root);
  if (!state.name.empty()) {
    auto runtime = Find(state.request.root, state.name);
    if (!runtime.ok()) return runtime.status();
    runtimes = {*std::move(runtime)};
  }
  Listing listing{&RuntimeCheckSchema(), {}};
  bool failed = false;
  for (const Runtime& runtime : runtimes) {
    Json problems = Json::array();
    if (!runtime.problem.empty()) problems.push_back(runtime.problem);
    const auto changed = VerifyRuntime(runtime);
    if (!changed.ok()) problems.push_back(std::string(changed.status().message()));
    if (changed.ok()) {
      for (const std::string& problem : *changed) problems.push_back(problem);
    }
    failed |= !problems.empty();
    listing.rows.push_back(
        {{"runtime", runtime.id()}, {"result", problems.empty() ? "ok" : "failed"}, {"problems", problems}});
  }
  FLAGOS_RETURN_IF_ERROR(program.print(RenderList(std::move(listing), program.options.view)));
  return failed ? absl::UnknownError("") : absl::OkStatus();  // the list has said it all; only the exit code is left
}

absl::Status Remove(const Program& program, const State& state) {
  const auto runtime = Find(state.request.root, state.name);
  if (!runtime.ok()) return runtime.status();
  const Json row = ToJson(*runtime, ReadVendors(state.vendors));
  if (state.dry_run) {
    FLAGOS_RETURN_IF_ERROR(CheckRemovable(*runtime));
    return program.print(absl::StrCat("would remove ", runtime->id(), "\n"));
  }
  if (absl::Status status = RemoveRuntime(*runtime); !status.ok()) return status;
  const View& view = program.options.view;
  if (view.format != Format::kTable && view.format != Format::kWide) {
    return program.print(RenderItem(RuntimeSchema(), row, view));
  }
  return program.print(absl::StrCat("removed ", runtime->id(), "\n"));
}

}  // namespace

void AddRuntimeCommands(CLI::App& app, Program& program) {
  CLI::App* const noun = app.add_subcommand("runtime", "The libtorch that executors load; needs no flagosd")
                             ->require_subcommand(1)
                             ->fallthrough();
  const auto state = std::make_shared<State>();
  noun->add_option("--root", state->request.root, "Folder of the runtimes (/var/lib/flagos/runtimes)")
      ->envname(executor::kRuntimesVariable)
      ->type_name("DIR");
  noun->add_option("--vendor-dir", state->vendors, "Folder of the vendors (../vendors beside this program)")
      ->type_name("DIR");
  const auto add = [&](const char* name, const char* help, absl::Status (*run)(const Program&, const State&)) {
    CLI::App* const verb = noun->add_subcommand(name, help)->fallthrough();
    verb->callback([&program, state, run] { program.run = [&program, state, run] { return run(program, *state); }; });
    return verb;
  };

  CLI::App* const install = add("install", "Puts a libtorch in place, whole or not at all", Install);
  install->add_option("name", state->request.name, "Which build: cpu or cuda")
      ->required()
      ->check(CLI::IsMember({"cpu", "cuda"}));
  install->add_option("--version", state->request.version, "Version of PyTorch (the one that the vendor needs)")
      ->type_name("V");
  install
      ->add_option("--from", state->request.from,
                   "A wheel of torch, a folder of wheels or a virtual environment; without it, pip download")
      ->check(CLI::ExistingPath)
      ->type_name("PATH");

  install->add_flag("--dry-run", state->dry_run, "Only say what would be installed; fetches nothing");

  add("list", "All runtimes, and which vendors can use them", List);
  add("verify", "Compares every file with what was installed", Verify)
      ->add_option("name", state->name, "One runtime (all)");
  CLI::App* const remove = add("remove", "Removes a runtime that no executor uses", Remove);
  remove->add_flag("--dry-run", state->dry_run, "Only say whether it would be removed");
  remove->add_option("name", state->name, "Its name in the list, or an unambiguous beginning")->required();
}

}  // namespace flagos::ctl
