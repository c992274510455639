// Tails the rings that trainers write through the client library (client/ring/ring_format.h).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/sources/rings/ring_tail.h"
#include "agent/sources/rows/source.h"
#include "agent/sources/rows/source_log.h"
#include "proto/base/clock.h"
#include "tacho/config/v1/agent.pb.h"

namespace tacho::agent {

struct RingOptions {
  std::string host;  // Label of every row.
  log::Log log;
  std::function<absl::Time()> clock = MonotonicNow;  // To stop in time.
  absl::Duration turn = absl::Milliseconds(50);      // Longest work in one Poll().
};

// Every *.ring in a directory is read to its end, again and again, until its writer is dead and
// nothing is left in it; then the file is removed. The end of the task goes with it, as an event
// "ended" or "exited". A file that is no sound ring is said once and left where it is. One thread.
class RingSource : public Source {
 public:
  // How often a file that was rejected is looked at again, should it be mended or become readable.
  static constexpr absl::Duration kRetryRejected = absl::Minutes(1);
  // A directory whose time of change is the same is listed this often, as that time is coarse; one
  // that changed at once.
  static constexpr absl::Duration kListUnchanged = absl::Seconds(1);

  RingSource(const config::v1::Agent::Rings& config, RingOptions options);
  RingSource(const RingSource&) = delete;
  RingSource& operator=(const RingSource&) = delete;
  ~RingSource() override = default;

  absl::string_view name() const override { return "rings"; }
  absl::Time Poll(absl::Time now, RowSink* sink) override;
  uint64_t lost_rows() const override { return stats_.lost_rows; }

  const RingStats& stats() const { return stats_; }

 private:
  struct Rejected {
    absl::Time retry;
    std::string reason;
  };

  // Whether a file may have come or gone.
  bool DirectoryMayHaveChanged(absl::Time now);
  void Scan(absl::Time now, RowSink* sink);
  void OpenRing(const std::string& path, absl::Time now, RowSink* sink);
  void Reject(const std::string& path, const absl::Status& status, absl::Time now);
  // Reads one batch of the first ring in to_read_. False if the sink has no room.
  bool ReadOne(absl::Time now, RowSink* sink);
  // Tells how a ring ended, unless its task goes on in another ring.
  absl::Status TellEnd(RingTail* ring, absl::Time now, RowSink* sink) const;
  void Remove(const std::string& path, absl::Time now, RowSink* sink);

  const std::string directory_;
  const absl::Duration poll_interval_;
  const RingOptions options_;
  SourceLog log_;
  RingStats stats_;
  std::map<std::string, std::unique_ptr<RingTail>> rings_;  // By path.
  std::map<std::string, Rejected> rejected_;                // By path.
  absl::Time next_ = absl::InfinitePast();
  absl::Time listed_ = absl::InfinitePast();
  absl::Time directory_changed_ = absl::InfinitePast();  // As of the last look.
  std::deque<std::string> to_read_;                      // In this round; rings take turns.
};

}  // namespace tacho::agent
