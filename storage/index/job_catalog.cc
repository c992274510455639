// Adds to a catalogue and looks things up in it. Elements never move, so that pointers to them stay
// good for as long as the catalogue lives.
#include "storage/index/job_catalog.h"

#include <algorithm>
#include <utility>

#include "proto/base/check.h"
#include "storage/index/series_limits.h"

namespace tacho::storage {
namespace {

// The element of a deque in ascending order of ids; its end if there is none.
template <typename T>
typename std::deque<T>::const_iterator FindById(const std::deque<T>& all, uint64_t id) {
  const auto found = std::lower_bound(
      all.begin(), all.end(), id, [](const T& one, uint64_t wanted) { return one.id < wanted; });
  return found == all.end() || found->id != id ? all.end() : found;
}

bool IsOverflow(const LabelSet& labels) { return !labels.Find(kOverflowLabel).empty(); }

}  // namespace

absl::string_view StringPool::Intern(absl::string_view text) {
  if (const absl::string_view known = Find(text); known.data() != nullptr) return known;
  bytes_ += text.size();
  known_.Add(absl::HashOf(text), static_cast<uint32_t>(strings_.size()));
  return strings_.emplace_back(text);
}

absl::string_view StringPool::Find(absl::string_view text) const {
  const auto found =
      known_.Find(absl::HashOf(text), [&](uint32_t number) { return strings_[number] == text; });
  return found ? absl::string_view(strings_[*found]) : absl::string_view();
}

const JobCatalog::MetricEntry* JobCatalog::FindMetric(absl::string_view name) const {
  const auto found = metrics_by_name_.Find(
      absl::HashOf(name), [&](uint32_t number) { return metrics_[number].metric.name == name; });
  return found ? &metrics_[*found] : nullptr;
}

const JobCatalog::MetricEntry* JobCatalog::FindMetric(MetricId id) const {
  return id == 0 || id > metrics_.size() ? nullptr : &metrics_[id - 1];
}

const JobCatalog::MetricEntry* JobCatalog::AddMetric(const Metric& metric) {
  MetricEntry& added = metrics_.emplace_back();
  added.id = static_cast<MetricId>(metrics_.size());
  added.metric = metric;
  text_bytes_ += metric.name.size() + metric.unit.size() + metric.help.size();
  metrics_by_name_.Add(absl::HashOf(absl::string_view(metric.name)), added.id - 1);
  return &added;
}

const SeriesSource* JobCatalog::FindSource(std::optional<uint32_t> task,
                                           absl::string_view host) const {
  const auto found = sources_by_id_.find({task, host});
  return found == sources_by_id_.end() ? nullptr : &found->second->source;
}

const SeriesSource* JobCatalog::InternSource(std::optional<uint32_t> task, absl::string_view host) {
  if (const SeriesSource* known = FindSource(task, host); known != nullptr) return known;
  SourceEntry& added = sources_.emplace_back();
  added.source = {.job = name_,
                  .task = task,
                  .host = std::string(host),
                  .number = static_cast<uint32_t>(sources_.size() - 1)};
  text_bytes_ += name_.size() + host.size();
  sources_by_id_[{task, added.source.host}] = &added;
  return &added.source;
}

const LabelSet* JobCatalog::FindLabels(absl::Span<const LabelSet::Label> labels) const {
  return FindLabels(labels, absl::HashOf(labels));
}

const LabelSet* JobCatalog::FindLabels(absl::Span<const LabelSet::Label> labels,
                                       size_t hash) const {
  const auto found = label_sets_by_labels_.Find(hash, [&](uint32_t number) {
    return absl::MakeConstSpan(label_sets_[number].labels) == labels;
  });
  return found ? &label_sets_[*found] : nullptr;
}

const LabelSet* JobCatalog::InternLabels(absl::Span<const LabelSet::Label> labels) {
  const size_t hash = absl::HashOf(labels);
  if (const LabelSet* known = FindLabels(labels, hash); known != nullptr) return known;
  LabelSet& added = label_sets_.emplace_back();
  added.number = static_cast<uint32_t>(label_sets_.size() - 1);
  added.labels.reserve(labels.size());
  for (const auto& [name, value] : labels) {
    const absl::string_view key = strings_.Intern(name);
    const absl::string_view interned = strings_.Intern(value);
    added.labels.emplace_back(key, interned);
    const std::pair words(key.data(), interned.data());
    const size_t words_hash = absl::HashOf(words);
    if (HasValue(words, words_hash)) continue;
    label_values_by_words_.Add(words_hash, static_cast<uint32_t>(label_values_.size()));
    label_values_.push_back(words);
    ++label_keys_[key];
  }
  label_sets_by_labels_.Add(hash, added.number);
  return &added;
}

uint64_t JobCatalog::CountValues(absl::string_view key) const {
  const auto found = label_keys_.find(key);
  return found == label_keys_.end() ? 0 : found->second;
}

bool JobCatalog::HasValue(absl::string_view key, absl::string_view value) const {
  const absl::string_view known_key = strings_.Find(key);
  const absl::string_view known_value = strings_.Find(value);
  if (known_key.data() == nullptr || known_value.data() == nullptr) return false;
  const std::pair words(known_key.data(), known_value.data());
  return HasValue(words, absl::HashOf(words));
}

bool JobCatalog::HasValue(const std::pair<const char*, const char*>& words, size_t hash) const {
  return label_values_by_words_
      .Find(hash, [&](uint32_t number) { return label_values_[number] == words; })
      .has_value();
}

const Series* JobCatalog::FindSeries(MetricId metric, const SeriesSource* source,
                                     const LabelSet* labels) const {
  return FindSeries(metric, source, labels, absl::HashOf(metric, source, labels));
}

const Series* JobCatalog::FindSeries(MetricId metric, const SeriesSource* source,
                                     const LabelSet* labels, size_t hash) const {
  const auto found = series_by_parts_.Find(hash, [&](uint32_t number) {
    const Series& one = series_[number];
    return one.metric_id == metric && one.source == source && one.labels == labels;
  });
  return found ? &series_[*found] : nullptr;
}

std::optional<uint32_t> JobCatalog::FindNumber(SeriesId id) const {
  const auto found = FindById(series_, id);
  if (found == series_.end()) return std::nullopt;
  return static_cast<uint32_t>(found - series_.begin());
}

const Series* JobCatalog::AddSeries(SeriesId id, MetricId metric, const SeriesSource* source,
                                    const LabelSet* labels) {
  TACHO_CHECK(metric >= 1 && metric <= metrics_.size());
  TACHO_CHECK(source != nullptr && source->number < sources_.size() && labels != nullptr);
  const size_t hash = absl::HashOf(metric, source, labels);
  if (FindSeries(metric, source, labels, hash) != nullptr) return nullptr;
  const auto number = static_cast<uint32_t>(series_.size());
  MetricEntry& of = metrics_[metric - 1];
  series_.push_back({.id = id,
                     .job_id = id_,
                     .metric_id = metric,
                     .metric = &of.metric,
                     .source = source,
                     .labels = labels});
  series_by_parts_.Add(hash, number);
  of.series.push_back(number);
  if (IsOverflow(*labels)) {
    ++of.overflow;
    ++overflow_;
  }
  auto& ranges = sources_[source->number].series;
  if (ranges.empty() || ranges.back().second != number) ranges.emplace_back(number, number);
  ++ranges.back().second;
  return &series_.back();
}

const Layout* JobCatalog::FindLayout(uint32_t attempt, bool has_steps,
                                     absl::Span<const Series* const> series) const {
  const auto found =
      layouts_by_parts_.Find(absl::HashOf(attempt, has_steps, series), [&](uint32_t number) {
        const Layout& one = layouts_[number];
        return one.attempt == attempt && one.has_steps == has_steps &&
               absl::MakeConstSpan(one.series) == series;
      });
  return found ? &layouts_[*found] : nullptr;
}

const Layout* JobCatalog::FindLayout(LayoutId id) const {
  const auto found = FindById(layouts_, id);
  return found == layouts_.end() ? nullptr : &*found;
}

const Layout* JobCatalog::AddLayout(Layout layout) {
  TACHO_CHECK(!layout.series.empty());
  const Layout& added = layouts_.emplace_back(std::move(layout));
  layout_columns_ += added.series.size();
  layouts_by_parts_.Add(
      absl::HashOf(added.attempt, added.has_steps, absl::Span<const Series* const>(added.series)),
      static_cast<uint32_t>(layouts_.size() - 1));
  return &added;
}

}  // namespace tacho::storage
