#include "client/import/exported_series.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/import/json_reader.h"

namespace tacho::importer {
namespace {

absl::Status ParseNumberField(absl::string_view name, const std::string& text, uint32_t* number) {
  if (absl::SimpleAtoi(text, number)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the ", name, " '", text, "' is no whole number"));
}

}  // namespace

v1::MetricType MetricTypeOf(absl::string_view name) {
  if (name == "gauge") return v1::METRIC_TYPE_GAUGE;
  if (name == "counter") return v1::METRIC_TYPE_COUNTER;
  if (name == "histogram") return v1::METRIC_TYPE_HISTOGRAM;
  return v1::METRIC_TYPE_UNSPECIFIED;
}

absl::StatusOr<SeriesKey> ExportedSeriesReader::Key(const ExportedSeries& series) {
  SeriesKey key;
  key.metric = series.metric;
  key.type = MetricTypeOf(series.type);
  key.unit = series.unit;
  key.help = series.help;
  key.host = series.host.empty() ? options_.host : series.host;
  if (!series.task.empty()) {
    absl::Status status = ParseNumberField("task", series.task, &key.task.emplace());
    if (!status.ok()) return status;
  }
  if (!series.attempt.empty()) {
    absl::Status status = ParseNumberField("attempt", series.attempt, &key.attempt);
    if (!status.ok()) return status;
  }
  if (series.labels != labels_text_) {
    absl::StatusOr<Labels> labels = ParseLabels(series.labels);
    if (!labels.ok()) return labels.status();
    labels_ = *std::move(labels);
    labels_text_ = series.labels;
  }
  key.labels = labels_;
  key.labels.insert(key.labels.end(), options_.labels.begin(), options_.labels.end());
  return key;
}

absl::StatusOr<ExportedSeriesReader::Labels> ExportedSeriesReader::ParseLabels(
    const std::string& text) const {
  Labels labels;
  if (absl::StartsWith(text, "{")) {
    FlatObject object;
    if (absl::Status status = object.Parse(text); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("the labels: ", status.message()));
    }
    for (const JsonMember& member : object.members()) labels.emplace_back(member.name, member.text);
  } else {
    for (absl::string_view piece : absl::StrSplit(text, ',', absl::SkipEmpty())) {
      const std::pair<std::string, std::string> label =
          absl::StrSplit(piece, absl::MaxSplits('=', 1));
      labels.push_back(label);
    }
  }
  std::sort(labels.begin(), labels.end());
  return labels;
}

}  // namespace tacho::importer
