// The present state of all jobs as text for Prometheus: aggregates of their metrics by the rules of
// the configuration, which tasks report, and which have left. Computed from the newest rows in
// memory.
//
// A scrape copies the newest values out of the store, holding a row's lock for the copy alone. Then
// it follows, column by column, what was planned when a layout first appeared (job_state.h). Work
// that concerns one job alone runs for several jobs at once, on up to four cores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/aggregate/aggregate_rule.h"
#include "server/aggregate/job_state.h"
#include "server/aggregate/latest_copy.h"
#include "storage/store.h"

namespace tacho::server::aggregate {

// A job that has gone silent stays listed for this long, with no tasks, so that an alert on "no
// task reports" fires before the job leaves the page.
inline constexpr absl::Duration kJobLinger = absl::Hours(1);

struct ScrapeOptions {
  absl::Time now;            // By StoreOptions::now.
  absl::Duration staleness;  // A series whose newest row is older is in no aggregate.
  size_t max_series = 0;     // Lines about jobs at most.
};

// The part of one job in a scrape.
struct JobScrape;

// Thread-safe; one scrape at a time, others wait. It holds its lock while the store shows its rows,
// so the store's locks come after it: no holder of one of those may ask for a page.
class Aggregator {
 public:
  // Which sources are copies of rows that another collector has; null: none.
  using IsCopy = std::function<bool(const storage::SeriesSource& source)>;

  // The store is not owned and must outlive this.
  Aggregator(const storage::Store* store, AggregateRulesPtr rules, IsCopy is_copy = nullptr);
  ~Aggregator();

  // Aggregates start over: counters at 0, as after a restart.
  void SetRules(AggregateRulesPtr rules) ABSL_LOCKS_EXCLUDED(mutex_);

  // Adds the lines to *page, without those of jobs that are not `visible`.
  void Scrape(const ScrapeOptions& options, absl::FunctionRef<bool(absl::string_view job)> visible,
              std::string* page) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Jobs = std::vector<std::unique_ptr<JobScrape>>;  // By name.

  // The steps of a scrape, in order.
  Jobs GroupByJob(std::vector<CopiedRow>* rows) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetOthers(const Jobs& jobs) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BindHosts(const Jobs& jobs) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OrderCells() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const storage::Store* const store_;
  const IsCopy is_copy_;
  absl::Mutex mutex_;
  AggregateRulesPtr rules_ ABSL_GUARDED_BY(mutex_);
  // Series below this id existed before: their first value is no growth.
  storage::SeriesId known_series_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<storage::JobId, std::unique_ptr<JobState>> states_ ABSL_GUARDED_BY(mutex_);
  struct CellPlace {
    JobState* job = nullptr;
    uint32_t cell = 0;
  };
  std::vector<CellPlace> order_ ABSL_GUARDED_BY(mutex_);  // As on the page.
  bool order_is_old_ ABSL_GUARDED_BY(mutex_) = true;
  size_t page_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // Size of the last page, to reserve the next.
};

}  // namespace tacho::server::aggregate
