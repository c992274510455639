// Decides column by column: a series that exists passes, and a new one is added, folded or refused
// by the first limit that it breaks.
#include "storage/index/registration.h"

#include <algorithm>
#include <bit>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"

namespace tacho::storage {
namespace {

using LabelViews = absl::InlinedVector<LabelSet::Label, 8>;

// The bound of a histogram's bucket: without it counts of different buckets look alike, and cannot
// be added up.
constexpr absl::string_view kBucketLabel = "le";

// Labels beyond the 64th share its bit.
uint64_t Bit(size_t label) { return uint64_t{1} << std::min<size_t>(label, 63); }

// Labels of the overflow series for a series without those that are `dropped`; nullopt if what
// would be left means nothing.
std::optional<LabelViews> OverflowLabels(const SeriesDefinition& wanted, const LabelViews& labels,
                                         uint64_t dropped) {
  const bool histogram = wanted.metric.type == MetricType::kHistogram;
  LabelViews kept;
  for (size_t i = 0; i < labels.size(); ++i) {
    const bool bucket = histogram && labels[i].first == kBucketLabel;
    if ((dropped & Bit(i)) == 0) {
      kept.push_back(labels[i]);
    } else if (bucket) {
      return std::nullopt;
    }
  }
  const LabelSet::Label overflow(kOverflowLabel, kOverflowValue);
  kept.insert(std::lower_bound(kept.begin(), kept.end(), overflow), overflow);
  return kept;
}

// Every label that a fold may drop.
uint64_t AllButBuckets(const SeriesDefinition& wanted, const LabelViews& labels) {
  uint64_t all = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const bool bucket =
        wanted.metric.type == MetricType::kHistogram && labels[i].first == kBucketLabel;
    if (!bucket) all |= Bit(i);
  }
  return all;
}

}  // namespace

Registering::Registering(const LayoutDefinition* definition, const LimitPolicy* policy)
    : definition_(*definition), policy_(*policy), columns_(definition->series.size()) {
  pending_ = columns_.size();
  LimitPolicy::OfJob rules(policy, definition->source.job);
  for (size_t i = 0; i < columns_.size(); ++i) {
    columns_[i].rule = rules.RuleOf(definition->series[i].metric.name);
  }
}

absl::Status Registering::CheckDistinct() const {
  absl::flat_hash_map<size_t, uint32_t> seen;
  seen.reserve(columns_.size());
  for (uint32_t column = 0; column < columns_.size(); ++column) {
    const SeriesDefinition& wanted = definition_.series[column];
    const auto [same, fresh] =
        seen.try_emplace(absl::HashOf(wanted.metric.name, wanted.labels), column);
    if (fresh) continue;
    const SeriesDefinition& other = definition_.series[same->second];
    if (other.metric.name != wanted.metric.name || other.labels != wanted.labels) continue;
    return absl::InvalidArgumentError(absl::StrCat("series ", column, " of the layout, ",
                                                   wanted.metric.name,
                                                   ", stands in it twice with the same labels"));
  }
  return absl::OkStatus();
}

void Registering::NoteAll(Limit limit, LimitAction action) {
  for (uint32_t column = 0; column < columns_.size(); ++column) Note(column, {limit}, action);
}

void Registering::Start(const JobCatalog* catalog) {
  catalog_ = catalog;
  source_ = nullptr;
  series_before_ = 0;
  metrics_added_.clear();
  series_added_.clear();
  pending_ = columns_.size();
  for (Column& column : columns_) column = {.rule = column.rule};
  breaches_.clear();
  folded_.clear();
  folded_columns_.clear();
  folded_index_.clear();
}

void Registering::BeginRecord() {
  source_ = catalog_->FindSource(definition_.source.task, definition_.source.host);
  series_before_ = catalog_->series_count();
  metrics_added_.clear();
  series_added_.clear();
}

Registering::Lookup Registering::Find(absl::string_view metric,
                                      absl::Span<const LabelSet::Label> labels) const {
  Lookup found;
  found.metric = catalog_->FindMetric(metric);
  found.labels = catalog_->FindLabels(labels);
  if (found.metric != nullptr && found.labels != nullptr && source_ != nullptr) {
    found.series = catalog_->FindSeries(found.metric->id, source_, found.labels);
  }
  return found;
}

std::optional<Registering::Fault> Registering::FindLabelFault(const LabelViews& labels,
                                                              bool set_exists,
                                                              const SeriesLimits& limits) const {
  std::optional<Fault> fault;
  const auto at_fault = [&](size_t label, Limit limit) {
    if (!fault || limit < fault->limit) fault = {limit, fault ? fault->labels : 0};
    fault->labels |= Bit(label);
  };
  const auto& allowed = limits.allowed_labels;
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto& [name, value] = labels[i];
    if (name.size() > limits.label_name_bytes) at_fault(i, Limit::kLabelNameBytes);
    if (value.size() > limits.label_value_bytes) at_fault(i, Limit::kLabelValueBytes);
    if (!allowed.empty() && !std::binary_search(allowed.begin(), allowed.end(), name)) {
      at_fault(i, Limit::kAllowedLabels);
    }
    if (!set_exists && catalog_->CountValues(name) >= limits.values_per_label &&
        !catalog_->HasValue(name, value)) {
      at_fault(i, Limit::kLabelValues);
    }
  }
  return fault;
}

std::optional<Registering::Fault> Registering::FindFault(const SeriesDefinition& wanted,
                                                         const LabelViews& labels,
                                                         const Lookup& found,
                                                         const SeriesLimits& limits) const {
  if (wanted.metric.name.size() > limits.metric_name_bytes) return Fault{Limit::kMetricNameBytes};
  if (labels.size() > limits.labels_per_series) return Fault{Limit::kLabels, ~uint64_t{0}};
  if (auto fault = FindLabelFault(labels, found.labels != nullptr, limits)) return fault;
  const uint64_t of_metric = found.metric == nullptr ? 0 : found.metric->counted();
  if (of_metric >= limits.series_per_metric) return Fault{Limit::kMetricSeries};
  if (catalog_->series_count() - catalog_->overflow_count() >= limits.series_per_job) {
    return Fault{Limit::kJobSeries};
  }
  return std::nullopt;
}

std::optional<Registering::Fault> Registering::FindTotalFault(const IndexUse& use) const {
  const TotalLimits& totals = policy_.totals();
  if (use.text_bytes >= totals.text_bytes) return Fault{Limit::kTextBytes};
  if (use.series >= totals.series) return Fault{Limit::kSeries};
  if (use.stored_series >= totals.stored_series) return Fault{Limit::kStoredSeries};
  return std::nullopt;
}

void Registering::Resolve(size_t begin, size_t end, const IndexUse& use) {
  TACHO_CHECK(catalog_ != nullptr && end <= columns_.size());
  IndexUse unchanged = use;
  for (size_t column = begin; column < end; ++column) {
    Settle(static_cast<uint32_t>(column), &unchanged, nullptr);
  }
}

void Registering::Add(size_t begin, size_t end, JobCatalog* catalog, IndexUse* use,
                      SeriesId* next) {
  TACHO_CHECK(catalog == catalog_ && end <= columns_.size());
  const Growth growth{catalog, next};
  for (size_t column = begin; column < end; ++column) {
    if (!columns_[column].settled) Settle(static_cast<uint32_t>(column), use, &growth);
  }
}

void Registering::Settle(uint32_t column, IndexUse* use, const Growth* growth) {
  const SeriesDefinition& wanted = definition_.series[column];
  const LabelViews labels(wanted.labels.begin(), wanted.labels.end());
  for (size_t i = 0; i < labels.size(); ++i) {
    // Else a column could be stored in the very series that others of the layout are folded into.
    if (labels[i].first != kOverflowLabel) continue;
    return Note(column, {Limit::kAllowedLabels, Bit(i)}, LimitAction::kReject);
  }
  const Lookup found = Find(wanted.metric.name, labels);
  if (found.series != nullptr) return Store(column, found.series);

  const SeriesLimits& limits = policy_.OfRule(columns_[column].rule);
  const LimitAction total_action = policy_.totals().action;
  const std::optional<Fault> own = FindFault(wanted, labels, found, limits);
  const std::optional<Fault> total = FindTotalFault(*use);
  const bool own_counts = own && limits.action != LimitAction::kObserve;
  const std::optional<Fault>& fault = own_counts ? own : total;
  const LimitAction action = own_counts ? limits.action : total_action;
  if (fault && action != LimitAction::kObserve) {
    Folding folding = Folding::kNoRoom;
    if (action == LimitAction::kFold && fault->limit != Limit::kMetricNameBytes) {
      folding = Fold(column, fault->labels, use, growth);
    }
    if (folding == Folding::kPending) return;
    return Note(column, *fault,
                folding == Folding::kDone ? LimitAction::kFold : LimitAction::kReject);
  }
  if (growth == nullptr) return;
  Store(column, AddSeries(wanted.metric, labels, found, use, *growth));
  if (own || total) Note(column, own ? *own : *total, LimitAction::kObserve);
}

Registering::Folding Registering::Fold(uint32_t column, uint64_t labels_at_fault, IndexUse* use,
                                       const Growth* growth) {
  const SeriesDefinition& wanted = definition_.series[column];
  const LabelViews labels(wanted.labels.begin(), wanted.labels.end());
  const uint64_t budget = policy_.OfRule(columns_[column].rule).overflow_series_per_job;
  const bool room = !FindTotalFault(*use) || policy_.totals().action == LimitAction::kObserve;
  const uint64_t all = AllButBuckets(wanted, labels);
  // Half of the budget is for series that stand for everything, which there are fewest of.
  const std::pair<uint64_t, uint64_t> ways[] = {{labels_at_fault, budget / 2}, {all, budget}};
  for (const auto& [dropped, of_budget] : ways) {
    if (dropped == 0) continue;
    const auto kept = OverflowLabels(wanted, labels, dropped);
    if (!kept) return Folding::kNoRoom;
    Lookup found = Find(wanted.metric.name, *kept);
    if (found.series == nullptr && room && catalog_->overflow_count() < of_budget) {
      if (growth == nullptr) return Folding::kPending;
      found.series = AddSeries(wanted.metric, *kept, found, use, *growth);
    }
    if (found.series == nullptr) continue;
    FoldInto(column, found.series);
    return Folding::kDone;
  }
  return Folding::kNoRoom;
}

const Series* Registering::AddSeries(const Metric& metric, const LabelViews& labels,
                                     const Lookup& found, IndexUse* use, const Growth& growth) {
  JobCatalog& catalog = *growth.catalog;
  const uint64_t text_before = catalog.text_bytes();
  const JobCatalog::MetricEntry* entry = found.metric;
  if (entry == nullptr) {
    entry = catalog.AddMetric(metric);
    metrics_added_.push_back(entry);
  }
  if (source_ == nullptr) {
    source_ = catalog.InternSource(definition_.source.task, definition_.source.host);
  }
  const LabelSet* const set = found.labels != nullptr ? found.labels : catalog.InternLabels(labels);
  const Series* const series = catalog.AddSeries((*growth.next)++, entry->id, source_, set);
  TACHO_CHECK(series != nullptr);  // It was looked for, and is new.
  series_added_.push_back(series);
  ++use->series;
  ++use->stored_series;
  use->text_bytes += catalog.text_bytes() - text_before;
  return series;
}

void Registering::Store(uint32_t column, const Series* series) {
  TACHO_CHECK(series != nullptr && !columns_[column].settled && pending_ > 0);
  columns_[column].series = series;
  columns_[column].settled = true;
  --pending_;
}

void Registering::FoldInto(uint32_t column, const Series* series) {
  const auto [place, fresh] = folded_index_.try_emplace(series, folded_.size());
  if (fresh) {
    folded_.push_back(series);
    folded_columns_.emplace_back();
  }
  folded_columns_[place->second].push_back(column);
}

void Registering::Note(uint32_t column, const Fault& fault, LimitAction action) {
  const bool of_total = fault.limit == Limit::kJobs || fault.limit >= Limit::kTextBytes;
  const size_t labels = definition_.series[column].labels.size();
  const int first = fault.labels == 0 ? -1 : std::countr_zero(fault.labels);
  breaches_.push_back(
      {.column = column,
       .limit = fault.limit,
       .action = action,
       .rule = of_total ? LimitPolicy::kNoRule : columns_[column].rule,
       .label = fault.limit == Limit::kLabels || first >= static_cast<int>(labels) ? -1 : first});
  if (action == LimitAction::kObserve || columns_[column].settled) return;
  TACHO_CHECK(pending_ > 0);
  columns_[column].settled = true;
  --pending_;
}

std::vector<const Series*> Registering::LayoutSeries() const {
  std::vector<const Series*> series;
  series.reserve(columns_.size());
  for (const Column& column : columns_) {
    if (column.series != nullptr) series.push_back(column.series);
  }
  series.insert(series.end(), folded_.begin(), folded_.end());
  return series;
}

std::vector<uint32_t> Registering::StoredColumns() const {
  std::vector<uint32_t> stored;
  stored.reserve(columns_.size());
  for (uint32_t column = 0; column < columns_.size(); ++column) {
    if (columns_[column].series != nullptr) stored.push_back(column);
  }
  return stored;
}

}  // namespace tacho::storage
