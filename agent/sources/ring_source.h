// Tails the rings that trainers write through the client library (client/ring_format.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "agent/source.h"
#include "agent/sources/trouble_log.h"
#include "client/ring_reader.h"
#include "tacho/config/v1/agent.pb.h"

namespace tacho::agent {

struct RingOptions {
  std::string host;                               // Label of every row.
  LogCallback log;                                // May be null.
  std::function<absl::Time()> clock = absl::Now;  // To stop in time; any steady clock will do.
  absl::Duration turn = absl::Milliseconds(50);   // Of work in one Poll().
};

struct RingStats {
  uint64_t rows = 0;          // Stored.
  uint64_t lost_rows = 0;     // Overwritten before they were read, or damaged.
  uint64_t lost_events = 0;   // The same of events.
  uint64_t refused_rows = 0;  // Rows that the sink would not take for another reason than room.
  uint64_t rejected_files = 0;
  uint64_t removed_files = 0;
};

// Every *.ring in a directory is read to its end, again and again, until its writer is dead and
// nothing is left in it; then the file is removed. A file that is no sound ring is said once, left
// where it is, and looked at again only when it has changed. One thread.
class RingSource : public Source {
 public:
  RingSource(const config::v1::Agent::Rings& config, RingOptions options);
  RingSource(const RingSource&) = delete;
  RingSource& operator=(const RingSource&) = delete;
  ~RingSource() override;

  absl::string_view name() const override { return "rings"; }
  absl::Time Poll(absl::Time now, RowSink* sink) override;

  const RingStats& stats() const { return stats_; }

 private:
  class Ring;

  void Scan(absl::Time now, RowSink* sink);
  void OpenRing(const std::string& path, int64_t changed, absl::Time now, RowSink* sink);

  const std::string directory_;
  const absl::Duration poll_interval_;
  const RingOptions options_;
  TroubleLog log_;
  RingStats stats_;
  std::map<std::string, std::unique_ptr<Ring>> rings_;  // By path.
  std::map<std::string, int64_t> rejected_;             // Path and time of change.
  absl::Time next_ = absl::InfinitePast();
  std::string resume_;  // The path after which the next turn goes on.
};

}  // namespace tacho::agent
