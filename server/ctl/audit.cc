// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>

#include <CLI/CLI.hpp>

#include <cerrno>
#include <fstream>

#include "server/common/status.h"
#include "server/ctl/commands.h"
#include "server/ctl/config_files.h"
#include "server/ctl/exit_code.h"
#include "server/ctl/render.h"
#include "server/ctl/schemas.h"
#include "server/daemon/audit/verify.h"
#include "server/daemon/config/sources.h"

namespace flagos::ctl {
namespace {

using daemon::AuditChain;
using daemon::AuditHead;

// A flagosd that runs moves the head within milliseconds of a record.
constexpr int kHeadTries = 20;
constexpr absl::Duration kHeadPause = absl::Milliseconds(100);

struct State {
  std::vector<std::string> files;
  std::string head;
  std::string verb, target, since;
  std::optional<uint32_t> uid;
};

struct Log {
  std::vector<std::string> files;
  std::string head;  // empty: none is known
};

// What the command line names, else what flagosd's configuration does.
absl::StatusOr<Log> FindLog(const Program& program, const State& state) {
  if (!state.files.empty()) return Log{state.files, state.head};
  const std::string file = ConfigFile(program, "");
  daemon::Config config;
  if (const auto mistakes = daemon::SourcesOf(file).load(config); !mistakes.empty()) return WrongConfig(mistakes);
  if (config.audit.file.empty()) {
    return Failure(absl::StatusCode::kFailedPrecondition, "there is no audit log",
                   absl::StrCat("[audit] file is not set in ", file),
                   "set it and restart flagosd, or name the log's files");
  }
  Log log{daemon::AuditFiles(config.audit.file), state.head};
  if (log.head.empty()) log.head = daemon::AuditHeadFile(config.audit.file, config.audit.head);
  return log;
}

absl::StatusOr<AuditChain> VerifyOnce(const Log& log) {
  std::optional<AuditHead> head;
  if (!log.head.empty()) {
    auto read = daemon::ReadAuditHead(log.head);
    if (!read.ok()) return read.status();
    if (!*read) {
      return Failure(absl::StatusCode::kDataLoss, absl::StrCat("the audit log's head ", log.head, " is missing"),
                     "without it nobody knows whether the end of the log is there",
                     "name it with --head, or look for who removed it");
    }
    head = *std::move(read);
  }
  return daemon::VerifyAudit(log.files, head);
}

absl::Status Unconfirmed(const Log& log, const AuditChain& chain) {
  const uint64_t last = chain.ends.last.sequence;
  return Failure(absl::StatusCode::kDataLoss,
                 absl::StrCat("the audit log is not confirmed from record ", last - chain.unconfirmed + 1),
                 absl::StrCat("its head ", log.head,
                              " ends before it: flagosd was killed or its disk was full, or "
                              "somebody added records"),
                 "start flagosd, which says so in the log and goes on; if it runs, see its log for why the head is not "
                 "kept");
}

absl::Status Verify(const Program& program, const State& state) {
  auto log = FindLog(program, state);
  if (!log.ok()) return log.status();
  auto chain = VerifyOnce(*log);
  for (int i = 0; i < kHeadTries && chain.ok() && (chain->unconfirmed > 0 || chain->torn > 0); ++i) {
    absl::SleepFor(kHeadPause);
    if (state.files.empty()) log = FindLog(program, state);  // a file may have been rotated
    if (!log.ok()) return log.status();
    chain = VerifyOnce(*log);
  }
  if (!chain.ok()) return chain.status();
  if (chain->unconfirmed > 0) return Unconfirmed(*log, *chain);
  if (chain->torn > 0) {
    const uint64_t next = chain->ends.last.sequence + 1;
    return Failure(absl::StatusCode::kDataLoss, absl::StrCat("the audit log is broken at record ", next),
                   absl::StrCat("the last line has no end; ", chain->torn, " bytes are there"),
                   "start flagosd, which cuts it off, says so in the log, and goes on");
  }
  const View& view = program.options.view;
  const Json row = {{"records", chain->records},
                    {"first", chain->ends.first},
                    {"last", chain->ends.last.sequence},
                    {"hash", chain->ends.last.hash},
                    {"head", log->head.empty() ? "not compared" : "agrees"}};
  if (view.format != Format::kTable && view.format != Format::kWide) {
    return program.print(RenderItem(AuditChainSchema(), row, view));
  }
  if (chain->records == 0) return program.print(std::string("ok: the audit log has no records\n"));
  std::string text = absl::StrCat("ok: records ", chain->ends.first, " to ", chain->ends.last.sequence,
                                  log->head.empty() ? "" : ", as its head says", "\n");
  if (log->head.empty()) {
    absl::StrAppend(&text,
                    "  no head was compared: whether records are missing at the end is not known (--head FILE)\n");
  }
  return program.print(text);
}

// A time, or how long ago.
absl::StatusOr<absl::Time> Since(const std::string& text) {
  absl::Time time;
  std::string error;
  if (absl::ParseTime(absl::RFC3339_full, text, &time, &error)) return time;
  if (CheckDuration(text).empty()) return absl::Now() - ParseDuration(text);
  return Failure(absl::StatusCode::kInvalidArgument, absl::StrCat("\"", text, "\" is no time"), error,
                 "give one as 2026-12-01T08:00:00Z, or a duration before now, as 2h");
}

struct Filter {
  const State& state;
  absl::Time since = absl::InfinitePast();

  bool takes(const Json& record) const {
    if (!state.verb.empty() && record.value("verb", "") != state.verb) return false;
    if (!state.target.empty() && record.value("target", "") != state.target) return false;
    if (state.uid && FindField(record, "actor.uid") != Json(*state.uid)) return false;
    absl::Time time;
    return since == absl::InfinitePast() ||
           (absl::ParseTime(absl::RFC3339_full, record.value("time", ""), &time, nullptr) && time >= since);
  }
};

absl::Status Search(const Program& program, const State& state) {
  Filter filter{.state = state};
  if (!state.since.empty()) {
    const auto since = Since(state.since);
    if (!since.ok()) return since.status();
    filter.since = *since;
  }
  const auto log = FindLog(program, state);
  if (!log.ok()) return log.status();
  Listing listing{&AuditRecordSchema(), {}};
  uint64_t strange = 0;
  for (const std::string& file : log->files) {
    std::ifstream in(file, std::ios::binary);
    if (!in) return SystemError(errno, absl::StrCat("cannot read the audit log ", file), "ask as root");
    for (std::string line; std::getline(in, line);) {
      if (in.eof()) break;  // it is being written
      Json record = Json::parse(line, nullptr, false);
      try {
        if (!record.is_object()) {
          ++strange;
        } else if (filter.takes(record)) {
          listing.rows.push_back(std::move(record));
        }
      } catch (const Json::exception&) {
        ++strange;
      }
    }
  }
  FLAGOS_RETURN_IF_ERROR(program.print(RenderList(std::move(listing), program.options.view)));
  if (strange == 0) return absl::OkStatus();
  return Failure(absl::StatusCode::kDataLoss, "not all of the audit log could be read",
                 absl::StrCat("lines that are no records: ", strange), "see flagosctl audit verify");
}

}  // namespace

void AddAuditCommands(CLI::App& app, Program& program) {
  CLI::App* const noun =
      app.add_subcommand("audit", "Who asked flagosd for what; needs no flagosd")->require_subcommand(1)->fallthrough();
  const auto state = std::make_shared<State>();
  const auto add = [&](const char* name, const char* help, absl::Status (*run)(const Program&, const State&)) {
    CLI::App* const verb = noun->add_subcommand(name, help)->fallthrough();
    verb->add_option("files", state->files, "Files of the log, the oldest first (those that the configuration names)")
        ->check(CLI::ExistingFile)
        ->type_name("FILE");
    verb->callback([&program, state, run] { program.run = [&program, state, run] { return run(program, *state); }; });
    return verb;
  };

  add("verify", "Whether the log is whole and as flagosd wrote it", Verify)
      ->add_option("--head", state->head, "File that says where the log ends (the configuration's)")
      ->type_name("FILE");

  CLI::App* const search = add("search", "Records of the log", Search);
  search->add_option("--verb", state->verb, "As session.kill")->type_name("VERB");
  search->add_option("--target", state->target, "A session or a lease, as s3")->type_name("TARGET");
  search->add_option("--since", state->since, "A time as 2026-12-01T08:00:00Z, or how long ago, as 2h")
      ->type_name("TIME");
  search->add_option("--uid", state->uid, "Number of the user who asked")->type_name("UID");
}

}  // namespace flagos::ctl
