// Finds the jobs that an experiment's name stands for, and their attempts as runs. TensorBoard asks
// for all at once, so that jobs beyond a bound are left out and counted.
#include "server/tensorboard/experiment.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/time_util.h"
#include "proto/base/status_macros.h"
#include "server/errors/grpc_status.h"
#include "server/query/read/selection.h"
#include "server/tensorboard/experiment_size.h"

namespace tacho::server::tb {
namespace {

constexpr absl::Duration kActiveFor = absl::Minutes(5);

std::string RunName(absl::string_view job, uint32_t attempt) {
  return absl::StrCat(job, "/", attempt);
}

// The job of a run's name; a job's own name may hold slashes.
absl::string_view JobOf(absl::string_view run) { return run.substr(0, run.rfind('/')); }

absl::Status NothingMatches(const storage::Store& store, absl::string_view experiment_id,
                            const security::Rights& rights) {
  // The same whether or not there is such a job.
  TACHO_RETURN_IF_ERROR(rights.CheckJob(experiment_id, "experiment_id"));
  const std::string what =
      "experiment_id: as a regular expression it matches no name, and there is ";
  if (!rights.SeesEveryJob()) {
    return absl::NotFoundError(absl::StrCat(what, "no job \"", experiment_id, "\""));
  }
  return absl::NotFoundError(absl::StrCat(what, query::NoSuchJob(store, experiment_id).message()));
}

// Keeps the jobs that an experiment_id that is not empty stands for.
absl::Status KeepMatching(absl::string_view experiment_id, std::vector<storage::JobSummary>* jobs) {
  const auto exact = std::find_if(jobs->begin(), jobs->end(),
                                  [&](const auto& job) { return job.name == experiment_id; });
  if (exact != jobs->end()) {
    storage::JobSummary only = std::move(*exact);
    jobs->clear();
    jobs->push_back(std::move(only));
    return absl::OkStatus();
  }
  auto pattern =
      storage::Matcher::Create("job", storage::Matcher::Op::kMatches, std::string(experiment_id));
  if (!pattern.ok()) {
    return errors::InvalidFieldError(
        "experiment_id", absl::StrCat("is neither the name of a job nor a regular expression: ",
                                      pattern.status().message()));
  }
  std::erase_if(*jobs, [&](const auto& job) { return !pattern->MatchesValue(job.name); });
  return absl::OkStatus();
}

void OrderByActivity(absl::Time now, std::vector<storage::JobSummary>* jobs) {
  const int64_t since_ns = absl::ToUnixNanos(now - kActiveFor);
  const auto seen = [&](const auto& job) { return std::min(job.extent.last_time_ns, since_ns); };
  std::sort(jobs->begin(), jobs->end(), [&](const auto& a, const auto& b) {
    return std::make_tuple(seen(b), std::cref(a.name)) <
           std::make_tuple(seen(a), std::cref(b.name));
  });
}

// How many of the jobs, from the first on, are shown; one at least.
size_t Shown(const std::vector<storage::JobSummary>& jobs) {
  uint64_t runs = 0, series = 0;
  for (size_t i = 0; i < jobs.size(); ++i) {
    runs += jobs[i].attempts;
    series += jobs[i].series;
    if (i > 0 && (runs > kMaxRuns || series > kMaxSeries)) return i;
  }
  return jobs.size();
}

void AddRuns(const storage::Store& store, absl::string_view job, const NameFilter& filter,
             std::vector<Run>* runs) {
  std::optional<storage::JobDetail> detail = store.FindJob(job);
  if (!detail.has_value()) return;  // It has expired meanwhile.
  const bool only = detail->attempts.size() == 1;
  for (storage::AttemptInfo& attempt : detail->attempts) {
    std::string name = RunName(job, attempt.attempt);
    if (!filter.Allows(name)) continue;
    runs->push_back({std::move(name), std::string(job), only, std::move(attempt), detail->metrics});
  }
}

}  // namespace

NameFilter NameFilter::Runs(const ::tensorboard::data::RunTagFilter& filter) {
  NameFilter made;
  if (filter.has_runs()) {
    made.names_.emplace(filter.runs().names().begin(), filter.runs().names().end());
  }
  return made;
}

NameFilter NameFilter::Tags(const ::tensorboard::data::RunTagFilter& filter) {
  NameFilter made;
  if (filter.has_tags()) {
    made.names_.emplace(filter.tags().names().begin(), filter.tags().names().end());
  }
  return made;
}

int64_t Run::first_time_ns() const {
  const storage::Extent& extent = attempt.extent;
  return extent.first_time_ns <= extent.last_time_ns ? extent.first_time_ns : 0;
}

absl::StatusOr<Experiment> FindExperiment(const storage::Store& store,
                                          absl::string_view experiment_id,
                                          const security::Rights& rights, absl::Time now) {
  Experiment experiment;
  std::vector<storage::JobSummary>& jobs = experiment.jobs = store.Jobs();
  // The job without a name holds the collector's own events.
  std::erase_if(jobs,
                [&](const auto& job) { return job.name.empty() || !rights.MayTouch(job.name); });
  if (!experiment_id.empty()) {
    TACHO_RETURN_IF_ERROR(KeepMatching(experiment_id, &jobs));
    if (jobs.empty()) return NothingMatches(store, experiment_id, rights);
  }
  OrderByActivity(now, &jobs);
  const auto end = jobs.begin() + static_cast<ptrdiff_t>(Shown(jobs));
  experiment.left_out.assign(std::make_move_iterator(end), std::make_move_iterator(jobs.end()));
  jobs.erase(end, jobs.end());
  return experiment;
}

std::vector<Run> FindRuns(const storage::Store& store, const Experiment& experiment,
                          const NameFilter& filter) {
  std::vector<Run> runs;
  if (filter.all()) {
    for (const auto& job : experiment.jobs) AddRuns(store, job.name, filter, &runs);
    return runs;
  }
  absl::flat_hash_set<absl::string_view> named;
  for (const std::string& run : filter.names()) named.insert(JobOf(run));
  for (const auto* jobs : {&experiment.jobs, &experiment.left_out}) {
    for (const auto& job : *jobs) {
      if (named.contains(job.name)) AddRuns(store, job.name, filter, &runs);
    }
  }
  return runs;
}

void Describe(const Experiment& experiment, absl::string_view experiment_id,
              ::tensorboard::data::GetExperimentResponse* response) {
  uint64_t runs = 0;
  int64_t first_ns = INT64_MAX;
  for (const auto& job : experiment.jobs) {
    runs += job.attempts;
    first_ns = std::min(first_ns, job.extent.first_time_ns);
  }
  response->set_data_location(experiment_id.empty()
                                  ? "Tachograph, all jobs"
                                  : absl::StrCat("Tachograph, jobs \"", experiment_id, "\""));
  response->set_name(experiment_id.data(), experiment_id.size());
  response->set_description(SizeInWords(
      {.jobs = experiment.jobs.size(), .runs = runs, .left_out = experiment.left_out.size()}));
  if (first_ns != INT64_MAX) {
    *response->mutable_creation_time() =
        google::protobuf::util::TimeUtil::NanosecondsToTimestamp(first_ns);
  }
}

absl::Status CheckPlugin(const ::tensorboard::data::PluginFilter& filter) {
  if (!filter.plugin_name().empty()) return absl::OkStatus();
  return errors::InvalidFieldError("plugin_filter.plugin_name", "is required");
}

absl::Status CheckDownsample(bool present, const ::tensorboard::data::Downsample& downsample) {
  if (!present) return errors::InvalidFieldError("downsample", "is required");
  if (downsample.num_points() >= 0) return absl::OkStatus();
  return errors::InvalidFieldError("downsample.num_points", "is negative");
}

double WallTime(int64_t time_ns) { return static_cast<double>(time_ns) / 1e9; }

}  // namespace tacho::server::tb
