// Reads one subject's series and folds them into one value a place. Along time, positions count
// from the subject's own beginning, so that runs of different days can be compared.
#include "server/query/compare/compared_subject.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"
#include "server/query/read/step_order.h"

namespace tacho::server::query {
namespace {

// Time since the origin; the furthest there is of what lies further.
int64_t Elapsed(int64_t time_ns, int64_t origin_ns) {
  const uint64_t since = static_cast<uint64_t>(time_ns) - static_cast<uint64_t>(origin_ns);
  constexpr int64_t kFurthest = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::min(since, static_cast<uint64_t>(kFurthest)));
}

absl::Status NoSuchAttempt(const ComparedSelection& subject, const storage::JobDetail& job) {
  const auto name = [](std::string* out, const storage::AttemptInfo& info) {
    absl::StrAppend(out, info.attempt);
  };
  return absl::NotFoundError(absl::StrCat("job \"", job.summary.name, "\" has no attempt ",
                                          *subject.attempt, "; it has ",
                                          absl::StrJoin(job.attempts, ", ", name)));
}

// The values across series.
absl::StatusOr<double> Across(const std::vector<double>& values, const FoldOptions& options) {
  Fold fold(options);
  for (const double value : values) {
    TACHO_RETURN_IF_ERROR(fold.AddAtStep({.step = 0, .value = value}));
  }
  return fold.Take().front().value;
}

enum class Side { kBeginning, kEnd };

// Where a subject begins or ends, from the first or the last bucket of each of its series. Only the
// outermost of them count: a series that ended long before, as that of an earlier attempt on
// another host, has nothing to say about the end.
absl::StatusOr<ComparedFigures::End> EndOf(const std::vector<Bucket>& buckets, Side side,
                                           const FoldOptions& options) {
  ComparedFigures::End end;
  if (buckets.empty()) return end;
  const bool begins = side == Side::kBeginning;
  uint32_t outermost = buckets.front().index;
  for (const Bucket& bucket : buckets) {
    outermost = begins ? std::min(outermost, bucket.index) : std::max(outermost, bucket.index);
  }
  AxisExtent places;
  std::vector<double> values;
  for (const Bucket& bucket : buckets) {
    if (bucket.index != outermost) continue;
    places.Include(begins ? bucket.first_time_ns : bucket.last_time_ns);
    values.push_back(begins ? bucket.first : bucket.last);
  }
  end.position = begins ? places.first : places.last;
  TACHO_ASSIGN_OR_RETURN(end.value, Across(values, options));
  return end;
}

void SetEnds(const ComparedPlaces& places, ComparedFigures* figures) {
  if (places.size() == 0) return;
  figures->first = {places.values.front(), places.positions.front()};
  figures->last = {places.values.back(), places.positions.back()};
}

bool CountsEverything(const storage::Series& series) { return series.labels->Find("le") == "+Inf"; }

// The buckets of a histogram count the same observations: those of all are enough.
void KeepObservations(std::vector<storage::SeriesPtr>* list) {
  if (list->front()->metric->type != storage::MetricType::kHistogram) return;
  std::vector<storage::SeriesPtr> kept;
  for (const storage::SeriesPtr& one : *list) {
    if (CountsEverything(*one)) kept.push_back(one);
  }
  if (!kept.empty()) *list = std::move(kept);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ComparedSubject>> ComparedSubject::Create(
    const storage::Store& store, const ComparePlan& plan, size_t index, uint64_t max_series,
    const QueryControl& control) {
  auto made = absl::WrapUnique(new ComparedSubject(plan, control));
  const ComparedSelection& subject = plan.subjects[index];
  made->selection_ = subject.selection;
  TACHO_RETURN_IF_ERROR(made->Select(store, subject));
  made->view_ = store.OpenJobView(made->selection_.selector.job);
  TACHO_ASSIGN_OR_RETURN(auto series, FindSelected(store, made->selection_, max_series));
  SubjectFacts& facts = made->facts_;
  facts.series = series.size();
  for (storage::SeriesPtr& one : series) {
    if (facts.metrics.empty() || facts.metrics.back().name() != one->metric->name) {
      ToProto(*one->metric, &facts.metrics.emplace_back());
      made->series_.emplace_back();
    }
    made->series_.back().push_back(std::move(one));
  }
  for (SeriesList& list : made->series_) KeepObservations(&list);
  return made;
}

absl::Status ComparedSubject::Select(const storage::Store& store,
                                     const ComparedSelection& subject) {
  const auto attempts = store.Attempts(selection_.selector.job);
  if (!attempts.ok()) return attempts.status();
  if (!subject.attempt.has_value() && !attempts->empty()) {
    facts_.attributes = attempts->back().attributes;
    return ChooseAttempts(store, subject.attempts, &selection_);
  }
  const auto found = std::find_if(attempts->begin(), attempts->end(),
                                  [&](auto& info) { return info.attempt == *subject.attempt; });
  if (found == attempts->end()) {
    const auto job = store.FindJob(selection_.selector.job);
    if (!job.has_value()) return NoSuchJob(store, selection_.selector.job);
    if (subject.attempt.has_value()) return NoSuchAttempt(subject, *job);
    return ChooseAttempts(store, subject.attempts, &selection_);
  }
  facts_.attributes = found->attributes;
  selection_.attempts.Require(subject.attempt);
  return absl::OkStatus();
}

std::span<const storage::SeriesPtr> ComparedSubject::SeriesOf(const std::string& metric) const {
  const v1::Metric* const found = facts_.Find(metric);
  if (found == nullptr) return {};
  return series_[static_cast<size_t>(found - facts_.metrics.data())];
}

SeriesScan ComparedSubject::Scan(const storage::SeriesPtr& series) const {
  storage::ReadOptions read = plan_->read;
  read.attempt = selection_.attempts.only();
  return SeriesScan(view_->Read(series, read), selection_.attempts, *control_);
}

absl::Status ComparedSubject::FindOrigin(const std::vector<std::string>& metrics) {
  origin_ns_ = std::numeric_limits<int64_t>::max();
  storage::Chunk chunk;
  for (const std::string& metric : metrics) {
    for (const storage::SeriesPtr& series : SeriesOf(metric)) {
      TACHO_ASSIGN_OR_RETURN(const bool any, Scan(series).Next(storage::AnySummary(), &chunk));
      if (any) origin_ns_ = std::min(origin_ns_, chunk.first_time_ns());
    }
  }
  return absl::OkStatus();
}

absl::Status ComparedSubject::IncludeExtent(const std::string& metric, AxisExtent* extent) {
  const auto include = [&](const storage::Chunk& chunk) {
    for (const int64_t time_ns : {chunk.first_time_ns(), chunk.last_time_ns()}) {
      extent->Include(Elapsed(time_ns, origin_ns_));
      extent_.Include(time_ns);
    }
    if (chunk.is_summary()) {
      attempts_.insert(chunk.summary().attempt);
      return;
    }
    const storage::SampleView& samples = chunk.samples();
    attempts_.insert(samples.AttemptOf(0));
    attempts_.insert(samples.attempts.begin(), samples.attempts.end());
  };
  for (const storage::SeriesPtr& one : SeriesOf(metric)) {
    TACHO_RETURN_IF_ERROR(Scan(one).ForEach(storage::AnySummary(), include));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Bucket>> ComparedSubject::BucketsOf(const storage::SeriesPtr& series,
                                                               const BucketGrid& grid) const {
  std::vector<int64_t> elapsed;
  const storage::Want in_buckets = {.summary = [&](const storage::SampleSummary& summary) {
    return grid.IndexOf(Elapsed(summary.first_time_ns, origin_ns_)) ==
           grid.IndexOf(Elapsed(summary.last_time_ns, origin_ns_));
  }};
  Reducer reducer(grid, /*by_step=*/false);
  TACHO_RETURN_IF_ERROR(Scan(series).ForEach(in_buckets, [&](const storage::Chunk& chunk) {
    if (chunk.is_summary()) {
      storage::SampleSummary summary = chunk.summary();
      summary.first_time_ns = Elapsed(summary.first_time_ns, origin_ns_);
      summary.last_time_ns = Elapsed(summary.last_time_ns, origin_ns_);
      return reducer.AddByTime(summary);
    }
    storage::SampleColumns columns = chunk.samples().columns;
    elapsed.clear();
    for (const int64_t time : columns.times) elapsed.push_back(Elapsed(time, origin_ns_));
    columns.times = elapsed;
    reducer.Add(columns);
  }));
  return reducer.Take();
}

absl::StatusOr<ComparedPlaces> ComparedSubject::PlacesByTime(const std::string& metric,
                                                             const TimeGrid& time_grid, bool growth,
                                                             ComparedFigures* figures) {
  const std::span<const storage::SeriesPtr> series = SeriesOf(metric);
  const BucketGrid grid = time_grid.buckets_of_it();
  Fold fold(plan_->fold);
  std::vector<Bucket> begins;
  std::vector<Bucket> ends;
  for (const storage::SeriesPtr& one : series) {
    TACHO_ASSIGN_OR_RETURN(const auto buckets, BucketsOf(one, grid));
    for (const Bucket& bucket : buckets) {
      TACHO_RETURN_IF_ERROR(fold.AddBucket(bucket));
      if (figures != nullptr) figures->Add(bucket);
    }
    if (buckets.empty()) continue;
    begins.push_back(buckets.front());
    ends.push_back(buckets.back());
  }
  if (figures != nullptr) {
    TACHO_ASSIGN_OR_RETURN(figures->first, EndOf(begins, Side::kBeginning, plan_->fold));
    TACHO_ASSIGN_OR_RETURN(figures->last, EndOf(ends, Side::kEnd, plan_->fold));
    if (growth) TACHO_RETURN_IF_ERROR(AddGrowth(series, figures));
  }
  return AsPlaces(fold.Take());
}

absl::Status ComparedSubject::AddGrowth(std::span<const storage::SeriesPtr> series,
                                        ComparedFigures* figures) const {
  double seconds = 0;
  double increase = 0;
  for (const storage::SeriesPtr& one : series) {
    CounterGrowth growth(v1::COUNTER_FUNCTION_INCREASE);
    std::optional<AxisExtent> times;
    const auto add = [&increase](const storage::Chunk& chunk) {
      for (const double value : chunk.samples().columns.values) {
        if (std::isfinite(value)) increase += value;
      }
    };
    SeriesScan scan = Scan(one);
    storage::Chunk chunk;
    for (bool more = true; more;) {
      TACHO_ASSIGN_OR_RETURN(more, scan.Next({}, &chunk));
      if (more) {
        if (!times.has_value()) times.emplace();
        times->Include(chunk.first_time_ns());
        times->Include(chunk.last_time_ns());
        growth.Apply(&chunk);
      } else {
        growth.Finish(&chunk);
      }
      add(chunk);
    }
    if (times.has_value()) seconds += SecondsBetween(times->first, times->last);
  }
  figures->increase = increase;
  if (seconds > 0) figures->rate = increase / seconds;
  return absl::OkStatus();
}

void ComparedSubject::Include(const storage::SampleBlock& samples) {
  if (samples.size() == 0) return;
  int64_t first = samples.times.front();
  int64_t last = first;
  for (const int64_t time : samples.times) {
    first = std::min(first, time);
    last = std::max(last, time);
  }
  extent_.Include(first);
  extent_.Include(last);
  extent_.IncludeStep(samples.steps.front());
  extent_.IncludeStep(samples.steps.back());
  for (std::span<const uint32_t> rest = samples.attempts; !rest.empty();) {
    attempts_.insert(rest.front());
    rest = rest.subspan(LeadingRows(rest.front(), rest));
  }
}

absl::StatusOr<ComparedPlaces> ComparedSubject::PlacesByStep(const std::string& metric, bool growth,
                                                             ComparedFigures* figures) {
  const std::span<const storage::SeriesPtr> series = SeriesOf(metric);
  if (growth) TACHO_RETURN_IF_ERROR(AddGrowth(series, figures));
  Fold fold(plan_->fold);
  // A sample that meets no other comes to itself, if it is summed or averaged.
  const bool alone = series.size() == 1 && (plan_->fold.function == v1::AGGREGATE_FUNCTION_AVG ||
                                            plan_->fold.function == v1::AGGREGATE_FUNCTION_SUM);
  for (const storage::SeriesPtr& one : series) {
    SeriesScan scan = Scan(one);
    TACHO_ASSIGN_OR_RETURN(auto samples, NewestOfEachStep(&scan));
    Include(samples);
    figures->Add(samples.values);
    if (alone && samples.size() <= kMaxPlaces) {
      TACHO_CHECK(samples.steps.size() == samples.values.size());
      ComparedPlaces places{std::move(samples.steps), std::move(samples.values), {}};
      SetEnds(places, figures);
      return places;
    }
    for (size_t i = 0; i < samples.size(); ++i) {
      TACHO_RETURN_IF_ERROR(fold.AddAtStep(SampleOf(samples, i)));
    }
  }
  ComparedPlaces places = AsPlaces(fold.Take());
  SetEnds(places, figures);
  return places;
}

void ComparedSubject::Describe(v1::ComparedSubject* proto) const {
  proto->set_job(selection_.selector.job);
  proto->mutable_attempts()->Add(attempts_.begin(), attempts_.end());
  if (extent_.first_time_ns > extent_.last_time_ns) return;
  proto->set_first_unix_ns(extent_.first_time_ns);
  proto->set_last_unix_ns(extent_.last_time_ns);
  if (extent_.first_step.has_value()) proto->set_first_step(*extent_.first_step);
  if (extent_.last_step.has_value()) proto->set_last_step(*extent_.last_step);
}

}  // namespace tacho::server::query
