// Reads MLPerf logs: numbers become samples, settings attributes, everything else events.
#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/import/json_reader.h"
#include "client/import/readers.h"
#include "client/import/row_maker.h"
#include "client/import/values.h"
#include "proto/base/status_macros.h"

namespace tacho::importer {
namespace {

// Keys whose numbers describe a run and are not measured in it (mlperf_logging's constants).
constexpr absl::string_view kSettings[] = {
    "eval_samples",
    "global_batch_size",
    "gradient_accumulation_steps",
    "init_checkpoint_step",
    "lora_alpha",
    "lora_rank",
    "max_samples",
    "max_sequence_length",
    "max_steps",
    "model_bn_span",
    "num_hosts",
    "num_layers",
    "seed",
    "target_accuracy",
    "train_samples",
    "trained_samples",
    "vocab_size",
    "number_of_nodes",
    "accelerators_per_node",
    "number_of_ranks",
};
constexpr absl::string_view kSettingPrefixes[] = {"opt_", "submission_", "model_", "data_spec_"};

// Metadata of where in the program a line was written, which is no measurement.
constexpr absl::string_view kPlaces[] = {"file", "lineno"};
// Metadata that counts steps, the best first.
constexpr absl::string_view kSteps[] = {"step_num", "step", "samples_count", "epoch_num",
                                        "first_epoch_num"};

template <size_t kSize>
bool IsIn(const absl::string_view (&list)[kSize], absl::string_view text) {
  return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

bool IsSetting(absl::string_view key) {
  for (const absl::string_view prefix : kSettingPrefixes) {
    if (absl::StartsWith(key, prefix)) return true;
  }
  return IsIn(kSettings, key);
}

class MlperfLines {
 public:
  MlperfLines(const ReadOptions& options, RecordSink* sink)
      : options_(options), rows_(options, sink), sink_(sink) {}

  absl::Status Add(const FlatObject& object, absl::string_view where) {
    const JsonMember* key = object.Find("key");
    const JsonMember* time = object.Find("time_ms");
    if (key == nullptr || key->kind != JsonToken::kString || time == nullptr) {
      return absl::InvalidArgumentError("the line has no \"key\" or no \"time_ms\"");
    }
    Sort(object);
    time_ = ParseTimeNs(time->text, TimeUnit::kMillis, absl::UTCTimeZone());
    const JsonMember* value = object.Find("value");
    absl::Status status = AddMetadata(where);
    if (status.ok() && value != nullptr) status = AddValue(key->text, *value, where);
    for (const JsonMember& member : object.members()) {
      absl::string_view name = member.name;
      if (!status.ok() || !absl::ConsumePrefix(&name, "value/")) continue;
      status = rows_.Add({absl::StrCat(key->text, "/", name), member.kind, member.text}, where);
    }
    const bool measured = !rows_.empty();
    if (status.ok()) status = rows_.Finish(time_, step_, where);
    if (status.ok() && !measured && !setting_) status = AddEvent(key->text, value, where);
    // An interval that ends with measurements is an event too.
    if (status.ok() && measured && is_interval_) status = AddEvent(key->text, value, where);
    return status;
  }

 private:
  // Takes the metadata apart.
  void Sort(const FlatObject& object) {
    metadata_.clear();
    step_.reset();
    setting_ = false;
    const JsonMember* type = object.Find("event_type");
    is_interval_ = type != nullptr && absl::StartsWith(type->text, "INTERVAL");
    size_t best = std::size(kSteps);
    for (const JsonMember& member : object.members()) {
      absl::string_view name = member.name;
      if (!absl::ConsumePrefix(&name, "metadata/") || IsIn(kPlaces, name)) continue;
      metadata_.push_back({std::string(name), member.kind, member.text});
      const size_t rank = static_cast<size_t>(
          std::find(std::begin(kSteps), std::end(kSteps), name) - std::begin(kSteps));
      const auto step = ParseInteger(member.text);
      if (rank >= best || !step) continue;
      best = rank;
      step_ = step;
    }
  }

  // Numbers beside the value: loss, learning rate.
  absl::Status AddMetadata(absl::string_view where) {
    for (const JsonMember& member : metadata_) {
      const bool counts = IsIn(kSteps, member.name) || absl::EndsWith(member.name, "_count");
      if (member.kind != JsonToken::kNumber || counts || !options_.Wants(member.name)) continue;
      if (absl::Status status = rows_.Add(member, where); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status AddValue(const std::string& key, const JsonMember& value, absl::string_view where) {
    if (IsSetting(key) || (value.kind == JsonToken::kString && !is_interval_)) {
      setting_ = true;
      return sink_->AddAttributes(options_.attempt, key, value.text);
    }
    if (value.kind != JsonToken::kNumber || !options_.Wants(key)) return absl::OkStatus();
    const std::optional<double> number = ParseNumber(value.text);
    if (!number) {
      sink_->AddSkipped(Skip::kNotNumber, 1, where);
      return absl::OkStatus();
    }
    return rows_.Add(KeyOf(key), *number, where);
  }

  // "metric" and other words of the metadata distinguish series of one key: FID and CLIP.
  SeriesKey KeyOf(const std::string& key) const {
    SeriesKey series = options_.Key(key);
    for (const JsonMember& member : metadata_) {
      if (member.kind == JsonToken::kString && member.name != "ckpt_name" && !member.text.empty()) {
        series.labels.emplace_back(member.name, member.text);
      }
    }
    std::sort(series.labels.begin(), series.labels.end());
    return series;
  }

  absl::Status AddEvent(const std::string& key, const JsonMember* value, absl::string_view where) {
    if (!time_) {
      sink_->Note(absl::StrCat(where, ": an event has no time and is left out"));
      return absl::OkStatus();
    }
    v1::Event event;
    event.mutable_source()->set_host(options_.host);
    event.mutable_source()->set_attempt(options_.attempt);
    if (options_.task) event.mutable_source()->set_task(*options_.task);
    event.set_time_unix_ns(*time_);
    if (step_) event.set_step(*step_);
    event.set_kind(key);
    if (value != nullptr) event.set_message(value->text);
    constexpr size_t kMaxEventFields = 32;  // tacho.v1.Event
    for (const JsonMember& member : metadata_) {
      if (static_cast<size_t>(event.fields_size()) == kMaxEventFields) break;
      (*event.mutable_fields())[member.name] = member.text;
    }
    return sink_->AddEvent(std::move(event));
  }

  const ReadOptions& options_;
  RowMaker rows_;
  RecordSink* const sink_;
  // State of the current line.
  std::vector<JsonMember> metadata_;
  std::optional<int64_t> time_;
  std::optional<int64_t> step_;
  bool is_interval_ = false;
  bool setting_ = false;
};

}  // namespace

absl::Status ReadMlperfLog(OpenSource open, const ReadOptions& options, RecordSink* sink) {
  TACHO_ASSIGN_OR_RETURN(auto source, open());
  LineReader lines(source.get());
  MlperfLines log(options, sink);
  absl::string_view line;
  FlatObject object;
  uint64_t found = 0;
  while (lines.Next(&line)) {
    const size_t marker = line.find(kMlperfMark);
    if (marker == absl::string_view::npos) continue;
    ++found;
    const std::string where = LineText(lines.number());
    absl::Status status = object.Parse(line.substr(marker + kMlperfMark.size()));
    if (status.ok()) {
      status = log.Add(object, where);
    } else {
      status =
          absl::InvalidArgumentError(absl::StripPrefix(std::string(status.message()), "line 1: "));
    }
    if (!status.ok()) status = OnDamagedLine(status, where, options, sink);
    if (!status.ok()) return status;
  }
  if (!lines.status().ok()) return lines.status();
  if (found > 0) return absl::OkStatus();
  return absl::InvalidArgumentError("no line has ':::MLLOG {…}': this is no MLPerf log");
}

}  // namespace tacho::importer
