#include "storage/index/series_select.h"

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "absl/container/flat_hash_map.h"

namespace tacho::storage {
namespace {

using Wanted = std::vector<bool>;  // By number.

Wanted WantedSources(const JobCatalog& job, const std::vector<Matcher>& matchers) {
  Wanted wanted(job.sources().size(), true);
  for (const Matcher& matcher : matchers) {
    if (!matcher.names_source()) continue;
    for (const auto& entry : job.sources()) {
      const uint32_t number = entry.source.number;
      if (wanted[number]) wanted[number] = matcher.MatchesSource(entry.source);
    }
  }
  return wanted;
}

Wanted WantedLabelSets(const JobCatalog& job, const std::vector<Matcher>& matchers) {
  Wanted wanted(job.label_sets().size(), true);
  for (const Matcher& matcher : matchers) {
    if (matcher.names_source()) continue;
    // Values are interned: one of them is always at the same address.
    absl::flat_hash_map<const char*, bool> known;
    for (const LabelSet& set : job.label_sets()) {
      if (!wanted[set.number]) continue;
      const absl::string_view value = set.Find(matcher.label());
      const auto [found, added] = known.try_emplace(value.data(), false);
      if (added) found->second = matcher.MatchesValue(value);
      wanted[set.number] = found->second;
    }
  }
  return wanted;
}

Wanted WantedMetrics(const JobCatalog& job, const std::vector<std::string>& names) {
  Wanted wanted(job.metrics().size() + 1, names.empty());
  for (const std::string& name : names) {
    if (const auto* metric = job.FindMetric(name); metric != nullptr) wanted[metric->id] = true;
  }
  return wanted;
}

}  // namespace

std::vector<const Series*> SelectSeries(const JobCatalog& job, const Selector& selector,
                                        size_t limit) {
  const Wanted metrics = WantedMetrics(job, selector.metrics);
  const Wanted sources = WantedSources(job, selector.matchers);
  const Wanted label_sets = WantedLabelSets(job, selector.matchers);
  uint64_t of_metrics = 0;
  for (const auto& metric : job.metrics())
    of_metrics += metrics[metric.id] ? metric.series.size() : 0;
  uint64_t of_sources = 0;
  for (const auto& entry : job.sources()) {
    if (!sources[entry.source.number]) continue;
    for (const auto& [first, end] : entry.series) of_sources += end - first;
  }
  std::vector<const Series*> found;
  if (of_sources < of_metrics || selector.metrics.empty()) {
    for (const auto& entry : job.sources()) {
      if (!sources[entry.source.number]) continue;
      for (const auto& [first, end] : entry.series) {
        for (uint32_t number = first; number < end; ++number) {
          const Series& series = job.series(number);
          if (!metrics[series.metric_id] || !label_sets[series.labels->number]) continue;
          found.push_back(&series);
          if (found.size() > limit) return found;
        }
      }
    }
    return found;
  }
  for (const auto& metric : job.metrics()) {
    if (!metrics[metric.id]) continue;
    for (const uint32_t number : metric.series) {
      const Series& series = job.series(number);
      if (!sources[series.source->number] || !label_sets[series.labels->number]) continue;
      found.push_back(&series);
      if (found.size() > limit) return found;
    }
  }
  return found;
}

bool SeriesOrder(const Series* a, const Series* b) {
  // Most neighbours share all but one of their parts, and shared parts are one object.
  if (a->metric != b->metric) return a->metric->name < b->metric->name;
  if (a->source != b->source) {
    return std::tie(a->source->task, a->source->host) < std::tie(b->source->task, b->source->host);
  }
  return a->labels != b->labels && a->labels->labels < b->labels->labels;
}

}  // namespace tacho::storage
