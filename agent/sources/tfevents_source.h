// Tails tf.summary event files below log directories: every scalar tag of a run becomes a layout of
// one gauge with steps.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/source.h"
#include "agent/sources/directory_walk.h"
#include "agent/sources/tfevents_context.h"
#include "agent/sources/tfevents_run.h"
#include "agent/sources/tfevents_run_name.h"
#include "agent/sources/trouble_log.h"
#include "tacho/config/v1/agent.pb.h"

namespace tacho::agent {

struct TfeventsOptions {
  std::string host;                               // Label of every row.
  LogCallback log;                                // May be null.
  std::function<absl::Time()> clock = absl::Now;  // To stop in time; any steady clock will do.
  absl::Duration turn = absl::Milliseconds(50);   // Of work in one Poll().
  TfeventsChunkLimits limits;
};

// Goes round in cycles: first all directories are walked, then what is new is read. One thread.
class TfeventsSource : public Source {
 public:
  //   INVALID_ARGUMENT  a directory is given twice, or its pattern and template do not fit.
  static absl::StatusOr<std::unique_ptr<TfeventsSource>> Create(
      const config::v1::Agent::Tfevents& config, TfeventsOptions options);

  TfeventsSource(const TfeventsSource&) = delete;
  TfeventsSource& operator=(const TfeventsSource&) = delete;
  ~TfeventsSource() override = default;

  absl::string_view name() const override { return "tfevents"; }
  absl::Time Poll(absl::Time now, RowSink* sink) override;

  const TfeventsStats& stats() const { return context_.stats; }

 private:
  // A log directory and the runs found in it.
  struct Directory {
    std::string path;
    TfeventsRunNamer namer;
    // By run directory; null if its name does not match.
    std::map<std::string, std::unique_ptr<TfeventsRun>> runs;
    std::vector<std::string> failures;  // Of the last walk, so that each is told once.
  };
  enum class Phase { kIdle, kWalking, kReading };

  TfeventsSource(absl::Duration poll_interval, TfeventsOptions options);

  // Each returns true when the phase is over, false if the turn ended first.
  bool Walk(absl::Time now, absl::Time deadline, RowSink* sink);
  void See(Directory* directory, const DirectoryWalk::File& file, absl::Time now, RowSink* sink);
  std::unique_ptr<TfeventsRun> MakeRun(const Directory& directory, const std::string& run,
                                       absl::Time now);
  void EndWalk(Directory* directory, absl::Time now, RowSink* sink);
  bool Read(absl::Time now, absl::Time deadline, RowSink* sink);

  const absl::Duration poll_interval_;
  const TfeventsOptions options_;
  TroubleLog log_;
  TfeventsContext context_;
  std::vector<Directory> directories_;

  Phase phase_ = Phase::kIdle;
  absl::Time next_cycle_ = absl::InfinitePast();
  size_t walking_ = 0;  // Index of the directory that is walked.
  std::unique_ptr<DirectoryWalk> walk_;
  std::deque<TfeventsRun*>
      to_read_;  // Runs take turns, so that a long file does not hold up others.
  bool refused_ = false;
};

}  // namespace tacho::agent
