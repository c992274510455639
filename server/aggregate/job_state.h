// A JobState remembers a job from scrape to scrape: which column of which layout is in which
// aggregate, and how far its counters were.
//
// A layout is looked at closely once, when it first shows a row; a scrape then only follows
// numbers. Memory: 8 bytes a column, once for all layouts whose columns go the same ways, 32 bytes
// a series of a counter, some hundred bytes an aggregate. All of it goes when the job leaves the
// store's memory.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/node_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/aggregate/aggregate_rule.h"
#include "storage/model/series.h"

namespace tacho::server::aggregate {

inline constexpr uint32_t kNoCell = std::numeric_limits<uint32_t>::max();

struct CellFamily {
  std::string name;
  const char* type = "gauge";
  std::string help;  // Escaped.
};

// How fast a total grew: over 30 s or, with slower scrapes, since the scrape before the last.
class RateWindow {
 public:
  double Rate(absl::Time now, double total) {
    if (now - newer_.time >= kWindow) {
      older_ = newer_;
      newer_ = {now, total};
    }
    const Point& from = older_.time == absl::InfinitePast() ? newer_ : older_;
    if (from.time == absl::InfinitePast() || now <= from.time) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    return (total - from.total) / absl::ToDoubleSeconds(now - from.time);
  }

 private:
  static constexpr absl::Duration kWindow = absl::Seconds(30);
  struct Point {
    absl::Time time = absl::InfinitePast();
    double total = 0;
  };
  Point older_;
  Point newer_;
};

// An aggregate: the lines of one group of one metric by one rule, and what is remembered of it from
// scrape to scrape.
struct Cell {
  enum class Kind { kGauge, kCounter, kRate, kHistogram };
  // A histogram's: growth of the observations up to `bound` and above the bound before it.
  struct Bucket {
    double bound = 0;
    double growth = 0;
  };

  Kind kind = Kind::kGauge;
  uint32_t rule = 0;
  uint32_t counter = kNoCell;  // A rate's: the cell with the total.
  std::shared_ptr<const CellFamily> family;
  std::string metric;
  const std::string* labels = nullptr;  // job="x",host="h"; the job's cells of a group share it.
  std::string tail;                     // ,metric="a.b" or nothing.
  bool conflicts = false;  // With a family of the same name and another type: it is not shown.

  double total = 0;             // A counter's: what its series grew by.
  RateWindow rate;              // A rate's.
  std::vector<Bucket> buckets;  // A histogram's, in no order.
};

// A scrape reads this of every cell of a job, shown or not, so it lies close together.
struct CellBrief {
  uint32_t lines = 0;  // If any of its series report; 0 if it conflicts.
  uint32_t rule = 0;
  uint32_t counter = kNoCell;  // A rate's.
  bool conflicts = false;
};

// One series of a counter or of a histogram's buckets.
struct CounterTrack {
  double last = 0;
  int64_t time_ns = 0;
  uint32_t attempt = 0;
  bool seen = false;
};

// Which column is in which cell. The tasks of a job record the same metrics, so one object serves
// the layouts of many.
struct ColumnCells {
  struct Place {
    uint32_t column = 0;
    uint32_t cell = 0;
    friend bool operator==(const Place&, const Place&) = default;
    template <typename H>
    friend H AbslHashValue(H hash, const Place& place) {
      return H::combine(std::move(hash), place.column, place.cell);
    }
  };
  std::vector<Place> values;  // Ascending; not those of histograms.
  // The counters among them, by index into LayoutPlan::counters.
  std::vector<Place> counters;

  friend bool operator==(const ColumnCells&, const ColumnCells&) = default;
  template <typename H>
  friend H AbslHashValue(H hash, const ColumnCells& cells) {
    return H::combine(std::move(hash), cells.values, cells.counters);
  }
};

// Where the columns of a layout go by one rule.
struct ColumnTargets {
  uint32_t rule = 0;
  const ColumnCells* cells = nullptr;  // Owned by the state of the job that the cells are of.
  struct Bucket {
    uint32_t counter = 0;  // Index into LayoutPlan::counters.
    uint32_t cell = 0;
    uint32_t bucket = 0;
    uint32_t next = kNoCell;  // The next bucket of the same histogram, which includes this one.
  };
  std::vector<Bucket> buckets;
  uint32_t without_group = 0;  // Columns that max_groups has kept out.
  uint32_t conflicts = 0;      // Columns whose lines another rule makes already.
  bool used = false;           // Some column goes into some cell.
};

struct LayoutPlan {
  std::vector<ColumnTargets> own;
  // Rules with to_jobs take these columns to the jobs of the layout's host: rule and columns.
  std::vector<std::pair<uint32_t, std::vector<uint32_t>>> to_jobs;
  // Where these go: for each of the jobs, one for each of the rules.
  std::vector<storage::JobId> bound_jobs;
  std::vector<ColumnTargets> bound;

  struct Counter {
    uint32_t column = 0;
    uint32_t track = 0;  // Index into JobState::tracks.
  };
  std::vector<Counter> counters;
  // Columns whose series other layouts of the source have too.
  struct Shared {
    uint32_t column = 0;
    uint32_t slot = 0;  // The same for the same series.
  };
  std::vector<Shared> shared;
  uint32_t shared_slots = 0;  // The source's number of slots.
  uint64_t planned_with = 0;  // The layouts of the source when these were found.
  uint32_t fresh_series = 0;  // Those that it had in the last scrape.
};

// The tasks and hosts that report.
struct Presence {
  std::vector<storage::LayoutId> layouts;  // The rest is derived from these.
  absl::flat_hash_set<uint32_t> tasks;
  absl::flat_hash_set<std::string> hosts;
  absl::flat_hash_set<std::string> task_hosts;  // Those with a task of the job.
};

struct JobState {
  JobState(storage::JobId job, absl::string_view job_name, const AggregateRules& all_rules);

  // Which aggregates a layout of this job is in. Its counters are planned before.
  void PlanLayout(const storage::Layout& layout, LayoutPlan* plan);
  // Where columns of a layout go by a rule under this job, which need not be the layout's own.
  ColumnTargets MakeTargets(const storage::Layout& layout, const LayoutPlan& plan, uint32_t rule,
                            const std::vector<uint32_t>& columns);
  // After cells were added, and their conflicts found.
  void BriefCells();

  const storage::JobId id;
  const std::string name;
  const AggregateRules* rules;  // Not owned; outlives the state.

  absl::flat_hash_map<storage::LayoutId, std::unique_ptr<LayoutPlan>> layouts;
  std::vector<Cell> cells;
  std::vector<CellBrief> briefs;  // By cell.
  std::vector<CounterTrack> tracks;
  bool cells_changed = false;  // Since BriefCells.
  storage::SeriesId highest_series = 0;

  size_t place = 0;  // Among the jobs of the scrape under way.
  // The tasks and hosts of the last scrape, and how many have left so far.
  Presence present;
  uint64_t tasks_left = 0;
  uint64_t series_left = 0;

 private:
  // The rules that take the series, in order.
  void FindRules(const storage::Series& series, std::vector<uint32_t>* found);
  const std::vector<uint32_t>& RulesOfMetric(const storage::Series& series);
  // The cell of a series by a rule, made if need be. kNoCell: there is none, and why is counted.
  uint32_t FindOrAddCell(const storage::Series& series, uint32_t rule, ColumnTargets* targets);
  uint32_t AddCell(const storage::Series& series, uint32_t rule, const std::string& group_labels,
                   ColumnTargets* targets);
  uint32_t AddLine(Cell cell, ColumnTargets* targets);
  void AddBuckets(const storage::Layout& layout, const LayoutPlan& plan,
                  const std::vector<uint32_t>& columns, ColumnTargets* targets);

  absl::node_hash_set<ColumnCells> column_cells_;
  absl::node_hash_set<std::string> labels_;
  absl::flat_hash_map<storage::MetricId, std::vector<uint32_t>> rules_of_;
  // By rule, metric and group.
  absl::flat_hash_map<std::string, uint32_t> cell_of_;
  // For rules that group by nothing: by rule and metric of this job.
  absl::flat_hash_map<std::pair<uint32_t, storage::MetricId>, uint32_t> plain_cell_of_;
  absl::flat_hash_map<std::string, uint32_t> cell_of_line_;
  absl::flat_hash_map<std::pair<uint32_t, std::string>, uint32_t> groups_;
};

// The stats of a gauge or counter.
const std::vector<AggregateStat>& StatsOf(const JobState& state, const Cell& cell);

// Text as the value of a label on /metrics.
std::string EscapeLabelValue(absl::string_view value);

}  // namespace tacho::server::aggregate
