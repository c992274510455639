// Decides about the columns of one layout definition: which are series that exist, which are
// added, refused or folded. In memory only; the index brings the locks and the disk.
//
// A refused column costs a few lookups by hash and comparisons: nothing is stored for it, neither
// here nor in the catalogue. The columns are worked through in pieces, so that the holder of a lock
// meanwhile can let others in between two of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/index/job_catalog.h"
#include "storage/index/series_limits.h"
#include "storage/model/series.h"

namespace tacho::storage {

// How much the index holds as a whole.
struct IndexUse {
  uint64_t series = 0;  // In memory.
  uint64_t stored_series = 0;
  uint64_t text_bytes = 0;
};

// The outcome of registering a layout.
struct Registration {
  // Its series are first those of `columns`, then one for each of `folded`; nullptr if every
  // column was refused.
  LayoutPtr layout;
  // Columns of the definition that are stored as they are, ascending.
  std::vector<uint32_t> columns;
  // Columns of the definition whose values are to be added up, row by row.
  std::vector<std::vector<uint32_t>> folded;
  std::vector<Breach> breaches;               // What was refused, folded or observed.
  std::shared_ptr<const LimitPolicy> limits;  // The limits that were applied.
};

// One thread. Resolve() all columns, then, if some are pending, Add() all of them. Between two
// pieces others may add to the catalogue.
class Registering {
 public:
  // Neither is owned; both must outlive this.
  Registering(const LayoutDefinition* definition, const LimitPolicy* policy);

  // INVALID_ARGUMENT if a series stands in the definition twice.
  absl::Status CheckDistinct() const;

  size_t columns() const { return definition_.series.size(); }

  // Every column breaks a limit on jobs: they are refused, or it is only noted.
  void NoteAll(Limit limit, LimitAction action);
  // Begins (again) with the catalogue of the job, which must outlive this. An empty one stands for
  // a job that is not there yet. Looks at nothing in it: others may be adding to it.
  void Start(const JobCatalog* catalog);

  // Columns [begin, end), after BeginRecord(): finds those that exist, and refuses or folds what
  // needs nothing added. The rest is pending. Counts only grow while a job lives, so that a refusal
  // stays right.
  void Resolve(size_t begin, size_t end, const IndexUse& use);
  bool anything_pending() const { return pending_ > 0; }
  // How many series the catalogue had at BeginRecord(). If it has as many as at that before
  // Resolve(), what that found is all there is.
  size_t series_before() const { return series_before_; }

  // Before Resolve(), and before Add(): the records of what it adds begin here. Others may have
  // added to the catalogue since.
  void BeginRecord();
  // Pending columns of [begin, end): adds, folds or refuses them. `catalog` is that of Start().
  // `*next` is the next id to give and `*use` what the index holds; both are moved on.
  void Add(size_t begin, size_t end, JobCatalog* catalog, IndexUse* use, SeriesId* next);

  // --- Once no column is pending:

  // Series of the layout: first those of `columns`, then those that others are folded into.
  std::vector<const Series*> LayoutSeries() const;
  // Columns of the definition that are stored as they are, ascending.
  std::vector<uint32_t> StoredColumns() const;
  // For each overflow series of the layout, the columns whose values are added up in it.
  std::vector<std::vector<uint32_t>> TakeFolded() { return std::move(folded_columns_); }
  std::vector<Breach> TakeBreaches() { return std::move(breaches_); }

  // What Add() has added since BeginRecord(), in the order of their ids.
  const std::vector<const JobCatalog::MetricEntry*>& metrics_added() const {
    return metrics_added_;
  }
  const std::vector<const Series*>& series_added() const { return series_added_; }

 private:
  using LabelViews = absl::InlinedVector<LabelSet::Label, 8>;
  // The catalogue's entries for a series; nullptr where it has none.
  struct Lookup {
    const JobCatalog::MetricEntry* metric = nullptr;
    const LabelSet* labels = nullptr;
    const Series* series = nullptr;
  };
  // A limit that a new series breaks, and which of its labels do: bit by bit, 0 if none in
  // particular.
  struct Fault {
    Limit limit = Limit::kJobs;
    uint64_t labels = 0;
  };
  // The things that adding changes; functions that may add get it.
  struct Growth {
    JobCatalog* catalog;
    SeriesId* next;
  };
  enum class Folding { kDone, kPending, kNoRoom };
  struct Column {
    const Series* series = nullptr;  // Stored as it is; once settled, nullptr is: it is not.
    int rule = LimitPolicy::kNoRule;
    bool settled = false;
  };

  Lookup Find(absl::string_view metric, absl::Span<const LabelSet::Label> labels) const;
  // The limit that a new series breaks: one of its own, or one of the index as a whole.
  std::optional<Fault> FindFault(const SeriesDefinition& wanted, const LabelViews& labels,
                                 const Lookup& found, const SeriesLimits& limits) const;
  std::optional<Fault> FindLabelFault(const LabelViews& labels, bool set_exists,
                                      const SeriesLimits& limits) const;
  std::optional<Fault> FindTotalFault(const IndexUse& use) const;

  // Decides a column. Without `growth` it is left pending if something has to be added.
  void Settle(uint32_t column, IndexUse* use, const Growth* growth);
  Folding Fold(uint32_t column, uint64_t labels, IndexUse* use, const Growth* growth);
  const Series* AddSeries(const Metric& metric, const LabelViews& labels, const Lookup& found,
                          IndexUse* use, const Growth& growth);
  void Store(uint32_t column, const Series* series);
  void FoldInto(uint32_t column, const Series* series);
  void Note(uint32_t column, const Fault& fault, LimitAction action);

  const LayoutDefinition& definition_;
  const LimitPolicy& policy_;
  const JobCatalog* catalog_ = nullptr;
  const SeriesSource* source_ = nullptr;  // nullptr: the catalogue does not have it yet.
  size_t series_before_ = 0;
  size_t pending_ = 0;
  std::vector<Column> columns_;
  std::vector<Breach> breaches_;
  std::vector<const Series*> folded_;  // Into which columns are folded, in the layout's order.
  std::vector<std::vector<uint32_t>> folded_columns_;
  absl::flat_hash_map<const Series*, size_t> folded_index_;
  std::vector<const JobCatalog::MetricEntry*> metrics_added_;
  std::vector<const Series*> series_added_;
};

}  // namespace tacho::storage
