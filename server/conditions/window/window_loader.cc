#include "server/conditions/window/window_loader.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "proto/base/check.h"
#include "proto/base/status_macros.h"
#include "server/phases/phases.h"

namespace tacho::server::conditions {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr size_t kMaxSeries = 10'000'000;
constexpr uint32_t kManyTasks = 256;

// `phases` explain long times between rows.
absl::Status ReadSeries(const storage::SeriesPtr& series, const storage::ReadOptions& options,
                        const phases::PhaseCover& phases, storage::ReadView* view,
                        WindowBuilder* builder) {
  const auto covered = [&](int64_t from_ns, int64_t to_ns) {
    return phases.CoveredNs(from_ns, to_ns);
  };
  const bool of_host = WindowBuilder::IsHostSignal(builder->Meaning(*series)->signal);
  uint32_t attempt = 0;
  RowPace pace;
  const auto reader = view->Read(series, options);
  storage::Chunk chunk;
  std::vector<Point> points;
  for (;;) {
    TACHO_ASSIGN_OR_RETURN(const auto more, reader->Next({}, &chunk));
    if (!more) break;
    const storage::SampleView& samples = chunk.samples();
    const auto& [times, steps, values] = samples.columns;
    for (size_t i = 0; i < samples.size();) {
      if (samples.AttemptOf(i) != attempt) pace = RowPace();
      attempt = samples.AttemptOf(i);
      points.clear();
      for (; i < samples.size() && samples.AttemptOf(i) == attempt; ++i) {
        points.push_back({times[i], steps[i], values[i]});
        if (of_host || steps[i] == kNoPointStep) continue;
        pace.Note(times[i], steps[i]);
        pace.Settle(INT64_MAX, covered);
      }
      builder->AddSamples(*series, attempt, points);
    }
  }
  if (pace.intervals() > 0) builder->TakePace(*series, attempt, std::move(pace));
  return absl::OkStatus();
}

// The newest attempt's.
absl::StatusOr<phases::PhaseCover> PhasesOf(const storage::Store& store, const std::string& job,
                                            std::optional<uint32_t> attempt, int64_t since_ns) {
  phases::PhasePairs pairs;
  TACHO_RETURN_IF_ERROR(
      store.VisitEvents(job, since_ns, INT64_MAX, storage::Store::EventOrder::kOldestFirst,
                        [&](const storage::Event& event) {
                          if (event.source.attempt == attempt)
                            pairs.Add(event.kind, event.time_ns, event.source.task);
                          return true;
                        }));
  return phases::PhaseCover(pairs.Take());
}

std::optional<uint32_t> LowestTask(const std::vector<storage::SeriesPtr>& all) {
  std::optional<uint32_t> lowest;
  for (const auto& series : all) {
    if (series->source->task && (!lowest || *series->source->task < *lowest)) {
      lowest = series->source->task;
    }
  }
  return lowest;
}

}  // namespace

LoadSpan SpanAfterStart(int64_t now_ns, uint32_t tasks) {
  LoadSpan span;
  span.since_ns = now_ns - (tasks > kManyTasks ? 600 : 3600) * kSecondNs;
  span.leader_since_ns = now_ns - 86'400 * kSecondNs;
  return span;
}

absl::Status LoadWindow(const storage::Store& store, const std::string& job, const LoadSpan& span,
                        WindowBuilder* builder) {
  TACHO_CHECK(span.leader_since_ns <= span.since_ns);
  TACHO_ASSIGN_OR_RETURN(const auto attempts, store.Attempts(job));
  storage::Selector selector;
  selector.job = job;
  TACHO_ASSIGN_OR_RETURN(auto all, store.FindSeries(selector, kMaxSeries));
  std::erase_if(all, [&](const auto& series) { return !builder->Meaning(*series).has_value(); });
  const auto lowest = LowestTask(all);
  std::optional<uint32_t> newest;
  if (!attempts.empty()) newest = attempts.back().attempt;
  TACHO_ASSIGN_OR_RETURN(const auto phases, PhasesOf(store, job, newest, span.leader_since_ns));
  builder->BreakPaces(job);
  const auto view = store.OpenView(all);
  for (const auto& series : all) {
    storage::ReadOptions options;
    options.read_once = true;
    const bool of_host = WindowBuilder::IsHostSignal(builder->Meaning(*series)->signal);
    if (!of_host) options.attempt = newest;
    const bool leads = !of_host && series->source->task == lowest;
    options.begin_ns = leads ? span.leader_since_ns : span.since_ns;
    TACHO_RETURN_IF_ERROR(ReadSeries(series, options, phases, view.get(), builder));
  }
  return store.VisitEvents(job, span.leader_since_ns, INT64_MAX,
                           storage::Store::EventOrder::kOldestFirst, [&](storage::Event event) {
                             builder->AddEvent(event);
                             return true;
                           });
}

}  // namespace tacho::server::conditions
