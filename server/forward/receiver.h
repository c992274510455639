// Sends what is stored to one receiver, for as long as it takes.
//
//   ForwardLog -> WriteBatch, one a connection -> Sender, again until the receiver has it ->
//   Commit()
//
// Memory is that of one round: `connections` requests of `max_samples` samples. While a receiver is
// away nothing is read for it; the cursor waits.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/registry.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/base/log.h"
#include "server/forward/job_aggregates.h"
#include "server/forward/sender.h"
#include "server/forward/series_ends.h"
#include "server/forward/series_text.h"
#include "server/forward/write_request.h"
#include "storage/forward_log.h"
#include "storage/store.h"
#include "tacho/config/v1/forward.pb.h"

namespace tacho::server::forward {

struct ReceiverOptions {
  config::v1::Forward config;       // Durations in ns.
  std::string key;                  // Of the configuration, like "forward[0]".
  storage::Store* store = nullptr;  // Not owned, as the next; both must outlive it.
  prometheus::Registry* registry = nullptr;
  std::function<absl::Time()> now;
  std::function<bool(absl::string_view job, absl::string_view host)>
      shows;  // As SeriesTexts has it.
  // The collector's page of metrics. Called on the receiver's thread, if it gets aggregates.
  std::function<std::string()> page;
  std::string version;  // The collector's, for User-Agent.
  log::Log log;
  absl::Duration staleness = absl::Minutes(5);    // A series that is silent for longer has ended.
  absl::Duration poll = absl::Seconds(1);         // How often it looks for something new.
  absl::Duration ends_every = absl::Seconds(10);  // The same for series that have ended.
  absl::Duration first_pause = absl::Milliseconds(200);  // Before the second try; then it doubles.
};

// Start(), Stop() and destruction are for one thread; the others for any.
class Receiver final : private storage::ForwardSink {
 public:
  //   INVALID_ARGUMENT  a key of the configuration is wrong; the text names it.
  //   others            as ForwardLog::Open().
  static absl::StatusOr<std::unique_ptr<Receiver>> Create(ReceiverOptions options);
  ~Receiver() override { Stop(); }

  void Start();
  // Waits for requests under way, each no longer than `timeout`; what they had comes again after
  // the next start.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string& name() const { return options_.config.name(); }
  // Since when something that is stored has not been forwarded; 0: everything has.
  absl::Duration Lag() const;

 private:
  Receiver(ReceiverOptions options, std::shared_ptr<const SeriesNaming> naming,
           std::unique_ptr<storage::ForwardLog> log, JobAggregates aggregates);

  bool Wants(const storage::LayoutPtr& layout, size_t column) override;
  void Take(const storage::LayoutPtr& layout, size_t column, std::span<const int64_t> times,
            std::span<const double> values) override;

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // What a receiver that takes nothing now means for a batch.
  enum class Patience { kUntilTaken, kOnce };

  // One round: reads, sends, commits. Returns the pause until the next.
  absl::Duration Round() ABSL_LOCKS_EXCLUDED(mutex_);
  // False: the receiver stops, and not all has been sent.
  bool SendAll();
  // False: the receiver has not taken all of it, because it stops or, with kOnce, is away.
  bool Send(const WriteBatch& batch, Patience patience) ABSL_LOCKS_EXCLUDED(mutex_);
  bool SendHalves(const WriteBatch& batch, const Answer& answer, Patience patience)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Tells the receiver which series have ended, if it is time to look.
  void SendEnds() ABSL_LOCKS_EXCLUDED(mutex_);
  // Evaluates and sends aggregates if that is due. Does not try again: they are of a moment.
  void SendAggregates() ABSL_LOCKS_EXCLUDED(mutex_);
  bool SendAggregates(std::vector<AggregateSample> samples, absl::Time at)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void LeaveOut(const WriteBatch& batch, size_t count, const Answer& answer);
  // As the protocol has times.
  int64_t TimeOf(int64_t time_ns) const;
  // False when stopping.
  bool Pause(absl::Duration time) ABSL_LOCKS_EXCLUDED(mutex_);
  void CommitCursor();

  const ReceiverOptions options_;
  // The thread's, as the next five. Null: the receiver gets aggregates alone.
  const std::unique_ptr<storage::ForwardLog> log_;
  SeriesTexts texts_;
  std::vector<WriteBatch> batches_;  // One a connection.
  std::vector<WriteSample> taken_;   // By one Take().
  uint64_t damaged_ = 0;             // Of log_, counted so far.
  // Once the cursor is there, it has what was stored at that time.
  uint64_t goal_ = 0;
  int64_t goal_ns_ = 0;
  const JobAggregates aggregates_;
  absl::Time aggregates_due_;  // By MonotonicNow().
  // The last ones that the receiver has, by their hashes.
  absl::flat_hash_map<size_t, SeriesTextPtr> aggregates_shown_;
  SeriesEnds ends_;
  absl::Time ends_due_;  // By MonotonicNow().
  const bool otlp_;
  const std::unique_ptr<Sender> sender_;
  std::atomic<int64_t> complete_ns_ = 0;  // As ForwardCursor has it; 0: complete now.

  prometheus::Counter& sent_;
  prometheus::Counter& refused_;
  prometheus::Counter& damaged_columns_;
  prometheus::Counter& bytes_;
  prometheus::Counter& retries_;
  prometheus::Counter& missed_;
  prometheus::Counter& told_ends_;
  prometheus::Family<prometheus::Counter>& requests_;

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tacho::server::forward
