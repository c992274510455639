// What a stored job lost to its hosts (host_losses.h), and what its reference task waited for them:
// reads the own work of all tasks for the steps that the reference task shows.
//
// The cost is bounded. Steps are read in blocks. If the job has more than kMaxSamples samples of
// own work, only every n-th block is read, from the first on, and stands for n. In the others the
// reference task waits for the same part of the time as in the one that was read before.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/conditions/window/signal_names.h"
#include "server/goodput/host_losses.h"
#include "server/goodput/ledger.h"
#include "server/query/read/query_control.h"
#include "storage/store.h"

namespace tacho::server::goodput {

// Not thread-safe. Must not outlive the store and the control.
class JobLosses {
 public:
  static constexpr uint64_t kMaxSamples = 30'000'000;
  // More series of own work than these are not judged: about 20,000 tasks.
  static constexpr size_t kMaxSeries = 100'000;

  // Takes the rows as they were added, each with its waiting_seconds.
  using RowSink = absl::FunctionRef<void(const StepRow&)>;

  // `rows` is how many steps the reference task has shown in all attempts. Errors are the store's.
  static absl::StatusOr<JobLosses> Create(const storage::Store& store, absl::string_view job,
                                          std::optional<uint32_t> reference_task,
                                          const conditions::SignalNames& names, uint64_t rows,
                                          const query::QueryControl& control,
                                          uint64_t max_samples = kMaxSamples);

  void BeginSpan(uint32_t attempt);
  // The rows of the reference task, as a LedgerMaker wants them. They come out again a block at a
  // time, all of them by the end of the span. Errors are the store's and the control's.
  absl::Status AddStep(const StepRow& row, RowSink sink);
  absl::Status EndSpan(RowSink sink);

  const HostLosses& losses() const { return losses_; }
  double lost_seconds() const { return lost_seconds_; }
  const std::string& host(size_t number) const { return hosts_[number]; }

 private:
  // A task on one host, and its series of each field of RecordedStep.
  struct Worker {
    size_t host = 0;
    bool is_reference = false;
    std::vector<std::pair<double RecordedStep::*, storage::SeriesPtr>> series;
  };
  struct Row {
    int64_t time_ns = 0;
    int64_t step = 0;
    double steps = 1;            // It stands for so many.
    double most_seconds = 0;     // They took so long.
    double waiting_seconds = 0;  // Of the reference task, in all of them.
  };
  // A row that has not come out. It is a step of the block, or the step before once more.
  struct Held {
    StepRow row;
    std::optional<size_t> at;  // In block_.
  };

  explicit JobLosses(const query::QueryControl& control) : control_(&control) {}
  // Judges the block if it is one to be read, and lets its rows out.
  absl::Status EndBlock(RowSink sink);
  absl::Status JudgeBlock();
  void JudgeStep(const std::vector<std::vector<RecordedStep>>& recorded, size_t at);
  absl::Status ReadWorker(const Worker& worker, std::vector<RecordedStep>* recorded) const;

  const query::QueryControl* control_;
  std::vector<Worker> workers_;
  std::vector<std::string> hosts_;
  std::map<std::string, double> factors_;  // By metric.
  std::set<std::string> summed_;           // Metrics whose series of a task add up.
  std::unique_ptr<storage::ReadView> view_;
  size_t block_rows_ = 1;
  uint64_t every_ = 1;  // One block in so many is read.
  uint64_t blocks_ = 0;
  uint32_t attempt_ = 0;
  std::vector<Row> block_;
  std::vector<Held> held_;
  std::map<int64_t, size_t> row_of_step_;  // Of block_.
  bool has_row_ = false;
  Row last_;
  double waiting_share_ = 0;  // Of the time of the last block that was read.
  HostLosses losses_;
  double lost_seconds_ = 0;
};

}  // namespace tacho::server::goodput
