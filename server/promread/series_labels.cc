#include "server/promread/series_labels.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/aggregate/exposition_name.h"

namespace tacho::server::promread {
namespace {

constexpr absl::string_view kExported = "exported_";
// The names of labels that are made here.
constexpr std::array<absl::string_view, 6> kMadeLabels = {kNameLabel, "attempt", "host",
                                                          "job",      "metric",  "task"};

bool IsMade(absl::string_view name) {
  return std::find(kMadeLabels.begin(), kMadeLabels.end(), name) != kMadeLabels.end();
}

bool IsPrometheusName(absl::string_view name) {
  const auto allowed = [](char c) {
    return c == '_' || c == ':' || absl::ascii_isalnum(static_cast<unsigned char>(c));
  };
  return !name.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), allowed);
}

}  // namespace

MetricLabels MetricLabelsOf(const storage::Metric& metric) {
  if (IsPrometheusName(metric.name)) return {metric.name, ""};
  const auto exposed = aggregate::ExpositionNameOf("{metric}", metric.name, metric.type);
  MetricLabels labels = {exposed.family, metric.name};
  // A family of a histogram is without it; this is one series of the family.
  if (metric.type == storage::MetricType::kHistogram) absl::StrAppend(&labels.name, "_bucket");
  // Digits may come first, for which /metrics has its prefix.
  if (!IsPrometheusName(labels.name)) labels.name.insert(0, "_");
  return labels;
}

LabelList LabelsOf(const storage::Series& series, uint32_t attempt) {
  LabelList labels;
  labels.reserve(series.labels->size() + kMadeLabels.size());
  const auto add = [&labels](absl::string_view name, absl::string_view value) {
    if (!value.empty()) labels.emplace_back(name, value);
  };
  MetricLabels metric = MetricLabelsOf(*series.metric);
  add(kNameLabel, metric.name);
  add("job", series.source->job);
  if (series.source->task.has_value()) add("task", absl::StrCat(*series.source->task));
  add("host", series.source->host);
  add("attempt", absl::StrCat(attempt));
  add("metric", metric.metric);
  const auto taken = [&](absl::string_view name) {
    return IsMade(name) || !series.labels->Find(name).empty();
  };
  for (const auto& [name, value] : *series.labels) {
    std::string own(name);
    if (IsMade(name)) {
      do {
        own.insert(0, kExported.data(), kExported.size());
      } while (taken(own));
    }
    add(own, value);
  }
  std::sort(labels.begin(), labels.end());
  return labels;
}

absl::string_view ValueOf(const LabelList& labels, absl::string_view name) {
  const auto found = std::find_if(labels.begin(), labels.end(),
                                  [&](const auto& one) { return one.first == name; });
  return found == labels.end() ? absl::string_view() : absl::string_view(found->second);
}

bool MatchesAll(const std::vector<storage::Matcher>& matchers, const LabelList& labels) {
  return std::all_of(matchers.begin(), matchers.end(), [&](const storage::Matcher& matcher) {
    return matcher.MatchesValue(ValueOf(labels, matcher.label()));
  });
}

bool MeansTheSameInStore(const storage::Matcher& matcher) {
  return matcher.names_source() ||
         (!IsMade(matcher.label()) && !absl::StartsWith(matcher.label(), kExported));
}

}  // namespace tacho::server::promread
