// Translates the experiments and runs of TensorBoard: an experiment is a choice of jobs, a
// run is one attempt of a job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "interop/tensorboard_data_provider.pb.h"
#include "proto/base/check.h"
#include "server/query/read/query_control.h"
#include "server/security/rights.h"
#include "storage/store.h"

namespace tacho::server::tb {

// TensorBoard asks for everything at once, and again at every reload: an experiment shows jobs only
// until they have so many runs or series together. A narrower experiment shows the others.
inline constexpr uint64_t kMaxRuns = 500;
inline constexpr uint64_t kMaxSeries = 100'000;

// Which names a request is about: all, or those that it lists.
class NameFilter {
 public:
  NameFilter() = default;  // All.
  static NameFilter Runs(const ::tensorboard::data::RunTagFilter& filter);
  static NameFilter Tags(const ::tensorboard::data::RunTagFilter& filter);

  bool all() const { return !names_.has_value(); }
  bool Allows(absl::string_view name) const { return all() || names_->contains(name); }
  const absl::flat_hash_set<std::string>& names() const {  // Unless all().
    TACHO_CHECK(names_.has_value());
    return *names_;
  }

 private:
  std::optional<absl::flat_hash_set<std::string>> names_;
};

struct Experiment {
  // Jobs that were seen in the last five minutes by name, then the others, the newest first.
  std::vector<storage::JobSummary> jobs;
  // Further jobs that match, beyond kMaxRuns or kMaxSeries; in the same order.
  std::vector<storage::JobSummary> left_out;
};

// The jobs of an experiment_id that `rights` include: all of them if it is empty, else the job of
// that name, else those whose names it matches (RE2, anchored).
//   PERMISSION_DENIED  nothing matches, and `rights` would not include a job of this name.
//   NOT_FOUND          nothing matches; for callers who see every job the text has the nearest
//                      names.
//   INVALID_ARGUMENT   it is neither the name of a job nor a regular expression.
absl::StatusOr<Experiment> FindExperiment(const storage::Store& store,
                                          absl::string_view experiment_id,
                                          const security::Rights& rights, absl::Time now);

struct Run {
  std::string name;  // "job/attempt"
  std::string job;
  bool only_attempt = false;  // The job has no other.
  storage::AttemptInfo attempt;
  std::vector<storage::Metric> metrics;  // The job's, by name.

  int64_t first_time_ns() const;  // 0 if there is no row.
};

// Runs of the experiment's jobs, of those left out only what `filter` names. Attempts ascend.
std::vector<Run> FindRuns(const storage::Store& store, const Experiment& experiment,
                          const NameFilter& filter);

// Fills in what TensorBoard's environment page says of it.
void Describe(const Experiment& experiment, absl::string_view experiment_id,
              ::tensorboard::data::GetExperimentResponse* response);

// The sources of an answer. All outlive the call.
struct World {
  const storage::Store& store;
  const security::Rights& rights;
  const query::QueryControl& control;
  absl::Time now;
  uint64_t max_series = 0;  // query.max_series
};

// Points of one answer, however many a series may have: some 100 MB.
inline constexpr int64_t kMaxPointsOfAnswer = 5'000'000;

//   INVALID_ARGUMENT  the plugin's name is empty.
absl::Status CheckPlugin(const ::tensorboard::data::PluginFilter& filter);
//   INVALID_ARGUMENT  a number below 0.
absl::Status CheckDownsample(bool present, const ::tensorboard::data::Downsample& downsample);

// Seconds since the Unix epoch, as TensorBoard has times.
double WallTime(int64_t time_ns);

}  // namespace tacho::server::tb
