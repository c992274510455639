// One thread makes the ledgers that are due, those of the newest rows first, and rests in
// proportion to its work, so that goodput never takes more than its share of the collector.
#include "server/goodput/goodput_board.h"

#include <algorithm>
#include <set>
#include <utility>

#include "proto/base/background_thread.h"
#include "proto/base/clock.h"
#include "proto/base/timed_wait.h"
#include "server/conditions/window/signal_names.h"
#include "server/query/read/query_control.h"

namespace tacho::server::goodput {
namespace {

// `before` may be null.
std::shared_ptr<const BoardGoodput> WithMost(JobGoodput goodput, const BoardGoodput* before) {
  auto made = std::make_shared<BoardGoodput>();
  static_cast<JobGoodput&>(*made) = std::move(goodput);
  made->most_ns = AmountsAsTheyCame(made->total);
  made->most_wall_ns = made->total.wall_ns();
  if (before == nullptr) return made;
  for (size_t i = 0; i < kGoodputBuckets; ++i) {
    made->most_ns[i] = std::max(made->most_ns[i], before->most_ns[i]);
  }
  made->most_wall_ns = std::max(made->most_wall_ns, before->most_wall_ns);
  return made;
}

}  // namespace
GoodputBoard::GoodputBoard(GoodputBoardOptions options)
    : options_(std::move(options)),
      signals_(options_.signals != nullptr ? options_.signals
                                           : std::make_shared<const conditions::SignalNames>()) {
  if (options_.background) thread_ = std::thread([this] { Run(); });
}

GoodputBoard::~GoodputBoard() { Stop(); }

void GoodputBoard::Stop() {
  stopping_ = true;
  {
    // A thread that waits on the mutex looks at stopping_ again when it is released.
    absl::MutexLock lock(&mutex_);
  }
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<std::function<void()>> GoodputBoard::Prepare(const config::v1::Collector& config) {
  auto signals = std::make_shared<const conditions::SignalNames>(
      conditions::ConfiguredNames(config.conditions().signals()));
  return [this, signals = std::move(signals)] {
    absl::MutexLock lock(&mutex_);
    signals_ = signals;
    ++signals_changed_;
  };
}

std::vector<std::shared_ptr<const BoardGoodput>> GoodputBoard::Newest() const {
  std::vector<std::shared_ptr<const BoardGoodput>> newest;
  absl::MutexLock lock(&mutex_);
  for (const auto& [job, entry] : entries_) {
    if (entry.goodput != nullptr) newest.push_back(entry.goodput);
  }
  return newest;
}

GoodputBoardStats GoodputBoard::Stats() const {
  const absl::Time now = options_.now();
  absl::MutexLock lock(&mutex_);
  GoodputBoardStats stats = stats_;
  for (const auto& [job, entry] : entries_) {
    stats.jobs += entry.goodput != nullptr ? 1 : 0;
    stats.oldest_seconds = std::max(stats.oldest_seconds, absl::ToDoubleSeconds(now - entry.made));
  }
  return stats;
}

std::vector<storage::JobSummary> GoodputBoard::LiveJobs(absl::Time now, size_t* left_out) const {
  std::vector<storage::JobSummary> live;
  const int64_t since = absl::ToUnixNanos(now - options_.linger);
  for (storage::JobSummary& job : options_.store->Jobs()) {
    if (!job.name.empty() && job.extent.last_time_ns >= since) live.push_back(std::move(job));
  }
  std::sort(live.begin(), live.end(), [](const auto& a, const auto& b) {
    return a.extent.last_time_ns > b.extent.last_time_ns;
  });
  *left_out = live.size() - std::min(live.size(), options_.max_jobs);
  live.resize(live.size() - *left_out);
  return live;
}

bool GoodputBoard::IsDue(const storage::JobSummary& job, absl::Time now) const {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(job.name);
  if (found == entries_.end() || found->second.signals != signals_changed_) return true;
  const bool newer = job.extent.last_time_ns != found->second.last_row_ns;
  const absl::Duration interval = newer ? options_.interval : options_.idle_interval;
  return HasCome(found->second.made + interval, now, interval);
}

void GoodputBoard::Make(const storage::JobSummary& job) {
  const query::QueryControl control(absl::InfiniteDuration(), MonotonicNow, &stopping_);
  const absl::Time now = options_.now();
  const absl::Time began = MonotonicNow();
  std::shared_ptr<const conditions::SignalNames> signals;
  uint64_t signals_changed = 0;
  {
    absl::MutexLock lock(&mutex_);
    signals = signals_;
    signals_changed = signals_changed_;
  }
  auto goodput = GoodputOf(*options_.store, job.name, *signals, now, control, /*max_spans=*/0,
                           options_.reports);
  const double seconds = absl::ToDoubleSeconds(MonotonicNow() - began);
  absl::MutexLock lock(&mutex_);
  stats_.seconds += seconds;
  if (!goodput.ok()) {
    if (!stopping_) ++stats_.failed;
    // The old ledger stays; the job is tried again when a new one would be due.
    Entry& entry = entries_[job.name];
    entry.made = now;
    entry.last_row_ns = job.extent.last_time_ns;
    entry.signals = signals_changed;
    return;
  }
  ++stats_.made;
  Entry& entry = entries_[job.name];
  entry.made = now;
  entry.last_row_ns = job.extent.last_time_ns;
  entry.signals = signals_changed;
  const bool tells = goodput->has_steps || goodput->has_phases;
  entry.goodput = tells ? WithMost(*std::move(goodput), entry.goodput.get()) : nullptr;
}

bool GoodputBoard::Rest(absl::Duration duration) {
  absl::MutexLock lock(&mutex_);
  const auto stopped = [this] { return stopping_.load(); };
  return !AwaitFor(&mutex_, absl::Condition(&stopped), duration);
}

void GoodputBoard::Refresh() {
  const absl::Time now = options_.now();
  size_t left_out = 0;
  const std::vector<storage::JobSummary> live = LiveJobs(now, &left_out);
  std::set<std::string> names;
  for (const storage::JobSummary& job : live) names.insert(job.name);
  {
    absl::MutexLock lock(&mutex_);
    std::erase_if(entries_, [&](const auto& entry) { return !names.contains(entry.first); });
    stats_.jobs_left_out = left_out;
  }
  for (const storage::JobSummary& job : live) {
    if (stopping_) return;
    if (!IsDue(job, options_.now())) continue;
    const absl::Time began = MonotonicNow();
    Make(job);
    const absl::Duration took = MonotonicNow() - began;
    if (options_.background && !Rest(took * (1 / options_.share - 1))) return;
  }
}

void GoodputBoard::Run() {
  BecomeBackgroundThread("goodput");
  do {
    Refresh();
  } while (Rest(absl::Seconds(1)));
}

}  // namespace tacho::server::goodput
