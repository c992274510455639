// 'push': one row of a short job, from a shell script. It goes the way of an import, so it is on
// the collector's disk when the command returns 0.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/random/random.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/ctl/call/channel.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/line/parse.h"
#include "client/ctl/text/json_writer.h"
#include "client/ctl/text/text.h"
#include "client/import/message_builder.h"
#include "client/import/stream_digest.h"
#include "client/import/upload.h"
#include "proto/base/host_name.h"
#include "proto/base/status_macros.h"

namespace tacho::ctl {
namespace {

// What the command line says.
struct PushedRow {
  std::string job;
  importer::ReadOptions source;
  std::vector<std::pair<std::string, double>> values;
  std::optional<int64_t> step;
};

absl::StatusOr<std::pair<std::string, std::string>> SplitWord(absl::string_view what,
                                                              absl::string_view word) {
  std::pair<std::string, std::string> split = absl::StrSplit(word, absl::MaxSplits('=', 1));
  if (!absl::StrContains(word, '=') || split.first.empty() || split.second.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("'", word, "': expected ", what));
  }
  return split;
}

absl::Status ParseWord(absl::string_view word, PushedRow* row) {
  TACHO_ASSIGN_OR_RETURN(const auto split, SplitWord("METRIC=VALUE", word));
  const auto& [name, text] = split;
  if (name == "job") {
    row->job = text;
    return absl::OkStatus();
  }
  if (name == "step") {
    if (absl::SimpleAtoi(text, &row->step.emplace())) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("step '", text, "': expected a whole number"));
  }
  double value = 0;
  if (!absl::SimpleAtod(text, &value)) {
    return absl::InvalidArgumentError(absl::StrCat("'", word, "': expected a number after ="));
  }
  for (const auto& [known, of] : row->values) {
    if (known == name)
      return absl::InvalidArgumentError(absl::StrCat("'", name, "' is there twice"));
  }
  row->values.emplace_back(name, value);
  return absl::OkStatus();
}

absl::StatusOr<PushedRow> ParseRow(const ParsedArgs& args) {
  PushedRow row;
  for (const std::string& word : args.positionals()) {
    TACHO_RETURN_IF_ERROR(ParseWord(word, &row));
  }
  if (row.job.empty()) {
    return absl::InvalidArgumentError("job=NAME is missing: name the job to push to");
  }
  if (row.values.empty()) {
    return absl::InvalidArgumentError("there is no METRIC=VALUE: name what to push");
  }
  row.source.task.reset();
  for (const auto& [flag, is_task] : {std::pair("task", true), std::pair("attempt", false)}) {
    const auto text = args.Get(flag);
    uint32_t number = 0;
    if (!text) continue;
    if (!absl::SimpleAtoi(*text, &number)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", flag, " '", *text, "': expected a whole number, 0 or more"));
    }
    if (is_task) {
      row.source.task = number;
    } else {
      row.source.attempt = number;
    }
  }
  row.source.host = args.Get("host").value_or(SystemHostName());
  if (row.source.host.empty()) {
    return absl::InvalidArgumentError("--host is missing: this machine has no name");
  }
  for (const std::string& word : args.GetAll("label")) {
    TACHO_ASSIGN_OR_RETURN(auto label, SplitWord("--label NAME=VALUE", word));
    row.source.labels.push_back(std::move(label));
  }
  std::sort(row.source.labels.begin(), row.source.labels.end());
  return row;
}

// The messages of one row, with the layouts that they point to.
class PushedMessages {
 public:
  struct Message {
    uint64_t sequence = 0;
    const v1::Layout* layout = nullptr;
    v1::ClientMessage message;
  };

  explicit PushedMessages(const std::string& job)
      : names_(job),
        builder_(
            job,
            [this](uint64_t sequence, const v1::Layout* layout, v1::ClientMessage* message) {
              names_.Add(layout, {});
              messages_.push_back({sequence, layout, std::move(*message)});
              return absl::OkStatus();
            },
            nullptr) {}

  //   INVALID_ARGUMENT  a name or label is not allowed.
  absl::Status Add(const PushedRow& pushed, absl::Time now) {
    importer::Row row{.time_unix_ns = absl::ToUnixNanos(now), .step = pushed.step};
    for (const auto& [name, value] : pushed.values) {
      std::optional<uint32_t> series;
      TACHO_RETURN_IF_ERROR(builder_.FindSeries(pushed.source.Key(name), &series));
      if (!series) {
        return absl::InvalidArgumentError(
            absl::StrCat("'", name, "': the metric's name or one of its labels is not allowed"));
      }
      row.cells.push_back({*series, value});
    }
    TACHO_RETURN_IF_ERROR(builder_.AddRow(row));
    return builder_.Finish();
  }
  // The same for the same series, so that the collector remembers one sender for a script that runs
  // each night.
  std::string AgentId() { return importer::AgentIdOf(names_.Finish()); }
  std::vector<Message>& messages() { return messages_; }

 private:
  importer::StreamDigest names_;
  std::vector<Message> messages_;
  importer::MessageBuilder builder_;
};

absl::Status SendAll(importer::Upload* upload, PushedMessages* pushed) {
  TACHO_RETURN_IF_ERROR(upload->Connect());
  for (PushedMessages::Message& one : pushed->messages()) {
    TACHO_RETURN_IF_ERROR(upload->Send(one.sequence, one.layout, std::move(one.message)));
  }
  return upload->Finish();
}

int FailPush(const Invocation& invocation, bool reached, const absl::Status& status) {
  std::ostream& err = *invocation.env.err;
  const std::string text = Printable(std::string(status.message()));
  if (reached) {
    err << "tachoctl: the push stopped: " << text << "\n";
    if (absl::IsPermissionDenied(status)) {
      err << "A token for one agent_id needs --agent-id; pushing needs the role write.\n";
    }
    return kNothing;
  }
  err << "tachoctl: cannot reach a collector at " << Printable(invocation.common.address) << ": "
      << text << "\nGive its address: --address HOST:PORT, or TACHO_ADDRESS in the environment.\n";
  return kUnreachable;
}

int ReportPush(const Invocation& invocation, const PushedRow& row,
               const importer::Refusals& refusals) {
  const uint64_t refused = refusals.refused_samples();
  const uint64_t stored = row.values.size() - std::min<uint64_t>(row.values.size(), refused);
  std::ostream& out = *invocation.env.out;
  if (invocation.common.format == Format::kJson) {
    JsonWriter json(out);
    json.Object([&] {
      json.Field("job", row.job);
      json.Field("stored_samples", stored);
      json.Field("refused_samples", refused);
    });
  } else {
    out << "stored " << stored << (stored == 1 ? " sample of " : " samples of ")
        << Printable(row.job) << "\n";
  }
  for (const auto& [reason, sum] : refusals.refused) {
    *invocation.env.err << "tachoctl: the collector refused " << sum.samples << ": "
                        << Printable(sum.detail) << "\n";
  }
  return refused == 0 ? kOk : kNothing;
}

int RunPush(const Invocation& invocation) {
  const Environment& env = invocation.env;
  const auto row = ParseRow(invocation.args);
  if (!row.ok()) return UsageError(env, "push", std::string(row.status().message()));
  if (invocation.common.format == Format::kCsv) {
    return UsageError(env, "push", "--output csv: expected table or json");
  }
  PushedMessages pushed(row->job);
  if (const absl::Status built = pushed.Add(*row, env.now); !built.ok()) {
    return UsageError(env, "push", std::string(built.message()));
  }
  absl::BitGen random;
  importer::UploadOptions options;
  options.address = invocation.common.address;
  options.job = row->job;
  options.security = invocation.common.security;
  options.security_names = kSecurityFlags;
  options.agent_id = invocation.args.Get("agent-id").value_or(pushed.AgentId());
  options.generation = absl::Uniform<uint64_t>(absl::IntervalClosed, random, 1, UINT64_MAX);
  options.version = absl::StrCat("tachoctl ", TACHO_VERSION);
  options.imports = true;
  options.patience = invocation.common.timeout;
  importer::Upload upload(std::move(options));
  const absl::Status sent = SendAll(&upload, &pushed);
  if (!sent.ok()) return FailPush(invocation, upload.reached(), sent);
  return ReportPush(invocation, *row, upload.refusals());
}

}  // namespace

Command PushCommand() {
  return {
      .name = "push",
      .group = CommandGroup::kData,
      .operands = "job=NAME METRIC=VALUE...",
      .summary = "Push a few values of a short job, from a shell script",
      .details = R"(Examples:
  tachoctl push job=eval accuracy=0.93 step=1200
  tachoctl push job=eval accuracy=0.93 loss=0.21 --label set=test --task 3
  tachoctl push job=nightly duration_s=812 --address collector.example:7411

The words job and step name the job and, if there is one, the step of the values; every other word is
a metric. Together they are one row, with the time of now. When the command returns 0, the row is on
the collector's disk. Unlike an HTTP push, it replaces nothing, and values leave /metrics only by
their silence. Exit codes: 1 if the collector refused some of it; 2 if a word or flag is wrong; 3 if
no collector answers.)",
      .flags = {{.name = "label",
                 .letter = 'l',
                 .placeholder = "NAME=VALUE",
                 .help = "A label of each value. Repeat for more.",
                 .repeated = true},
                {.name = "task", .placeholder = "N", .help = "The task. Default: none."},
                {.name = "attempt", .placeholder = "N", .help = "The attempt. Default: 0."},
                {.name = "host",
                 .placeholder = "NAME",
                 .help = "The host. Default: the name of this machine."},
                {.name = "agent-id",
                 .placeholder = "NAME",
                 .help = "Who sends, where a token is for one agent_id only. Default: from the job "
                         "and the names of the metrics."}},
      .min_operands = 2,
      .max_operands = kAnyNumber,
      .run = RunPush};
}

}  // namespace tacho::ctl
