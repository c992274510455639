// 'admin': the actions of the Admin service, which has an address of its own.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/ctl/call/admin_client.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/line/parse.h"
#include "client/ctl/output/record_writer.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/text.h"
#include "proto/base/nearest.h"

namespace tacho::ctl {
namespace {

int Wrong(const Invocation& invocation, absl::string_view message) {
  return UsageError(invocation.env, "admin", message);
}

int Failed(const Invocation& invocation, const AdminClient& client, const absl::Status& status) {
  std::ostream& err = *invocation.env.err;
  std::string text(status.message());
  if (!client.setup().ok()) {
    err << "tachoctl: " << Printable(text) << "\n";
    return kUsage;
  }
  if (!client.reached()) {
    err << "tachoctl: cannot reach a collector's administration at " << Printable(client.address())
        << ": " << Printable(text)
        << "\nUse the address of admin.listen in the collector's configuration: --address "
           "unix:/PATH, "
           "or TACHO_ADMIN_ADDRESS in the environment. Only the collector's user and root may use "
           "a "
           "socket: try sudo.\n";
    return kUnreachable;
  }
  if (status.code() == absl::StatusCode::kUnimplemented) {
    text = absl::StrCat("the server at ", client.address(),
                        " does not serve administration; that is at admin.listen of the "
                        "collector's configuration: --address unix:/PATH");
  } else if (status.code() == absl::StatusCode::kDeadlineExceeded) {
    text = absl::StrCat(
        "no answer within the time; what was asked for may still be done. Wait "
        "longer: --timeout 10m");
  }
  err << "tachoctl: " << Printable(text) << "\n";
  return kNothing;
}

Cell OrNothing(int64_t unix_ns) { return unix_ns == 0 ? Cell() : Cell(UnixNs{unix_ns}); }

// An empty duration where the flag was not given.
absl::StatusOr<absl::Duration> DurationFlag(const Invocation& invocation, const char* flag) {
  const auto text = invocation.args.Get(flag);
  if (!text) return absl::ZeroDuration();
  auto duration = ParseDuration(*text);
  if (duration.ok()) return duration;
  return absl::InvalidArgumentError(absl::StrCat("--", flag, " ", duration.status().message()));
}

int Drain(const Invocation& invocation, AdminClient& client) {
  const auto wait = DurationFlag(invocation, "wait");
  if (!wait.ok()) return Wrong(invocation, wait.status().message());
  const auto answer = client.Drain(*wait == absl::ZeroDuration() ? absl::Seconds(15) : *wait);
  if (!answer.ok()) return Failed(invocation, client, answer.status());
  PrintFigures(invocation,
               {{"", "streams", answer->streams()}, {"", "streams_left", answer->streams_left()}});
  if (answer->streams_left() == 0) return kOk;
  *invocation.env.err << "tachoctl: " << Count(answer->streams_left(), "stream")
                      << (answer->streams_left() == 1 ? " has" : " have")
                      << " not ended yet; the agents keep what is not acknowledged. "
                         "To wait longer, run it again with --wait 1m\n";
  return kNothing;
}

void AddLog(const v1::GetStatsResponse::LogStats& log, std::vector<Figure>* figures) {
  figures->insert(figures->end(), {{"log", "level", log.level()},
                                   {"log", "configured_level", log.configured_level()},
                                   {"log", "falls_back", OrNothing(log.falls_back_unix_ns())},
                                   {"log", "lines_left_out", log.lines_left_out()}});
}

void AddSnapshot(const char* group, const v1::SnapshotResponse& made,
                 std::vector<Figure>* figures) {
  figures->insert(figures->end(),
                  {{group, "name", made.name()},
                   {group, "path", made.path()},
                   {group, "begun", UnixNs{made.begun_unix_ns()}},
                   {group, "seconds", static_cast<double>(made.duration_ns()) / 1e9},
                   {group, "files", made.files()},
                   {group, "bytes", made.bytes()}});
}

void AddStore(const v1::GetStatsResponse::StoreStats& store, std::vector<Figure>* figures) {
  figures->insert(figures->end(), {{"store", "jobs", store.jobs()},
                                   {"store", "series", store.series()},
                                   {"store", "samples_appended", store.samples_appended()},
                                   {"store", "rows_appended", store.rows_appended()},
                                   {"store", "open_rows", store.open_rows()},
                                   {"store", "open_bytes", store.open_bytes()},
                                   {"store", "journal_entries", store.journal_entries()},
                                   {"store", "journal_bytes", store.journal_bytes()},
                                   {"store", "queued_bytes", store.queued_bytes()},
                                   {"store", "days", store.partitions()},
                                   {"store", "disk_bytes", store.disk_bytes()}});
}

int Stats(const Invocation& invocation, AdminClient& client) {
  const auto stats = client.GetStats();
  if (!stats.ok()) return Failed(invocation, client, stats.status());
  const std::string state = stats->draining()            ? "draining"
                            : stats->not_ready().empty() ? "ready"
                                                         : "not ready";
  std::vector<Figure> figures = {{"", "version", stats->version()},
                                 {"", "pid", uint64_t{stats->pid()}},
                                 {"", "started", UnixNs{stats->started_unix_ns()}},
                                 {"", "clock", UnixNs{stats->now_unix_ns()}},
                                 {"", "state", state},
                                 {"", "not_ready", stats->not_ready()},
                                 {"", "streams", stats->streams()}};
  AddLog(stats->log(), &figures);
  figures.insert(figures.end(),
                 {{"reload", "in_force", OrNothing(stats->reload().in_force_unix_ns())},
                  {"reload", "done", stats->reload().done()},
                  {"reload", "refused", stats->reload().refused()},
                  {"reload", "last_refusal", stats->reload().last_refusal()}});
  AddStore(stats->store(), &figures);
  if (stats->has_last_snapshot()) AddSnapshot("snapshot", stats->last_snapshot(), &figures);
  PrintFigures(invocation, figures);
  return kOk;
}

int LogLevel(const Invocation& invocation, AdminClient& client) {
  const std::vector<std::string>& operands = invocation.args.positionals();
  const auto duration = DurationFlag(invocation, "for");
  if (!duration.ok()) return Wrong(invocation, duration.status().message());
  if (operands.size() < 2) {
    return Wrong(invocation, "log-level: expected debug, info, warn, error or default");
  }
  v1::SetLogLevelRequest request;
  if (operands[1] != "default") request.set_level(operands[1]);
  request.set_duration_ns(absl::ToInt64Nanoseconds(*duration));
  const auto answer = client.SetLogLevel(request);
  if (!answer.ok()) return Failed(invocation, client, answer.status());
  std::vector<Figure> figures;
  AddLog(answer->log(), &figures);
  PrintFigures(invocation, figures);
  return kOk;
}

int Reload(const Invocation& invocation, AdminClient& client) {
  const auto answer = client.Reload();
  if (answer.ok()) {
    PrintFigures(invocation, {{"", "reload", std::string("done")}});
    return kOk;
  }
  if (!client.reached()) return Failed(invocation, client, answer.status());
  // A text of ours with a mistake a line.
  *invocation.env.err << "tachoctl: nothing was changed:\n";
  for (const auto& line : absl::StrSplit(answer.status().message(), '\n')) {
    *invocation.env.err << "  " << Printable(line) << "\n";
  }
  return kNothing;
}

int Snapshot(const Invocation& invocation, AdminClient& client) {
  const std::vector<std::string>& operands = invocation.args.positionals();
  v1::SnapshotRequest request;
  if (operands.size() > 1) request.set_name(operands[1]);
  const auto answer = client.Snapshot(request);
  if (!answer.ok()) return Failed(invocation, client, answer.status());
  std::vector<Figure> figures;
  AddSnapshot("", *answer, &figures);
  PrintFigures(invocation, figures);
  return kOk;
}

struct Action {
  const char* name;
  size_t max_operands;  // Its own name included.
  int (*run)(const Invocation&, AdminClient&);
};
constexpr Action kActions[] = {{"drain", 1, Drain},
                               {"stats", 1, Stats},
                               {"log-level", 2, LogLevel},
                               {"reload", 1, Reload},
                               {"snapshot", 2, Snapshot}};

// A copy of a large store to another disk takes its time.
constexpr absl::Duration kSnapshotTimeout = absl::Minutes(30);

int RunAdmin(const Invocation& invocation) {
  const std::vector<std::string>& operands = invocation.args.positionals();
  for (const Action& action : kActions) {
    if (operands[0] != action.name) continue;
    if (operands.size() > action.max_operands) {
      return Wrong(invocation, absl::StrCat("'", operands.back(), "' is one operand too many for ",
                                            action.name));
    }
    ClientOptions options;
    options.address = invocation.args.Get("address").value_or(invocation.env.admin_address);
    options.timeout = invocation.common.timeout;
    // On this machine alone, so without TLS; a socket needs no token either.
    if (!absl::StartsWith(options.address, "unix:")) {
      options.security.token_file = invocation.common.security.token_file;
    }
    if (action.run == Snapshot && !invocation.args.Has("timeout")) {
      options.timeout = kSnapshotTimeout;
    }
    AdminClient client(options);
    return action.run(invocation, client);
  }
  return Wrong(invocation, absl::StrCat("no action '", operands[0], "'",
                                        DidYouMean(operands[0], AdminActions()),
                                        ": expected one of ", absl::StrJoin(AdminActions(), ", ")));
}

}  // namespace

std::vector<std::string> AdminActions() {
  std::vector<std::string> names;
  for (const Action& action : kActions) names.emplace_back(action.name);
  return names;
}

Command AdminCommand() {
  return {.name = "admin",
          .group = CommandGroup::kOperate,
          .operands = "ACTION [ARGUMENT]",
          .summary = "Operate a collector: drain, stats, log-level, reload, snapshot",
          .details = R"(Actions:
  drain             Accept nothing more from agents until the collector restarts; wait until what
                    they sent is durable and acknowledged. Queries continue.
  stats             Show the collector's state: ready or why not, streams, log, reloads, store.
  log-level LEVEL   Log debug, info, warn or error from now on, with --for only for a while;
                    default: the level of the configuration.
  reload            Read the configuration again, as SIGHUP does; apply all changes or none.
  snapshot [NAME]   Copy the whole store below admin.snapshot_directory while it is in use. Without
                    NAME, the time is the name. To restore one: docs/operations.md.

These calls go to admin.listen of the collector's configuration, not to the address for queries:
--address unix:/PATH, or TACHO_ADMIN_ADDRESS in the environment; else
the first that exists of unix:/run/tacho-collector/admin.sock, collector/admin.sock where 'tachoctl
up' keeps its data, and unix:tacho-data/admin.sock. Only the collector's user and root may use a
socket.

Examples:
  tachoctl admin stats
  tachoctl admin log-level debug --for 10m
  tachoctl admin snapshot before-upgrade -o json
  tachoctl admin drain --wait 1m && systemctl stop tacho-collector

JSON, stats: {"version", "pid", "started", "clock", "state": "ready", "draining" or "not ready",
  "not_ready", "streams", "log": {"level", "configured_level", "falls_back" or null,
  "lines_left_out"}, "reload": {"in_force", "done", "refused", "last_refusal"}, "store": {…},
  "snapshot": {…}}; snapshot: {"name", "path", "begun", "seconds", "files", "bytes"}; drain:
  {"streams", "streams_left"}; log-level: {"log": {…}}; reload: {"reload": "done"}. A time has a
  second member with _unix_ns.)",
          .flags = {{.name = "wait",
                     .placeholder = "AGE",
                     .help = "drain: how long streams may take to end. Default: 15s."},
                    {.name = "for",
                     .placeholder = "AGE",
                     .help = "log-level: how long it lasts. Default: until it is set again."}},
          .min_operands = 1,
          .max_operands = 2,
          .run = RunAdmin};
}

}  // namespace tacho::ctl
