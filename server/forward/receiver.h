// Sends what is stored to one receiver, for as long as it takes.
//
//   ForwardLog -> WriteBatch, one a connection -> HTTP, again until the receiver has it -> Commit()
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
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/base/log.h"
#include "server/forward/series_text.h"
#include "server/forward/write_answer.h"
#include "server/forward/write_request.h"
#include "storage/bucket/http_pool.h"
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
  std::string version;  // The collector's, for User-Agent.
  log::Log log;
  absl::Duration poll = absl::Seconds(1);                // How often it looks for something new.
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
           std::unique_ptr<storage::ForwardLog> log);

  bool Wants(const storage::LayoutPtr& layout, size_t column) override;
  void Take(const storage::LayoutPtr& layout, size_t column, std::span<const int64_t> times,
            std::span<const double> values) override;

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // One round: reads, sends, commits. Returns the pause until the next.
  absl::Duration Round() ABSL_LOCKS_EXCLUDED(mutex_);
  // False: the receiver stops, and not all has been sent.
  bool SendAll();
  bool SendUntilTaken(const WriteBatch& batch) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::vector<std::string>> Headers(WriteVersion version) const;
  void LeaveOut(const WriteBatch& batch, size_t count, const storage::HttpReply& reply);
  // False when stopping.
  bool Pause(absl::Duration time) ABSL_LOCKS_EXCLUDED(mutex_);
  void CommitCursor();

  const ReceiverOptions options_;
  const std::unique_ptr<storage::ForwardLog> log_;  // The thread's, as the next five.
  SeriesTexts texts_;
  std::vector<WriteBatch> batches_;  // One a connection.
  uint64_t damaged_ = 0;             // Of log_, counted so far.
  // Once the cursor is there, it has what was stored at that time.
  uint64_t goal_ = 0;
  int64_t goal_ns_ = 0;
  storage::HttpPool http_;
  std::atomic<bool> first_version_;       // 1.0 is spoken.
  std::atomic<bool> open_version_;        // It may still turn out to be 1.0.
  std::atomic<int64_t> complete_ns_ = 0;  // As ForwardCursor has it; 0: complete now.

  prometheus::Counter& sent_;
  prometheus::Counter& refused_;
  prometheus::Counter& damaged_columns_;
  prometheus::Counter& bytes_;
  prometheus::Counter& retries_;
  prometheus::Family<prometheus::Counter>& requests_;

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tacho::server::forward
