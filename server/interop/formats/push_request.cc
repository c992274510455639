// Reads what a push has: the labels of its path, and the lines of its body, which become series
// with one sample each. Everything is checked before anything is stored.
#include "server/interop/formats/push_request.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/base/stale_marker.h"
#include "proto/base/status_macros.h"
#include "proto/base/utf8.h"
#include "proto/exposition/exposition.h"
#include "proto/exposition/exposition_scanner.h"
#include "server/errors/error_table.h"
#include "server/interop/formats/label_mapping.h"
#include "server/interop/formats/metric_families.h"

namespace tacho::server::interop {
namespace {

constexpr absl::string_view kBase64 = "@base64";

absl::Status BadPush(absl::string_view text) {
  return errors::ErrorOf(errors::Failure::kMalformed, text);
}

absl::StatusOr<std::string> PushedValue(absl::string_view name, absl::string_view value,
                                        bool is_base64) {
  std::string decoded(value);
  if (is_base64) {
    while (absl::ConsumeSuffix(&value, "=")) {
    }
    if (!absl::WebSafeBase64Unescape(value, &decoded)) {
      return BadPush(absl::StrCat("the path's value of ", name, " is no base64url"));
    }
  }
  if (!IsUtf8(decoded)) return BadPush(absl::StrCat("the path's value of ", name, " is no UTF-8"));
  return decoded;
}

std::string PushedUnit(absl::string_view unit) {
  if (unit == "seconds") return "s";
  if (unit == "bytes") return "By";
  if (unit == "ratio") return "1";
  return std::string(unit);
}

// For histograms, summaries and what has no type, the name of each series decides.
ForeignMetric MetricOf(const ExpositionFamily& family) {
  ForeignMetric metric;
  metric.SetTexts(PushedUnit(family.unit), family.help);
  switch (family.type) {
    case FamilyType::kCounter:
      metric.typed = true;
      metric.type = storage::MetricType::kCounter;
      break;
    case FamilyType::kGauge:
    case FamilyType::kGaugeHistogram:  // Its buckets may fall.
    case FamilyType::kInfo:
    case FamilyType::kStateSet:
      metric.typed = true;
      metric.type = storage::MetricType::kGauge;
      break;
    case FamilyType::kUnknown:
    case FamilyType::kHistogram:
    case FamilyType::kSummary:
      break;
  }
  return metric;
}

std::string KeyOf(absl::string_view name, const ExpositionSample::Labels& own,
                  const storage::Labels& group) {
  storage::Labels labels = group;
  for (const auto& label : own) {
    if (FindLabel(group, label.first) == nullptr) labels.push_back(label);
  }
  std::sort(labels.begin(), labels.end());
  std::string key;
  AppendLabel(kNameLabel, name, &key);
  for (const auto& [label, value] : labels) AppendLabel(label, value, &key);
  return key;
}

absl::StatusOr<Exposition> ReadForm(absl::string_view body, PushForm form) {
  switch (form) {
    case PushForm::kOpenMetrics:
      return ReadOpenMetricsText(body);
    case PushForm::kProtobuf:
      return ReadMetricFamilies(body);
    case PushForm::kText:
      break;
  }
  return ReadPrometheusText(body);
}

// What the format allows and a push may not have.
absl::Status CheckLine(const ExpositionFamily& family, const ExpositionSample& sample) {
  if (sample.time_ns.has_value()) {
    return BadPush(absl::StrCat("a line of ", sample.name,
                                " has a time; a push counts for the moment in which it comes, so "
                                "leave times out"));
  }
  if (sample.name == kPushTime || family.name == kPushTime) {
    return BadPush(absl::StrCat(kPushTime, " is written by the collector; leave it out"));
  }
  for (const auto& [name, value] : sample.labels) {
    if (name == kNameLabel) {
      return BadPush(absl::StrCat("a line of ", sample.name, " has the label ", kNameLabel));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<storage::Labels> ReadPushPath(absl::string_view path) {
  absl::string_view rest = path;
  const bool begins = absl::ConsumePrefix(&rest, kPushPath);
  const bool is_base64 = absl::ConsumePrefix(&rest, kBase64);
  if (!begins || !absl::ConsumePrefix(&rest, "/")) {
    return BadPush("a push goes to /metrics/job/JOB{/LABEL/VALUE}");
  }
  const std::vector<absl::string_view> parts = absl::StrSplit(rest, '/');
  if (parts.size() % 2 == 0) {
    return BadPush(absl::StrCat("the path's label ", parts.back(),
                                " has no value; a value with / in it goes after ", parts.back(),
                                kBase64));
  }
  storage::Labels labels;
  TACHO_ASSIGN_OR_RETURN(std::string job, PushedValue("job", parts[0], is_base64));
  if (job.empty()) return BadPush("the path's job is empty");
  labels.emplace_back("job", std::move(job));
  for (size_t i = 1; i < parts.size(); i += 2) {
    absl::string_view name = parts[i];
    const bool is_packed = absl::ConsumeSuffix(&name, kBase64);
    if (!IsLabelName(name) || absl::StartsWith(name, "__")) {
      return BadPush(absl::StrCat("\"", name, "\" in the path is no name of a label"));
    }
    if (FindLabel(labels, name) != nullptr) {
      return BadPush(absl::StrCat("the path has the label ", name, " twice"));
    }
    TACHO_ASSIGN_OR_RETURN(std::string value, PushedValue(name, parts[i + 1], is_packed));
    labels.emplace_back(std::string(name), std::move(value));
  }
  std::sort(labels.begin(), labels.end());
  return labels;
}

absl::StatusOr<PushedLines> ReadPushedLines(absl::string_view body, PushForm form,
                                            const storage::Labels& group, int64_t time_ns) {
  auto read = ReadForm(body, form);
  if (!read.ok()) {
    return errors::ErrorOf(absl::IsResourceExhausted(read.status()) ? errors::Failure::kTooLarge
                                                                    : errors::Failure::kMalformed,
                           read.status().message());
  }
  PushedLines lines;
  for (const ExpositionFamily& family : read->families) {
    lines.write.metrics.push_back(MetricOf(family));
  }
  absl::flat_hash_set<absl::string_view> seen;
  const auto add = [&](std::string key, std::string name, const ForeignMetric* metric,
                       double value) {
    lines.series.push_back({key, std::move(name)});
    lines.write.AddSeriesWithText(std::move(key), metric, ForeignSeries::Part::kSample);
    lines.write.AddSample(time_ns, value);
    return seen.insert(lines.write.series.back().key).second;
  };
  for (const ExpositionSample& sample : read->samples) {
    const ExpositionFamily& family = read->families[sample.family];
    TACHO_RETURN_IF_ERROR(CheckLine(family, sample));
    // The time at which a counter began is no counter.
    const bool began =
        family.type == FamilyType::kCounter && absl::EndsWith(sample.name, "_created");
    const ForeignMetric* const metric = began ? nullptr : &lines.write.metrics[sample.family];
    if (!add(KeyOf(sample.name, sample.labels, group), family.name, metric, sample.value)) {
      return BadPush(absl::StrCat("two lines of ", sample.name,
                                  " are the same series once the path's labels are set"));
    }
    TACHO_RETURN_IF_ERROR(lines.write.CheckSize());
  }
  ForeignMetric& time = lines.write.metrics.emplace_back();
  time.typed = true;
  time.type = storage::MetricType::kGauge;
  time.SetTexts("s", "When this group was last pushed, since 1970");
  add(KeyOf(kPushTime, {}, group), std::string(kPushTime), &time,
      static_cast<double>(time_ns) / 1e9);
  TACHO_RETURN_IF_ERROR(lines.write.CheckSize());
  return lines;
}

absl::Status AddEnds(const std::vector<std::string>& keys, int64_t time_ns, ForeignWrite* write) {
  for (const std::string& key : keys) {
    write->AddSeriesWithText(key, nullptr, ForeignSeries::Part::kSample);
    write->AddSample(time_ns, StaleMarker());
    TACHO_RETURN_IF_ERROR(write->CheckSize());
  }
  return absl::OkStatus();
}

}  // namespace tacho::server::interop
