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
#include "agent/sources/rows/source.h"
#include "agent/sources/rows/source_log.h"
#include "agent/sources/tfevents/beneath_directory.h"
#include "agent/sources/tfevents/log_tree.h"
#include "agent/sources/tfevents/tfevents_context.h"
#include "agent/sources/tfevents/tfevents_run.h"
#include "agent/sources/tfevents/tfevents_run_name.h"
#include "proto/base/clock.h"
#include "tacho/config/v1/agent.pb.h"

namespace tacho::agent {

struct TfeventsOptions {
  std::string host;  // Label of every row.
  log::Log log;
  std::function<absl::Time()> clock = MonotonicNow;  // To stop in time.
  absl::Duration turn = absl::Milliseconds(50);      // Longest work in one Poll().
  // How many turns to rest after a turn that left something to read. Gigabytes of old files then
  // take a quarter of a core, which the trainers of the machine do not miss.
  int rest = 3;
  TfeventsChunkLimits limits;
  // Tags of all attempts of all runs. Each is a layout, which the spool and the collector keep as
  // long as they run; those beyond are left out and counted.
  size_t max_series = 100'000;
};

// Each turn looks at the directories that are due and reads what is new, a chunk of a run at a time
// and then of the next: neither a large tree nor a long file holds up the others. One thread.
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
  struct Run {
    std::unique_ptr<TfeventsRun> files;  // Null if its name does not match.
    bool queued = false;
  };
  // A log directory and the runs found in it.
  struct Directory {
    std::unique_ptr<BeneathDirectory> root;
    TfeventsRunNamer namer;
    std::unique_ptr<LogTree> tree;
    std::map<std::string, Run> runs;  // By run directory.
    uint64_t left_out_told = 0;
  };

  TfeventsSource(absl::Duration poll_interval, TfeventsOptions options);

  // Each returns true if nothing is left to do, false if the deadline came first.
  bool Look(absl::Time now, absl::Time deadline, RowSink* sink);
  bool Read(absl::Time now, absl::Time deadline, RowSink* sink);
  // One step; false if the directory rests.
  bool LookAt(Directory* directory, absl::Time now, RowSink* sink);
  void See(Directory* directory, RowSink* sink);
  void EndLook(Directory* directory, RowSink* sink);
  void ForgetRun(Directory* directory, RowSink* sink);
  std::unique_ptr<TfeventsRun> MakeRun(const Directory& directory, const std::string& run);
  absl::Time NextLook() const;

  const absl::Duration poll_interval_;
  const TfeventsOptions options_;
  SourceLog log_;
  TfeventsContext context_;
  std::vector<Directory> directories_;
  size_t looking_ = 0;  // Index of the directory that is next.
  // Runs take turns, so that a long file does not hold up others.
  std::deque<Run*> to_read_;
  bool refused_ = false;
};

}  // namespace tacho::agent
