// SPDX-License-Identifier: Apache-2.0
#include "server/ctl/options.h"

#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>

#include <map>

#include "server/ctl/exit_code.h"

namespace flagos::ctl {
namespace {

const std::map<std::string, Format> kFormats = {{"table", Format::kTable},
                                                {"wide", Format::kWide},
                                                {"json", Format::kJson},
                                                {"yaml", Format::kYaml},
                                                {"csv", Format::kCsv}};
const std::map<std::string, Units> kUnits = {{"iec", Units::kIec}, {"si", Units::kSi}, {"raw", Units::kRaw}};

// Takes one word of a closed list into `to`.
template <class Value>
CLI::Option* AddChoice(CLI::App& app, const std::string& name, Value& to, const std::map<std::string, Value>& choices,
                       const std::string& help) {
  std::string words;
  for (const auto& [word, value] : choices) absl::StrAppend(&words, words.empty() ? "" : ", ", word);
  return app
      .add_option_function<std::string>(
          name, [&to, &choices](const std::string& word) { to = choices.at(word); }, help)
      ->check([&choices, words](const std::string& word) {
        return choices.contains(word) ? std::string() : absl::StrCat("\"", word, "\" is none of: ", words);
      });
}

}  // namespace

void AddOptions(CLI::App& app, Options& options) {
  app.add_option("-H,--socket", options.socket, "flagosd's socket (FLAGOS_ENDPOINT, else /run/flagos/flagosd.sock)")
      ->type_name("PATH");
  AddChoice(app, "-o,--output", options.view.format, kFormats, "Form of the answer (table)")
      ->type_name("table|wide|json|yaml|csv");
  AddChoice(app, "--units", options.view.units, kUnits, "Units in tables: powers of 1024, of 1000, or none (iec)")
      ->type_name("iec|si|raw");
  app.add_flag_callback(
      "--no-headers", [&options] { options.view.headers = false; }, "Tables and CSV without their first line");
  app.add_option("--fields", options.view.fields, "Columns to show")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("A,B");
  app.add_option("--sort", options.view.sort, "Column to order rows by; --sort=-COLUMN for descending")
      ->type_name("COLUMN");
  app.add_option_function<std::string>(
         "--timeout", [&options](const std::string& text) { options.timeout = ParseDuration(text); },
         "How long to wait for flagosd (10s)")
      ->check(CheckDuration)
      ->type_name("DURATION");
}

void AddWatch(CLI::App& command, std::optional<absl::Duration>& interval) {
  command
      .add_option_function<std::string>(
          "--watch",
          [&interval](const std::string& text) { interval = text.empty() ? absl::Seconds(2) : ParseDuration(text); },
          "Show again, every 2s or as told, until interrupted")
      ->expected(0, 1)
      ->check([](const std::string& text) { return text.empty() ? text : CheckDuration(text); })
      ->type_name("[DURATION]");
}

std::string CheckDuration(const std::string& text) {
  absl::Duration parsed;
  if (absl::ParseDuration(text, &parsed) && parsed > absl::ZeroDuration() && parsed < absl::Hours(24 * 365)) return {};
  return absl::StrCat("\"", text, "\" is no duration: give a number with a unit, as 500ms, 2s, 10m or 1h");
}

absl::Duration ParseDuration(const std::string& text) {
  absl::Duration parsed;
  absl::ParseDuration(text, &parsed);
  return parsed;
}

absl::StatusOr<std::string> DefaultSocket(const char* endpoint) {
  constexpr std::string_view kScheme = "unix://";
  const std::string_view text = endpoint == nullptr ? "" : endpoint;
  // A process with an embedded daemon shares it with nobody, so there is only the service to ask.
  if (text.empty() || text == "embedded") return kSystemSocket;
  if (text.starts_with(kScheme) && text.size() > kScheme.size()) return std::string(text.substr(kScheme.size()));
  return Failure(absl::StatusCode::kInvalidArgument, "FLAGOS_ENDPOINT is \"" + std::string(text) + "\"",
                 "it names no socket that flagosctl can ask",
                 "set it to unix:///path/of/flagosd.sock, unset it, or give --socket PATH");
}

}  // namespace flagos::ctl
