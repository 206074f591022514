// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/str_join.h>

#include <CLI/CLI.hpp>

#include <algorithm>

#include "server/ctl/commands.h"
#include "server/ctl/doctor/check.h"
#include "server/ctl/exit_code.h"
#include "server/ctl/render.h"
#include "server/ctl/schemas.h"
#include "server/ctl/vendors.h"
#include "server/executor/runtimes.h"

namespace flagos::ctl {
namespace {

constexpr size_t kVerdictWidth = 6;

std::string Coloured(Verdict verdict) {
  static constexpr const char* kColours[] = {"\x1b[32m", "\x1b[33m", "\x1b[31m"};
  return std::string(kColours[static_cast<size_t>(verdict)]) + VerdictName(verdict) + "\x1b[0m";
}

// A line for each check, and one below it for what to do.
std::string Report(const Checks& checks, bool colours) {
  size_t width = 0;
  for (const Check& check : checks) width = std::max(width, DisplayWidth(check.name));
  std::string out;
  for (const Check& check : checks) {
    const std::string verdict = VerdictName(check.verdict);
    const std::string name = Printable(check.name);
    out += (colours ? Coloured(check.verdict) : verdict) + std::string(kVerdictWidth - verdict.size(), ' ') + name +
           std::string(width - DisplayWidth(name) + 2, ' ') + Printable(check.found) + "\n";
    if (!check.advice.empty()) out += std::string(kVerdictWidth + width + 2, ' ') + Printable(check.advice) + "\n";
  }
  return out;
}

Listing AsListing(const Checks& checks) {
  Listing listing{&CheckSchema(), {}};
  for (const Check& check : checks) {
    listing.rows.push_back({{"check", check.name},
                            {"result", VerdictName(check.verdict)},
                            {"found", check.found},
                            {"advice", check.advice}});
  }
  return listing;
}

absl::Status Examine(const Program& program) {
  Checks checks;
  CheckMachine(checks);
  CheckInstallation(checks);
  CheckRuntimes(VendorFolder(), executor::RuntimesRoot(), checks);
  CheckNvidia(checks);
  CheckEnvironment(checks);
  CheckNode(checks);
  CheckService(program.socket().value_or(kSystemSocket), checks);
  CheckDaemon(program, checks);
  const View& view = program.options.view;
  const bool text = (view.format == Format::kTable || view.format == Format::kWide) && view.fields.empty();
  absl::Status printed =
      text ? program.print(Report(checks, program.terminal)) : program.print(RenderList(AsListing(checks), view));
  if (!printed.ok()) return printed;
  const bool failed = std::ranges::any_of(checks, [](const Check& check) { return check.verdict == Verdict::kFail; });
  // The report has said it all; only the exit code is left.
  return failed ? absl::UnknownError("") : absl::OkStatus();
}

}  // namespace

const char* VerdictName(Verdict verdict) {
  static constexpr const char* kNames[] = {"ok", "warn", "fail"};
  return kNames[static_cast<size_t>(verdict)];
}

Check FailedCheck(const std::string& name, const absl::Status& status) {
  std::vector<std::string> lines = FailureLines(status);
  if (lines.size() < 2) return {name, Verdict::kFail, lines.empty() ? "no reason was given" : lines[0], ""};
  std::string advice = lines.back();
  lines.pop_back();
  return {name, Verdict::kFail, absl::StrJoin(lines, ": "), std::move(advice)};
}

void AddDoctorCommand(CLI::App& app, Program& program) {
  app.add_subcommand("doctor",
                     "Says what is wrong with this machine, this installation and its flagosd, and what to do")
      ->fallthrough()
      ->callback([&program] { program.run = [&program] { return Examine(program); }; });
}

}  // namespace flagos::ctl
