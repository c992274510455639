// Walks the catalogue of one job. Parts of series are compared by their addresses, because there is
// one object for each distinct part.
#include "storage/index/catalog_queries.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace tacho::storage {
namespace {

uint64_t CountDistinct(const std::vector<const Layout*>& layouts) {
  // A layout has no series twice.
  if (layouts.size() == 1) return layouts.front()->series.size();
  std::vector<const Series*> series;
  for (const Layout* layout : layouts) {
    series.insert(series.end(), layout->series.begin(), layout->series.end());
  }
  std::sort(series.begin(), series.end());
  return static_cast<uint64_t>(std::unique(series.begin(), series.end()) - series.begin());
}

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

std::vector<JobEntities::Incarnation> IncarnationsOf(const JobCatalog& catalog) {
  absl::flat_hash_map<std::pair<uint32_t, const SeriesSource*>, std::vector<const Layout*>> layouts;
  for (const Layout& layout : catalog.layouts()) {
    layouts[{layout.attempt, layout.series.front()->source}].push_back(&layout);
  }
  std::vector<JobEntities::Incarnation> incarnations;
  for (const auto& [who, of_it] : layouts) {
    incarnations.push_back({who.first, who.second->task, who.second->host, CountDistinct(of_it)});
  }
  std::sort(incarnations.begin(), incarnations.end(), [](const auto& a, const auto& b) {
    return std::tie(a.attempt, a.task, a.host) < std::tie(b.attempt, b.task, b.host);
  });
  return incarnations;
}

std::vector<JobEntities::Chip> ChipsOf(const JobCatalog& catalog) {
  // There are few label sets, and many series of each.
  std::vector<absl::string_view> chip_of;
  for (const LabelSet& labels : catalog.label_sets()) chip_of.push_back(labels.Find(kChipLabel));
  absl::flat_hash_map<std::pair<const SeriesSource*, absl::string_view>, uint64_t> counts;
  for (uint32_t number = 0; number < catalog.series_count(); ++number) {
    const Series& series = catalog.series(number);
    const absl::string_view chip = chip_of[series.labels->number];
    if (!chip.empty()) ++counts[{series.source, chip}];
  }
  std::vector<JobEntities::Chip> chips;
  for (const auto& [key, series] : counts) {
    chips.push_back({key.first->task, key.first->host, std::string(key.second), series});
  }
  std::sort(chips.begin(), chips.end(), [](const auto& a, const auto& b) {
    return std::make_tuple(absl::string_view(a.host), a.chip.size(), absl::string_view(a.chip),
                           a.task) < std::make_tuple(absl::string_view(b.host), b.chip.size(),
                                                     absl::string_view(b.chip), b.task);
  });
  return chips;
}

std::vector<MetricUse> MetricUsesOf(const JobCatalog& catalog) {
  std::vector<MetricUse> uses;
  std::vector<uint64_t> seen(catalog.label_sets().size(), 0);  // The metric that last had the set.
  for (const JobCatalog::MetricEntry& entry : catalog.metrics()) {
    std::set<absl::string_view> names;
    for (const uint32_t number : entry.series) {
      const LabelSet& labels = *catalog.series(number).labels;
      if (std::exchange(seen[labels.number], uint64_t{entry.id}) == entry.id) continue;
      for (const auto& [name, value] : labels) names.insert(name);
    }
    uses.push_back({entry.metric, entry.series.size(), {}});
    for (const absl::string_view name : names) uses.back().labels.emplace_back(name);
  }
  std::sort(uses.begin(), uses.end(),
            [](const auto& a, const auto& b) { return a.metric.name < b.metric.name; });
  return uses;
}

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
