#include "storage/index/job_entities.h"

#include <algorithm>
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
  std::vector<uint64_t> seen(catalog.label_sets().size(), 0);  // Of which metric, last.
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

}  // namespace tacho::storage
