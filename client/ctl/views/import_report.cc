// The report of an import, as text and as JSON.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/json_writer.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"
#include "client/ctl/views/import_run.h"

namespace tacho::ctl {
namespace {

using importer::Refusals;
using importer::Skip;
using importer::Summary;

constexpr size_t kShownUnits = 20;
constexpr size_t kShownFiles = 5;

std::string ReasonName(v1::Reject::Reason reason) {
  std::string name = v1::Reject::Reason_Name(reason);
  return absl::AsciiStrToLower(absl::StripPrefix(name, "REASON_"));
}

// Advice for a refusal, where the collector's own text has none that fits an import.
std::string Remedy(v1::Reject::Reason reason) {
  switch (reason) {
    case v1::Reject::REASON_TOO_OLD:
      return "The collector keeps less: raise its storage.retention (0s keeps everything), and run "
             "the import again with a new --agent-id, as nothing is sent twice under the same one. "
             "Or give made times a later --start.";
    case v1::Reject::REASON_FUTURE:
      return "The times are ahead of the collector's clock: check --start, --step-time and the "
             "unit of the file's times.";
    default:
      return "";
  }
}

std::string Times(const Summary& summary, absl::TimeZone zone) {
  if (!summary.first_unix_ns) return "none";
  return absl::StrCat(ReadableTime(*summary.first_unix_ns, zone), " to ",
                      ReadableTime(*summary.last_unix_ns, zone));
}

std::string Steps(const Summary& summary) {
  if (!summary.first_step) return "none";
  return absl::StrCat(*summary.first_step, " to ", *summary.last_step);
}

std::string Titles(const Import& import) {
  std::set<std::string> titles;
  for (const ImportedUnit& unit : import.units) titles.insert(FormatTitle(unit.unit.format));
  return absl::StrJoin(titles, ", ");
}

class TextReport {
 public:
  TextReport(const Environment& env, const ImportOptions& options, const Import& import)
      : env_(env), out_(*env.out), options_(options), import_(import), sum_(import.Sum()) {}

  void Print() {
    out_ << Printable(options_.job) << ": " << Count(import_.units.size(), "unit") << " of "
         << Titles(import_) << (options_.dry_run ? " (dry run: nothing is written)" : "") << "\n";
    PrintUnits();
    const Summary& summary = sum_.summary;
    Line("read", absl::StrCat(Count(summary.samples + summary.skipped_samples(), "sample"), ", ",
                              Count(summary.events, "event"), ", ",
                              Count(summary.attributes, "attribute")));
    PrintSkipped();
    Line(options_.dry_run ? "to write" : "written",
         absl::StrCat(Count(summary.samples, "sample"), " of ", Thousands(summary.series.size()),
                      " series in ", Count(summary.rows, "row")));
    if (!options_.dry_run) PrintOutcome();
    if (summary.repeated > 0) {
      Line("repeated",
           absl::StrCat(summary.repeated_is_exact ? "" : "at least ", Thousands(summary.repeated),
                        " of them have the series, attempt, time and step of another: "
                        "one of them stays"));
    }
    if (summary.replaced > 0) {
      Line("lost",
           absl::StrCat(summary.repeated_is_exact ? "" : "at least ", Thousands(summary.replaced),
                        " of these, because they differ from the one that stays; the first: ",
                        summary.first_replaced));
    }
    Line("times", absl::StrCat(Times(summary, env_.zone), " ", ZoneName(env_.now, env_.zone)));
    Line("steps", Steps(summary));
    for (const std::string& note : summary.notes) Line("note", note);
    PrintPassedOver();
  }

 private:
  void Line(absl::string_view name, absl::string_view text) {
    std::string padded(name);
    padded.resize(10, ' ');
    out_ << "  " << padded << Printable(text) << "\n";
  }

  void PrintUnits() {
    if (import_.units.size() < 2) return;
    Table table({{"  NAME", Align::kLeft, true},
                 {"SERIES", Align::kRight},
                 {"SAMPLES", Align::kRight},
                 {"STEPS", Align::kLeft}});
    size_t shown = 0;
    for (const ImportedUnit& unit : import_.units) {
      if (++shown > kShownUnits) break;
      table.AddRow({absl::StrCat("  ", unit.unit.name), Thousands(unit.summary.series.size()),
                    Thousands(unit.summary.samples), Steps(unit.summary)});
    }
    table.Print(out_, env_.width, env_.unicode);
    if (import_.units.size() > kShownUnits) {
      out_ << "  and " << import_.units.size() - kShownUnits << " more\n";
    }
  }

  void PrintPassedOver() {
    const importer::PassedOver& over = import_.passed_over;
    if (over.files == 0) return;
    Line("passed", absl::StrCat("over ", Count(over.files, "file"), " that ",
                                over.files == 1 ? "is no log" : "are no logs", ":"));
    for (size_t i = 0; i < std::min(kShownFiles, over.first.size()); ++i) {
      Line("", absl::StrCat(over.first[i].first, ": ", over.first[i].second));
    }
    if (over.files > kShownFiles) Line("", absl::StrCat("and ", over.files - kShownFiles, " more"));
  }

  void PrintSkipped() {
    for (int i = 0; i < importer::kSkips; ++i) {
      const Summary::Skipped& skipped = sum_.summary.skipped[static_cast<size_t>(i)];
      if (skipped.samples == 0) continue;
      Line("skipped", absl::StrCat(Thousands(skipped.samples), " ", SkipWords(static_cast<Skip>(i)),
                                   "; the first: ", skipped.where));
    }
  }

  void PrintOutcome() {
    Line("stored", absl::StrCat(sum_.exact() ? "" : "at most ", Thousands(sum_.stored),
                                " samples and events, durable"));
    if (sum_.already_messages > 0) {
      Line("before", absl::StrCat(Thousands(sum_.already),
                                  " samples had been delivered by an earlier run of this import"));
    }
    for (const auto& [reason, refused] : sum_.refusals.refused) {
      Line("refused",
           absl::StrCat(Thousands(refused.samples), " by the collector (", ReasonName(reason),
                        "), like ", refused.example, ": ", refused.detail));
      if (const std::string remedy = Remedy(reason); !remedy.empty()) Line("", remedy);
    }
    for (const auto& [reason, folded] : sum_.refusals.folded) {
      Line("folded",
           absl::StrCat(Thousands(folded.samples), " by the collector, into overflow series (",
                        ReasonName(reason), "): ", folded.detail));
    }
    if (sum_.connections > 1) {
      Line("note", "the connection was lost: what the collector refused just before is not known");
    }
  }

  const Environment& env_;
  std::ostream& out_;
  const ImportOptions& options_;
  const Import& import_;
  const ImportedUnit sum_;
};

void WriteSums(absl::string_view name, const std::map<v1::Reject::Reason, Refusals::Sum>& sums,
               JsonWriter* json) {
  json->Objects(name, sums, [&](const auto& reason_and_sum) {
    json->Field("reason", ReasonName(reason_and_sum.first));
    json->Field("samples", reason_and_sum.second.samples);
    json->Field("example", reason_and_sum.second.example);
    json->Field("detail", reason_and_sum.second.detail);
  });
}

void WriteCounts(const ImportedUnit& unit, JsonWriter* json) {
  const Summary& summary = unit.summary;
  const auto range = [&](absl::string_view name, const auto& first, const auto& last) {
    json->Field(name, first ? std::optional(std::vector<int64_t>{*first, *last}) : std::nullopt);
  };
  json->Field("read", summary.samples + summary.skipped_samples());
  json->Field("series", summary.series.size());
  json->Field("rows", summary.rows);
  json->Field("samples", summary.samples);
  json->Field("repeated", summary.repeated);
  json->Field("replaced", summary.replaced);
  json->Field("events", summary.events);
  json->Field("attributes", summary.attributes);
  json->Field("messages", summary.messages);
  json->Field("stored", unit.stored);
  json->Field("already_stored", unit.already);
  json->Field("exact", unit.exact());
  range("times_unix_ns", summary.first_unix_ns, summary.last_unix_ns);
  range("steps", summary.first_step, summary.last_step);
  json->Object("skipped", [&] {
    for (int i = 0; i < importer::kSkips; ++i) {
      const uint64_t samples = summary.skipped[static_cast<size_t>(i)].samples;
      if (samples > 0) json->Field(SkipName(static_cast<Skip>(i)), samples);
    }
  });
  WriteSums("refused", unit.refusals.refused, json);
  WriteSums("folded", unit.refusals.folded, json);
}

void WriteJson(std::ostream& out, const ImportOptions& options, const Import& import) {
  const ImportedUnit sum = import.Sum();
  JsonWriter json(out);
  json.Object([&] {
    json.Field("job", options.job);
    json.Field("dry_run", options.dry_run);
    WriteCounts(sum, &json);
    json.Objects("units", import.units, [&](const ImportedUnit& unit) {
      json.Field("name", unit.unit.name);
      json.Field("format", importer::FormatNames()[static_cast<size_t>(unit.unit.format)]);
      json.Field("agent_id", unit.agent_id);
      json.Field("paths", unit.unit.paths);
      WriteCounts(unit, &json);
    });
    json.Field("notes", sum.summary.notes);
    json.Field("passed_over", import.passed_over.files);
    json.Objects("passed_over_first", import.passed_over.first, [&](const auto& path_and_reason) {
      json.Field("path", path_and_reason.first);
      json.Field("reason", path_and_reason.second);
    });
  });
}

}  // namespace

void ReportImport(const Invocation& invocation, const ImportOptions& options,
                  const Import& import) {
  if (invocation.common.format == Format::kJson) {
    WriteJson(*invocation.env.out, options, import);
  } else {
    TextReport(invocation.env, options, import).Print();
  }
}

}  // namespace tacho::ctl
