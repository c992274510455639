#include "server/query/lists/forecast_query.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/errors/grpc_status.h"
#include "server/forecast/end_forecast.h"
#include "server/forecast/loss_forecast.h"
#include "server/query/read/selection.h"
#include "server/query/read/series_scan.h"

namespace tacho::server::query {
namespace {

using conditions::Signal;

// The metric with a signal's meaning that is the best of those that the job has; empty: it has
// none.
std::string BestMetric(const storage::JobDetail& detail, const conditions::SignalNames& names,
                       Signal signal) {
  std::string best;
  uint32_t rank = std::numeric_limits<uint32_t>::max();
  for (const storage::Metric& metric : detail.metrics) {
    if (metric.type == storage::MetricType::kHistogram) continue;
    const auto match = names.Find(metric.name);
    if (!match.has_value() || match->signal != signal || match->rank >= rank) continue;
    best = metric.name;
    rank = match->rank;
  }
  return best;
}

// A metric whose rows show how far the job is.
std::string ClockOf(const storage::JobDetail& detail, const conditions::SignalNames& names) {
  for (const Signal signal : {Signal::kLoss, Signal::kStepTime, Signal::kTokens, Signal::kExamples,
                              Signal::kLearningRate, Signal::kGradNorm, Signal::kAccuracy}) {
    if (std::string metric = BestMetric(detail, names, signal); !metric.empty()) return metric;
  }
  return {};
}

// The last step by the plan that an attempt gave last. Jobs whose first step is 0 end one earlier.
std::optional<int64_t> PlannedLastStep(const storage::JobDetail& detail) {
  std::optional<int64_t> planned;
  bool from_zero = false;
  for (const storage::AttemptInfo& attempt : detail.attempts) {
    from_zero |= attempt.extent.first_step == 0;
    const auto found = attempt.attributes.find("planned_steps");
    double steps = 0;
    if (found == attempt.attributes.end() || !absl::SimpleAtod(found->second, &steps)) continue;
    if (steps >= 1 && steps < 9e18) planned = static_cast<int64_t>(steps);
  }
  if (!planned.has_value()) return std::nullopt;
  return from_zero ? *planned - 1 : *planned;
}

struct Past {
  std::optional<uint32_t> task;
  std::vector<forecast::CurvePoint> curve;
  std::vector<forecast::ProgressPoint> progress;
};

// The series of the lowest task that has the metric, with its fewest labels, from all its hosts.
std::vector<storage::SeriesPtr> OfOneTask(std::vector<storage::SeriesPtr> all) {
  if (all.empty()) return all;
  const auto place = [](const storage::SeriesPtr& series) {
    return std::tuple(series->source->task.has_value() ? int64_t{*series->source->task} : -1,
                      series->labels->size(), series->labels->number);
  };
  const auto first = place(*std::min_element(
      all.begin(), all.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); }));
  all.erase(std::remove_if(all.begin(), all.end(),
                           [&](const auto& series) { return place(series) != first; }),
            all.end());
  return all;
}

// Without the steps that a later attempt ran again.
absl::StatusOr<Past> ReadPast(const storage::Store& store, const std::string& job,
                              const std::string& metric, uint64_t max_series,
                              const QueryControl& control) {
  Past past;
  v1::Selector selector;
  selector.set_job(job);
  selector.add_metrics(metric);
  TACHO_ASSIGN_OR_RETURN(auto selection, MakeSelection(selector));
  TACHO_RETURN_IF_ERROR(ChooseAttempts(store, v1::ATTEMPTS_EFFECTIVE, &selection));
  const auto view = store.OpenJobView(job);
  TACHO_ASSIGN_OR_RETURN(auto all, FindSelected(store, selection, max_series));
  for (const storage::SeriesPtr& series : OfOneTask(std::move(all))) {
    past.task = series->source->task;
    forecast::CurvePoints curve;
    forecast::Progress progress;
    int64_t newest = -1;
    TACHO_RETURN_IF_ERROR(SeriesScan(view->Read(series, {}), selection.attempts, control)
                              .ForEachSample([&](const Sample& sample) {
                                if (sample.step == storage::kNoStep || sample.step <= newest)
                                  return;
                                newest = sample.step;
                                curve.Add(sample.step, sample.value);
                                progress.Add(sample.time_ns, sample.step);
                              }));
    for (const auto& point : curve.Take()) past.curve.push_back(point);
    for (const auto& point : progress.Take()) past.progress.push_back(point);
  }
  // A task that moved has a series on each host.
  std::stable_sort(past.curve.begin(), past.curve.end(),
                   [](const auto& a, const auto& b) { return a.step < b.step; });
  std::stable_sort(past.progress.begin(), past.progress.end(),
                   [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; });
  int64_t reached = -1;
  past.progress.erase(std::remove_if(past.progress.begin(), past.progress.end(),
                                     [&reached](const forecast::ProgressPoint& point) {
                                       if (point.step <= reached) return true;
                                       reached = point.step;
                                       return false;
                                     }),
                      past.progress.end());
  return past;
}

constexpr char kNoPlan[] =
    "nobody said how many steps the job has: record the attribute planned_steps, or name the last "
    "step in the request";

void FillEnd(const Past& past, int64_t last_step, absl::Time now, v1::ForecastResponse* response) {
  const auto end = forecast::ForecastEnd(past.progress, last_step, absl::ToUnixNanos(now));
  if (!end.ok()) {
    response->set_no_end(std::string(end.status().message()));
    return;
  }
  response->mutable_end()->set_likely_unix_ns(end->likely_ns);
  response->mutable_end()->set_earliest_unix_ns(end->earliest_ns);
  response->mutable_end()->set_latest_unix_ns(end->latest_ns);
}

void FillValue(const Past& past, const std::string& metric, int64_t last_step,
               v1::ForecastResponse* response) {
  // The forecast counts steps from 1.
  const auto value = forecast::ForecastLoss(past.curve, static_cast<double>(last_step) + 1);
  if (!value.ok()) {
    response->set_no_value(absl::StrCat(metric, ": ", value.status().message()));
    return;
  }
  v1::ValueForecast* proto = response->mutable_value();
  proto->set_metric(metric);
  if (past.task.has_value()) proto->set_task(*past.task);
  proto->set_likely(value->value);
  proto->set_low(value->low);
  proto->set_high(value->high);
  proto->set_now(value->now);
}

bool HasMetric(const storage::JobDetail& detail, const std::string& metric) {
  return std::any_of(detail.metrics.begin(), detail.metrics.end(),
                     [&](const storage::Metric& m) { return m.name == metric; });
}

}  // namespace

absl::Status GetForecast(const storage::Store& store, const v1::ForecastRequest& request,
                         const conditions::SignalNames& names, uint64_t max_series, absl::Time now,
                         const QueryControl& control, v1::ForecastResponse* response) {
  if (request.job().empty()) return errors::InvalidFieldError("job", "is required");
  if (request.has_last_step() && request.last_step() < 0) {
    return errors::InvalidFieldError("last_step", "is negative");
  }
  const std::optional<storage::JobDetail> detail = store.FindJob(request.job());
  if (!detail.has_value()) return NoSuchJob(store, request.job());
  if (!request.metric().empty() && !HasMetric(*detail, request.metric())) {
    return errors::InvalidFieldError(
        "metric", absl::StrCat("is \"", request.metric(), "\", which the job does not have"));
  }
  response->set_job(request.job());
  response->set_band_share(forecast::kBandShare);
  const std::optional<int64_t> last_step =
      request.has_last_step() ? request.last_step() : PlannedLastStep(*detail);
  if (last_step.has_value()) response->set_last_step(*last_step);

  const std::string metric =
      request.metric().empty() ? BestMetric(*detail, names, Signal::kLoss) : request.metric();
  const std::string clock = metric.empty() ? ClockOf(*detail, names) : metric;
  if (metric.empty()) {
    response->set_no_value("the job has no metric that is known as a loss: name one");
  }
  if (clock.empty()) {
    response->set_no_end("the job has no metric that shows its steps: name one");
    return absl::OkStatus();
  }
  TACHO_ASSIGN_OR_RETURN(const Past past,
                         ReadPast(store, request.job(), clock, max_series, control));
  if (!past.progress.empty()) response->set_newest_step(past.progress.back().step);
  if (!last_step.has_value()) {
    response->set_no_end(kNoPlan);
    if (!metric.empty()) response->set_no_value(kNoPlan);
    return absl::OkStatus();
  }
  FillEnd(past, *last_step, now, response);
  if (!metric.empty()) FillValue(past, metric, *last_step, response);
  return absl::OkStatus();
}

}  // namespace tacho::server::query
