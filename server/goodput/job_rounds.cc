// One thread makes the figures that are due, those of the newest rows first, and rests in
// proportion to its work.
#include "server/goodput/job_rounds.h"

#include <algorithm>
#include <set>
#include <utility>

#include "proto/base/background_thread.h"
#include "proto/base/clock.h"
#include "proto/base/timed_wait.h"

namespace tacho::server::goodput {

JobRounds::JobRounds(JobRoundsOptions options, Maker maker)
    : options_(std::move(options)), maker_(std::move(maker)) {}

JobRounds::~JobRounds() { Stop(); }

void JobRounds::Start(const char* thread_name) {
  if (!options_.background) return;
  thread_ = std::thread([this, thread_name] {
    BecomeBackgroundThread(thread_name);
    do {
      Refresh();
    } while (Rest(absl::Seconds(1)));
  });
}

void JobRounds::Stop() {
  stopping_ = true;
  {
    // A thread that waits on the mutex looks at stopping_ again when it is released.
    absl::MutexLock lock(&mutex_);
  }
  if (thread_.joinable()) thread_.join();
}

void JobRounds::MakeAllAgain() {
  absl::MutexLock lock(&mutex_);
  ++changes_;
}

JobRoundsStats JobRounds::Stats() const {
  const absl::Time now = options_.now();
  absl::MutexLock lock(&mutex_);
  JobRoundsStats stats = stats_;
  for (const auto& [job, entry] : entries_) {
    stats.jobs += entry.figures != nullptr ? 1 : 0;
    stats.oldest_seconds = std::max(stats.oldest_seconds, absl::ToDoubleSeconds(now - entry.made));
  }
  return stats;
}

std::vector<storage::JobSummary> JobRounds::LiveJobs(absl::Time now, size_t* left_out) const {
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

bool JobRounds::IsDue(const storage::JobSummary& job, absl::Time now) const {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(job.name);
  if (found == entries_.end() || found->second.changes != changes_) return true;
  const bool newer = job.extent.last_time_ns != found->second.last_row_ns;
  const absl::Duration interval = newer ? options_.interval : options_.idle_interval;
  return HasCome(found->second.made + interval, now, interval);
}

void JobRounds::Make(const storage::JobSummary& job) {
  Figures before;
  uint64_t changes = 0;
  {
    absl::MutexLock lock(&mutex_);
    // Before the maker looks at what may change: figures that are out of date already are made
    // again.
    changes = changes_;
    const auto found = entries_.find(job.name);
    if (found != entries_.end()) before = found->second.figures;
  }
  const absl::Time now = options_.now();
  const absl::Time began = MonotonicNow();
  absl::StatusOr<Figures> figures = maker_(job.name, before, stopping_);
  const double seconds = absl::ToDoubleSeconds(MonotonicNow() - began);
  absl::MutexLock lock(&mutex_);
  stats_.seconds += seconds;
  Entry& entry = entries_[job.name];
  entry.made = now;
  entry.last_row_ns = job.extent.last_time_ns;
  entry.changes = changes;
  if (!figures.ok()) {
    // The job is tried again when new figures would be due.
    if (!stopping_) ++stats_.failed;
    return;
  }
  ++stats_.made;
  entry.figures = *std::move(figures);
}

bool JobRounds::Rest(absl::Duration duration) {
  absl::MutexLock lock(&mutex_);
  const auto stopped = [this] { return stopping_.load(); };
  return !AwaitFor(&mutex_, absl::Condition(&stopped), duration);
}

void JobRounds::Refresh() {
  size_t left_out = 0;
  const std::vector<storage::JobSummary> live = LiveJobs(options_.now(), &left_out);
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

}  // namespace tacho::server::goodput
