#include "server/tensorboard/scalar_points.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"
#include "server/query/read/across.h"
#include "server/query/read/series_scan.h"
#include "server/query/read/step_order.h"

namespace tacho::server::tb {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr query::FoldOptions kMean = {.function = v1::AGGREGATE_FUNCTION_AVG};

int64_t FloorTo(int64_t value, int64_t unit) {
  const int64_t rest = value % unit;
  return value - (rest < 0 ? rest + unit : rest);
}

query::SeriesScan Scan(storage::ReadView* view, const Run& run, const storage::SeriesPtr& series,
                       const query::QueryControl& control) {
  storage::ReadOptions read;
  read.attempt = run.attempt.attempt;
  return query::SeriesScan(view->Read(series, read), query::AttemptCondition(), control);
}

// Gives every sample of a series a step, in ascending time.
class Stepper {
 public:
  Stepper(const Run& run, bool by_step) : run_(run), by_step_(by_step) {}

  int64_t StepOf(const query::Sample& sample) {
    if (!by_step_) return StepOfTime(run_, sample.time_ns);
    if (sample.step != storage::kNoStep) before_ = sample.step;
    return before_;
  }

 private:
  const Run& run_;
  const bool by_step_;
  int64_t before_ = 0;
};

// A series as it enters a mean by step: its newest sample at each.
absl::StatusOr<std::vector<query::Sample>> NewestAtSteps(query::SeriesScan* scan, Stepper stepper) {
  std::vector<query::Sample> samples;
  absl::Status status = scan->ForEachSample([&](const query::Sample& sample) {
    if (samples.size() > query::kMaxSortedSamples) return;
    samples.push_back(sample);
    samples.back().step = stepper.StepOf(sample);
  });
  if (!status.ok()) return status;
  if (samples.size() > query::kMaxSortedSamples) {
    return absl::ResourceExhaustedError(
        absl::StrCat("one of its series has more than ", query::kMaxSortedSamples, " samples"));
  }
  std::stable_sort(samples.begin(), samples.end(),
                   [](const query::Sample& a, const query::Sample& b) { return a.step < b.step; });
  query::KeepNewestOfEachStep(&samples);
  return samples;
}

// A series as it enters a mean by time: its mean in each window.
absl::StatusOr<std::vector<query::Sample>> MeansOfWindows(query::SeriesScan* scan,
                                                          Stepper stepper) {
  std::vector<query::Sample> means;
  query::Bucket window;  // The samples of the last mean.
  absl::Status status = scan->ForEachSample([&](const query::Sample& sample) {
    const int64_t begin = FloorTo(stepper.StepOf(sample), kMeanWindowSeconds);
    if (means.empty() || means.back().step != begin) {
      window = query::Bucket();
      means.emplace_back().step = begin;
    }
    window.AddValue(sample.value);
    means.back().time_ns = sample.time_ns;
    means.back().value = query::EntryOf(window, kMean);
  });
  if (!status.ok()) return status;
  return means;
}

absl::Status FillWithMeans(storage::ReadView* view, const Run& run, const ScalarTag& tag,
                           const query::QueryControl& control, ScalarSampler* sampler) {
  query::Fold fold(kMean);
  for (const storage::SeriesPtr& series : tag.series) {
    query::SeriesScan scan = Scan(view, run, series, control);
    const Stepper stepper(run, tag.by_step);
    TACHO_ASSIGN_OR_RETURN(
        auto samples, tag.by_step ? NewestAtSteps(&scan, stepper) : MeansOfWindows(&scan, stepper));
    for (const query::Sample& sample : samples) {
      TACHO_RETURN_IF_ERROR(fold.AddAtStep(sample));
    }
  }
  for (const query::FoldedPlace& place : fold.Take()) {
    sampler->Add({place.position, place.last_time_ns, place.value});
  }
  return absl::OkStatus();
}

absl::Status FillWithSamples(storage::ReadView* view, const Run& run, const ScalarTag& tag,
                             const query::QueryControl& control, ScalarSampler* sampler) {
  TACHO_CHECK(tag.series.size() == 1);
  Stepper stepper(run, tag.by_step);
  return Scan(view, run, tag.series.front(), control)
      .ForEachSample([&](const query::Sample& sample) {
        sampler->Add({stepper.StepOf(sample), sample.time_ns, sample.value});
      });
}

}  // namespace

int64_t StepOfTime(const Run& run, int64_t time_ns) {
  return FloorTo(time_ns - run.first_time_ns(), kSecondNs) / kSecondNs;
}

absl::StatusOr<std::vector<ScalarPoint>> ReadScalarPoints(storage::ReadView* view, const Run& run,
                                                          const ScalarTag& tag, size_t max_points,
                                                          const query::QueryControl& control) {
  if (max_points == 0) return std::vector<ScalarPoint>();
  ScalarSampler sampler(max_points);
  absl::Status status = tag.series.size() == 1 ? FillWithSamples(view, run, tag, control, &sampler)
                                               : FillWithMeans(view, run, tag, control, &sampler);
  if (absl::IsResourceExhausted(status)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("tag \"", tag.name, "\" of run \"", run.name, "\": ", status.message()));
  }
  if (!status.ok()) return status;
  return sampler.Take();
}

}  // namespace tacho::server::tb
