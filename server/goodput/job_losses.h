// What a stored job lost to its hosts (host_losses.h): reads the own work of all tasks for the
// steps that its reference task shows.
//
// The cost is bounded. Steps are read in blocks. If the job has more than kMaxSamples samples of
// own work, only every n-th block is read, from the first on, and stands for n.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

  // `rows` is how many steps the reference task has shown in all attempts. Errors are the store's.
  static absl::StatusOr<JobLosses> Create(const storage::Store& store, absl::string_view job,
                                          const conditions::SignalNames& names, uint64_t rows,
                                          const query::QueryControl& control,
                                          uint64_t max_samples = kMaxSamples);

  void BeginSpan(uint32_t attempt);
  // The rows of the reference task, as a LedgerMaker gets them. Errors are the store's and the
  // control's.
  absl::Status AddStep(const StepRow& row);
  absl::Status EndSpan();

  const HostLosses& losses() const { return losses_; }
  double lost_seconds() const { return lost_seconds_; }
  const std::string& host(size_t number) const { return hosts_[number]; }

 private:
  // A task on one host, and its series of each field of RecordedStep.
  struct Worker {
    size_t host = 0;
    std::vector<std::pair<double RecordedStep::*, storage::SeriesPtr>> series;
  };
  struct Row {
    int64_t time_ns = 0;
    int64_t step = 0;
    double steps = 1;         // It stands for so many.
    double most_seconds = 0;  // They took so long.
  };

  explicit JobLosses(const query::QueryControl& control) : control_(&control) {}
  absl::Status JudgeBlock();
  absl::Status ReadWorker(const Worker& worker, std::vector<RecordedStep>* recorded) const;

  const query::QueryControl* control_;
  std::vector<Worker> workers_;
  std::vector<std::string> hosts_;
  std::map<std::string, double> factors_;  // By metric.
  std::unique_ptr<storage::ReadView> view_;
  size_t block_rows_ = 1;
  uint64_t every_ = 1;  // One block in so many is read.
  uint64_t blocks_ = 0;
  uint32_t attempt_ = 0;
  std::vector<Row> block_;
  std::map<int64_t, size_t> row_of_step_;  // Of block_.
  bool has_row_ = false;
  Row last_;
  HostLosses losses_;
  double lost_seconds_ = 0;
};

}  // namespace tacho::server::goodput
