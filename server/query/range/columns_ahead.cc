#include "server/query/range/columns_ahead.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "server/query/range/range_reader.h"
#include "server/query/read/query_control.h"

namespace tacho::server::query {
namespace {

// After so many the query has seen how many columns of each the store does not know.
constexpr size_t kLookAt = 2;
// A second thread is worth starting for so many columns.
constexpr uint64_t kWorthIt = 1000;
// How far ahead the thread begins, so that the query does not come to a series in its hands; and
// how far it goes, in series and in columns, which the store would forget again.
constexpr size_t kLead = 4;
constexpr size_t kMaxLead = 64;
constexpr uint64_t kMaxColumns = 2048;

}  // namespace

// Shared with the spare thread, which may come to its end later.
class ColumnsAhead::Work {
 public:
  struct Item {
    storage::SeriesPtr series;
    std::optional<uint32_t> attempt;
  };

  Work(const storage::Store& store, RangePlan plan, std::vector<Item> items)
      : store_(store), plan_(std::move(plan)), items_(std::move(items)) {}

  void Run() {
    std::vector<storage::SeriesPtr> series;
    for (const Item& item : items_) series.push_back(item.series);
    series.erase(std::unique(series.begin(), series.end()), series.end());
    const QueryControl control(absl::InfiniteDuration(), MonotonicNow, &stopped_);
    RangeReader reader(plan_, control, store_.OpenView(std::move(series)));
    size_t lead = kMaxLead;
    size_t touched = 0;
    for (size_t next = 0; Await(lead, &next); ++next) {
      // A failure here meets the query too, which reports it.
      if (!reader.Touch(items_[next].series, items_[next].attempt).ok()) return;
      const uint64_t columns = std::max<uint64_t>(1, reader.columns_decoded() / ++touched);
      lead = std::clamp<size_t>(kMaxColumns / columns, 1, kMaxLead);
    }
  }

  void Pass(size_t passed) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    passed_ = passed;
  }

  void Stop() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }

 private:
  // Until *next is no further than `lead` from the query, which it is not to be behind. false:
  // nothing is left to do.
  bool Await(size_t lead, size_t* next) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const auto may_go_on = [this, lead, next]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return stopped_ || *next <= passed_ + lead;
    };
    mutex_.Await(absl::Condition(&may_go_on));
    if (*next <= passed_ + 1) *next = passed_ + std::min(lead, kLead);
    return !stopped_ && *next < items_.size();
  }

  const storage::Store& store_;
  const RangePlan plan_;
  const std::vector<Item> items_;
  absl::Mutex mutex_;
  size_t passed_ ABSL_GUARDED_BY(mutex_) = 0;  // The item that the query is at.
  std::atomic<bool> stopped_ = false;          // Set with mutex_ held, which Await() needs.
};

ColumnsAhead::ColumnsAhead(const storage::Store& store, const RangePlan& plan,
                           const std::vector<RangeOutput>& outputs, SpareThread spare)
    : store_(store), plan_(plan), outputs_(outputs), spare_(std::move(spare)) {}

ColumnsAhead::~ColumnsAhead() {
  if (work_ != nullptr) work_->Stop();
}

void ColumnsAhead::Pass(size_t next, uint64_t columns_decoded) {
  if (work_ != nullptr) return work_->Pass(next);
  if (!spare_ || next < kLookAt) return;
  const SpareThread spare = std::exchange(spare_, nullptr);
  if (columns_decoded / next * (outputs_.size() - next) < kWorthIt) return;
  std::vector<Work::Item> items;
  items.reserve(outputs_.size());
  for (const RangeOutput& output : outputs_) {
    TACHO_CHECK(output.members.size() == 1);  // The plan does not aggregate.
    items.push_back({output.members.front(), output.attempt});
  }
  work_ = std::make_shared<Work>(store_, plan_, std::move(items));
  work_->Pass(next);
  if (!spare([work = work_] { work->Run(); })) work_ = nullptr;
}

}  // namespace tacho::server::query
