// The catalogue of one job in memory: its metrics, sources, label sets, series and layouts, each
// once.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/index/number_table.h"
#include "storage/model/series.h"

namespace tacho::storage {

// Words, each stored once. Views of them stay valid as long as the pool.
class StringPool {
 public:
  absl::string_view Intern(absl::string_view text);
  // Empty, with a null pointer, if the word is not there.
  absl::string_view Find(absl::string_view text) const;
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t bytes_ = 0;
  std::deque<std::string> strings_;
  NumberTable known_;
};

// Not thread-safe: the index guards it. But what has been added never moves and never changes, so
// that a Series or a Layout of a living catalogue can be read without a lock.
class JobCatalog {
 public:
  JobCatalog(JobId id, absl::string_view name) : id_(id), name_(name) {}
  JobCatalog(const JobCatalog&) = delete;
  JobCatalog& operator=(const JobCatalog&) = delete;

  JobId id() const { return id_; }
  const std::string& name() const { return name_; }

  // Metrics. Their ids count from 1.
  struct MetricEntry {
    MetricId id = 0;
    Metric metric;
    std::vector<uint32_t> series;  // Numbers of its series, ascending.
    uint32_t overflow = 0;         // How many of them others are folded into.

    // As SeriesLimits::series_per_metric counts them.
    uint64_t counted() const { return series.size() - overflow; }
  };
  const MetricEntry* FindMetric(absl::string_view name) const;
  const MetricEntry* FindMetric(MetricId id) const;
  const MetricEntry* AddMetric(const Metric& metric);  // The name must be new.
  const std::deque<MetricEntry>& metrics() const { return metrics_; }

  // Sources.
  struct SourceEntry {
    SeriesSource source;
    // Its series: ranges of numbers [first, end), ascending.
    std::vector<std::pair<uint32_t, uint32_t>> series;
  };
  const SeriesSource* FindSource(std::optional<uint32_t> task, absl::string_view host) const;
  const SeriesSource* InternSource(std::optional<uint32_t> task, absl::string_view host);
  const std::deque<SourceEntry>& sources() const { return sources_; }

  // Label sets.
  const LabelSet* FindLabels(absl::Span<const LabelSet::Label> labels) const;
  const LabelSet* InternLabels(absl::Span<const LabelSet::Label> labels);
  const std::deque<LabelSet>& label_sets() const { return label_sets_; }

  // Label keys, and how many distinct values each has.
  using LabelKeys = absl::flat_hash_map<absl::string_view, uint64_t>;
  const LabelKeys& label_keys() const { return label_keys_; }
  uint64_t CountValues(absl::string_view key) const;
  bool HasValue(absl::string_view key, absl::string_view value) const;

  // Series, numbered from 0 in the order of their ids. The parts must be this catalogue's.
  const Series* FindSeries(MetricId metric, const SeriesSource* source,
                           const LabelSet* labels) const;
  std::optional<uint32_t> FindNumber(SeriesId id) const;
  // `id` must be higher than any before. nullptr, and nothing is added, if the parts have one.
  const Series* AddSeries(SeriesId id, MetricId metric, const SeriesSource* source,
                          const LabelSet* labels);
  const Series& series(uint32_t number) const { return series_[number]; }
  size_t series_count() const { return series_.size(); }
  // How many of them others are folded into.
  uint64_t overflow_count() const { return overflow_; }
  // Bytes of the names, units, helps, hosts and labels that it owns.
  uint64_t text_bytes() const { return text_bytes_ + strings_.bytes(); }

  // Layouts, in the order of their ids.
  const Layout* FindLayout(uint32_t attempt, bool has_steps,
                           absl::Span<const Series* const> series) const;
  const Layout* FindLayout(LayoutId id) const;  // nullptr if there is none.
  // `layout.id` must be higher than any before.
  const Layout* AddLayout(Layout layout);
  const std::deque<Layout>& layouts() const { return layouts_; }
  uint64_t layout_columns() const { return layout_columns_; }  // In all layouts.

 private:
  bool HasValue(const std::pair<const char*, const char*>& words, size_t hash) const;
  const LabelSet* FindLabels(absl::Span<const LabelSet::Label> labels, size_t hash) const;
  const Series* FindSeries(MetricId metric, const SeriesSource* source, const LabelSet* labels,
                           size_t hash) const;

  const JobId id_;
  const std::string name_;
  StringPool strings_;
  uint64_t text_bytes_ = 0;  // Text that is not in the pool.
  uint64_t overflow_ = 0;
  LabelKeys label_keys_;
  // Keys with their values: as interned words, so that no text is hashed or stored again.
  std::deque<std::pair<const char*, const char*>> label_values_;
  NumberTable label_values_by_words_;

  std::deque<MetricEntry> metrics_;
  NumberTable metrics_by_name_;
  std::deque<SourceEntry> sources_;
  absl::flat_hash_map<std::pair<std::optional<uint32_t>, absl::string_view>, SourceEntry*>
      sources_by_id_;
  std::deque<LabelSet> label_sets_;
  NumberTable label_sets_by_labels_;
  std::deque<Series> series_;
  NumberTable series_by_parts_;
  std::deque<Layout> layouts_;
  uint64_t layout_columns_ = 0;
  NumberTable layouts_by_parts_;
};

}  // namespace tacho::storage
