// Reads JSON lines: an object of metrics a line, or the lines of an export, which carry their
// own series.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/import/attempt_counter.h"
#include "client/import/exported_series.h"
#include "client/import/json_reader.h"
#include "client/import/readers.h"
#include "client/import/row_maker.h"
#include "client/import/values.h"
#include "proto/base/json_text.h"
#include "proto/base/status_macros.h"

namespace tacho::importer {
namespace {

std::string TextOf(const FlatObject& object, absl::string_view name) {
  const JsonMember* member = object.Find(name);
  return member == nullptr ? "" : member->text;
}

// The members whose names begin with `prefix`, under the rest of their names.
std::vector<std::pair<std::string, std::string>> MembersBelow(const FlatObject& object,
                                                              absl::string_view prefix) {
  std::vector<std::pair<std::string, std::string>> found;
  for (const JsonMember& member : object.members()) {
    absl::string_view name = member.name;
    if (absl::ConsumePrefix(&name, prefix)) found.emplace_back(std::string(name), member.text);
  }
  return found;
}

// Reads the output of 'tachoctl export --format jsonl'.
class ExportedLines {
 public:
  static bool Fits(const FlatObject& first) { return first.Find("tachograph_export") != nullptr; }

  ExportedLines(const ReadOptions& options, RecordSink* sink)
      : series_(options), rows_(options, sink), sink_(sink) {}

  absl::Status Add(const FlatObject& object, absl::string_view where) {
    if (ended_) return absl::InvalidArgumentError("something follows the line with \"end\"");
    if (object.Find("value") != nullptr) return AddSample(object, where);
    if (object.Find("event") != nullptr) return AddEvent(object);
    if (object.Find("metric") != nullptr) return AddDefinition(object);
    if (object.Find("end/samples") != nullptr) {
      ended_ = true;
      return absl::OkStatus();
    }
    uint32_t attempt = 0;
    if (!absl::SimpleAtoi(TextOf(object, "attempt"), &attempt)) return absl::OkStatus();
    for (const auto& [name, value] : MembersBelow(object, "attributes/")) {
      absl::Status status = sink_->AddAttributes(attempt, name, value);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Finish(bool skip_damaged) {
    if (ended_) return absl::OkStatus();
    constexpr absl::string_view kCut =
        "its last line has no \"end\": the export was interrupted, or the file is cut off";
    if (!skip_damaged) {
      return absl::InvalidArgumentError(
          absl::StrCat(kCut, "; export it again, or import what there is with --skip-damaged"));
    }
    sink_->Note(kCut);
    return absl::OkStatus();
  }

 private:
  struct Definition {
    std::string type, unit, help;
  };

  // One text for the labels of a line, as ExportedSeries has it.
  static std::string LabelsOf(const FlatObject& object) {
    std::string labels;
    for (const auto& [name, value] : MembersBelow(object, "labels/")) {
      // Made to be read by ParseLabels(); names have no quotes, values may have anything.
      absl::StrAppend(&labels, labels.empty() ? "{" : ",", JsonString(name), ":",
                      JsonString(value));
    }
    return labels.empty() ? labels : labels + "}";
  }

  ExportedSeries SeriesOf(const FlatObject& object) const {
    ExportedSeries series;
    series.metric = TextOf(object, "metric");
    series.task = TextOf(object, "task");
    series.host = TextOf(object, "host");
    series.attempt = TextOf(object, "attempt");
    series.labels = LabelsOf(object);
    return series;
  }

  absl::Status AddDefinition(const FlatObject& object) {
    definitions_[TextOf(object, "metric")] = {TextOf(object, "type"), TextOf(object, "unit"),
                                              TextOf(object, "help")};
    return absl::OkStatus();
  }

  absl::Status AddSample(const FlatObject& object, absl::string_view where) {
    ExportedSeries exported = SeriesOf(object);
    if (const auto found = definitions_.find(exported.metric); found != definitions_.end()) {
      exported.type = found->second.type;
      exported.unit = found->second.unit;
      exported.help = found->second.help;
    }
    TACHO_ASSIGN_OR_RETURN(const SeriesKey key, series_.Key(exported));
    const std::optional<double> value = ParseNumber(TextOf(object, "value"));
    if (!value) {
      sink_->AddSkipped(Skip::kNotNumber, 1, where);
      return absl::OkStatus();
    }
    TACHO_RETURN_IF_ERROR(rows_.Add(key, *value, where));
    return rows_.Finish(TimeOf(object), ParseInteger(TextOf(object, "step")), where);
  }

  static std::optional<int64_t> TimeOf(const FlatObject& object) {
    return ParseTimeNs(TextOf(object, "time_unix_ns"), TimeUnit::kNanos, absl::UTCTimeZone());
  }

  absl::Status AddEvent(const FlatObject& object) {
    TACHO_ASSIGN_OR_RETURN(const SeriesKey key, series_.Key(SeriesOf(object)));
    const std::optional<int64_t> time = TimeOf(object);
    if (!time) {
      return absl::InvalidArgumentError("the event has no \"time_unix_ns\"");
    }
    v1::Event event;
    event.mutable_source()->set_host(key.host);
    event.mutable_source()->set_attempt(key.attempt);
    if (key.task) event.mutable_source()->set_task(*key.task);
    event.set_time_unix_ns(*time);
    if (const auto step = ParseInteger(TextOf(object, "step"))) event.set_step(*step);
    event.set_kind(TextOf(object, "event"));
    event.set_message(TextOf(object, "message"));
    for (auto& [name, value] : MembersBelow(object, "fields/")) {
      (*event.mutable_fields())[name] = value;
    }
    return sink_->AddEvent(std::move(event));
  }

  ExportedSeriesReader series_;
  RowMaker rows_;
  RecordSink* const sink_;
  absl::flat_hash_map<std::string, Definition> definitions_;  // By metric.
  bool ended_ = false;
};

// Reads lines of any other program: each member is a metric.
class PlainLines {
 public:
  PlainLines(const ReadOptions& options, RecordSink* sink)
      : options_(options),
        attempts_(options, sink),
        rows_(options, &attempts_),
        clock_(options, sink) {}

  absl::Status Add(const FlatObject& object, absl::string_view where) {
    const JsonMember* step_member = Role(object, options_.step_field, IsStepName);
    const JsonMember* time_member = Role(object, options_.time_field, IsTimeName);
    if (step_member == nullptr && time_member == nullptr) return NoRoles(object);
    for (const JsonMember& member : object.members()) {
      if (&member == step_member || &member == time_member) continue;
      if (!options_.Wants(member.name)) continue;
      if (absl::Status status = rows_.Add(member, where); !status.ok()) return status;
    }
    std::optional<int64_t> step;
    if (step_member != nullptr) step = ParseInteger(step_member->text);
    std::optional<int64_t> time;
    absl::Status status;
    if (time_member != nullptr) {
      status = TimeField(time_member->name, options_, &clock_).Read(time_member->text, &time);
    } else if (step) {
      status = clock_.TimeOfStep(*step, &time);
    }
    if (!status.ok()) return status;
    return rows_.Finish(time, step, where);
  }

 private:
  static const JsonMember* Role(const FlatObject& object, const std::string& wanted,
                                bool (*is)(absl::string_view, size_t*)) {
    if (!wanted.empty()) return object.Find(wanted);
    const JsonMember* best = nullptr;
    size_t best_rank = 0;
    for (const JsonMember& member : object.members()) {
      size_t rank = 0;
      if (!is(member.name, &rank) || (best != nullptr && rank >= best_rank)) continue;
      best = &member;
      best_rank = rank;
    }
    return best;
  }

  static absl::Status NoRoles(const FlatObject& object) {
    constexpr size_t kShownNames = 5;
    std::string names;
    for (size_t i = 0; i < std::min(kShownNames, object.members().size()); ++i) {
      absl::StrAppend(&names, i == 0 ? "" : ", ", object.members()[i].name);
    }
    if (names.empty()) {
      return absl::InvalidArgumentError(
          "the object is empty: there is nothing to import; to pass over such lines: "
          "--skip-damaged");
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "no member is a step or a time, as in {\"step\": 1, \"loss\": 2.5}; there are ", names,
        object.members().size() > kShownNames ? ", …" : "",
        "; say which one is: --step-field NAME or --time-field NAME"));
  }

  const ReadOptions& options_;
  AttemptCounter attempts_;
  RowMaker rows_;
  StepClock clock_;
};

}  // namespace

absl::Status ReadJsonLines(OpenSource open, const ReadOptions& options, RecordSink* sink) {
  TACHO_ASSIGN_OR_RETURN(auto source, open());
  LineReader lines(source.get());
  absl::string_view line;
  FlatObject object;
  std::optional<ExportedLines> exported;
  PlainLines plain(options, sink);
  bool first = true;
  while (lines.Next(&line)) {
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    const std::string where = LineText(lines.number());
    absl::Status status = object.Parse(line);
    if (!status.ok()) {
      // The line itself says it, as its first.
      status =
          absl::InvalidArgumentError(absl::StripPrefix(std::string(status.message()), "line 1: "));
    } else if (first && ExportedLines::Fits(object)) {
      exported.emplace(options, sink);
    } else {
      status = exported ? exported->Add(object, where) : plain.Add(object, where);
    }
    first = false;
    if (!status.ok()) status = OnDamagedLine(status, where, options, sink);
    if (!status.ok()) return status;
  }
  if (!lines.status().ok()) return lines.status();
  if (first) return absl::InvalidArgumentError("it is empty: one JSON object a line is expected");
  return exported ? exported->Finish(options.skip_damaged) : absl::OkStatus();
}

}  // namespace tacho::importer
