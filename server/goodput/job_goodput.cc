// Reads the reference task's series side by side in ascending time, twice: first for where steps
// fell back, then for the ledger. So memory holds a chunk of each series, however long the job.
#include "server/goodput/job_goodput.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"
#include "server/goodput/attempt_facts.h"
#include "server/goodput/job_losses.h"
#include "server/goodput/sample_cursor.h"
#include "server/query/read/sample.h"
#include "storage/index/matcher.h"
#include "storage/model/series_reader.h"

namespace tacho::server::goodput {
namespace {

// Series of one task: a few hundred metrics on as many hosts as it moved over.
constexpr size_t kMaxTaskSeries = 100'000;
// The most metrics that a span is searched in for rows that have a step.
constexpr size_t kMaxClocks = 16;

// The signals that a step row is made of besides its clock.
constexpr std::array<conditions::Signal, 5> kRowSignals = {
    conditions::Signal::kStepTime, conditions::Signal::kDataWait,
    conditions::Signal::kCheckpointTime, conditions::Signal::kEvalTime,
    conditions::Signal::kTokens};
// The metrics whose rows show the steps: the best first, any other metric after them.
constexpr std::array<conditions::Signal, 7> kClocks = {
    conditions::Signal::kStepTime, conditions::Signal::kTokens,       conditions::Signal::kExamples,
    conditions::Signal::kLoss,     conditions::Signal::kLearningRate, conditions::Signal::kGradNorm,
    conditions::Signal::kAccuracy};

// One metric of the reference task, with one set of labels, on all of its hosts.
struct Channel {
  std::string metric;
  double factor = 1;
  std::vector<storage::SeriesPtr> series;
};

struct Channels {
  std::map<conditions::Signal, Channel> of_signals;
  std::vector<const Channel*> clocks;  // Into of_signals and `others`.
  std::vector<std::unique_ptr<Channel>> others;
};

std::optional<std::optional<uint32_t>> ReferenceTask(const storage::JobDetail& detail) {
  for (const storage::TaskInfo& task : detail.tasks) {  // Ascending.
    if (task.extent.last_step.has_value()) return task.task;
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<storage::SeriesPtr>> SeriesOfTask(const storage::Store& store,
                                                             absl::string_view job,
                                                             std::optional<uint32_t> task) {
  TACHO_ASSIGN_OR_RETURN(auto matcher,
                         storage::Matcher::Create("task", storage::Matcher::Op::kEqual,
                                                  task.has_value() ? absl::StrCat(*task) : ""));
  storage::Selector selector;
  selector.job = std::string(job);
  selector.matchers.push_back(std::move(matcher));
  return store.FindSeries(selector, kMaxTaskSeries);
}

// The best metric of each signal: if there are several, the one of the lowest rank, with the fewest
// labels.
Channels ChannelsOf(const std::vector<storage::SeriesPtr>& all,
                    const conditions::SignalNames& names) {
  struct Group {
    conditions::SignalMatch match;
    Channel channel;
  };
  // Series come by (metric, task, host, labels).
  std::map<std::tuple<std::string, uint32_t>, Group> groups;  // By metric and label set.
  for (const storage::SeriesPtr& series : all) {
    if (series->metric->type == storage::MetricType::kHistogram) continue;
    Group& group = groups[{series->metric->name, series->labels->number}];
    if (group.channel.series.empty()) {
      group.channel.metric = series->metric->name;
      const auto match = names.Find(series->metric->name);
      if (match.has_value()) group.match = *match;
      group.channel.factor = group.match.factor;
    }
    group.channel.series.push_back(series);
  }
  std::vector<Group*> ordered;
  for (auto& [key, group] : groups) ordered.push_back(&group);
  std::stable_sort(ordered.begin(), ordered.end(), [](const Group* a, const Group* b) {
    const size_t labels_a = a->channel.series.front()->labels->size();
    const size_t labels_b = b->channel.series.front()->labels->size();
    return std::tie(a->match.rank, labels_a) < std::tie(b->match.rank, labels_b);
  });
  Channels channels;
  for (Group* group : ordered) {
    const conditions::Signal signal = group->match.signal;
    if (signal == conditions::Signal::kCount) {
      if (channels.others.size() < kMaxClocks) {
        channels.others.push_back(std::make_unique<Channel>(std::move(group->channel)));
      }
    } else {
      channels.of_signals.try_emplace(signal, std::move(group->channel));
    }
  }
  for (const conditions::Signal signal : kClocks) {
    const auto found = channels.of_signals.find(signal);
    if (found != channels.of_signals.end()) channels.clocks.push_back(&found->second);
  }
  for (const auto& other : channels.others) channels.clocks.push_back(other.get());
  if (channels.clocks.size() > kMaxClocks) channels.clocks.resize(kMaxClocks);
  return channels;
}

// Reads the steps of spans.
class StepReader {
 public:
  StepReader(const storage::Store& store, const std::vector<storage::SeriesPtr>& series,
             const Channels& channels, const query::QueryControl& control)
      : view_(store.OpenView(series)), channels_(channels), control_(control) {}

  // Finds the channel whose rows show the span's steps: the first that has any; nullptr:
  // none. Calls `add` for the step of each row.
  absl::StatusOr<const Channel*> ReadClock(const AttemptSpan& span, uint32_t attempt,
                                           absl::FunctionRef<void(int64_t)> add) {
    for (const Channel* clock : channels_.clocks) {
      SampleCursor cursor = Open(*clock, span, attempt);
      bool any = false;
      for (;;) {
        TACHO_RETURN_IF_ERROR(Advance(&cursor));
        if (cursor.at_end()) break;
        if (cursor.sample().step == storage::kNoStep) continue;
        any = true;
        add(cursor.sample().step);
      }
      if (any) return clock;
    }
    return nullptr;
  }

  // The rows of `clock`, with what the other channels say up to each.
  absl::Status ReadRows(const Channel& clock, const AttemptSpan& span, uint32_t attempt,
                        absl::FunctionRef<void(const StepRow&)> add) {
    SampleCursor cursor = Open(clock, span, attempt);
    std::array<SampleCursor, kRowSignals.size()> others;
    for (size_t i = 0; i < kRowSignals.size(); ++i) {
      const auto channel = channels_.of_signals.find(kRowSignals[i]);
      if (channel == channels_.of_signals.end()) continue;
      others[i] = Open(channel->second, span, attempt);
      TACHO_RETURN_IF_ERROR(Advance(&others[i]));
    }
    for (;;) {
      TACHO_RETURN_IF_ERROR(Advance(&cursor));
      if (cursor.at_end()) return absl::OkStatus();
      const query::Sample& sample = cursor.sample();
      if (sample.step == storage::kNoStep) continue;
      StepRow row = {.time_ns = sample.time_ns, .step = sample.step};
      double* const fields[] = {&row.step_seconds, &row.data_wait_seconds, &row.checkpoint_seconds,
                                &row.eval_seconds, &row.tokens};
      for (size_t i = 0; i < others.size(); ++i) {
        const bool pause = kRowSignals[i] == conditions::Signal::kCheckpointTime ||
                           kRowSignals[i] == conditions::Signal::kEvalTime;
        TACHO_RETURN_IF_ERROR(TakeUpTo(sample.time_ns, pause, &others[i], fields[i]));
      }
      add(row);
    }
  }

 private:
  SampleCursor Open(const Channel& channel, const AttemptSpan& span, uint32_t attempt) {
    storage::ReadOptions options;
    options.begin_ns = span.begin_ns;
    options.end_ns = span.end_ns == INT64_MAX ? INT64_MAX : span.end_ns + 1;
    options.attempt = attempt;
    std::vector<std::unique_ptr<storage::SeriesReader>> readers;
    for (const auto& series : channel.series) readers.push_back(view_->Read(series, options));
    return {std::move(readers), channel.factor};
  }

  absl::Status Advance(SampleCursor* cursor) {
    if (++advanced_ % 4096 == 0) {
      TACHO_RETURN_IF_ERROR(control_.Check());
    }
    return cursor->Next();
  }

  // Adds up pauses that end by then; other values are replaced by the newest.
  absl::Status TakeUpTo(int64_t time_ns, bool pause, SampleCursor* cursor, double* value) {
    while (!cursor->at_end() && cursor->sample().time_ns <= time_ns) {
      const double next = cursor->sample().value;
      *value = pause && std::isfinite(*value) && std::isfinite(next) ? *value + next : next;
      TACHO_RETURN_IF_ERROR(Advance(cursor));
    }
    return absl::OkStatus();
  }

  std::unique_ptr<storage::ReadView> view_;
  const Channels& channels_;
  const query::QueryControl& control_;
  uint64_t advanced_ = 0;
};

// With the plan that an attempt gave last: a later one need not repeat it.
AttemptAttributes AttributesOf(const storage::JobDetail& detail, uint32_t attempt) {
  constexpr const char* kPlanned = "planned_steps";
  AttemptAttributes attributes;
  std::string planned;
  for (const storage::AttemptInfo& info : detail.attempts) {
    if (info.attempt == attempt) attributes = info.attributes;
    const auto found = info.attributes.find(kPlanned);
    if (found != info.attributes.end()) planned = found->second;
  }
  if (!planned.empty()) attributes[kPlanned] = planned;
  return attributes;
}

bool CountsFromZero(const storage::JobDetail& detail) {
  return std::any_of(detail.attempts.begin(), detail.attempts.end(),
                     [](const storage::AttemptInfo& info) { return info.extent.first_step == 0; });
}

std::vector<std::string> HostsOf(const storage::JobDetail& detail, uint32_t attempt) {
  std::set<std::string> hosts;
  for (const storage::TaskInfo& task : detail.tasks) {
    if (task.attempt == attempt && !task.host.empty()) hosts.insert(task.host);
  }
  return {hosts.begin(), hosts.end()};
}

// Makes what judges losses, for a job with so many rows.
using LossesOfRows = std::function<absl::StatusOr<JobLosses>(uint64_t rows)>;

void TakeLosses(const JobLosses& losses, JobGoodput* goodput) {
  const auto sum = [](const HostLoss& loss) {
    return std::accumulate(loss.begin(), loss.end(), 0.0);
  };
  for (const auto& [host, loss] : losses.losses().losses()) {
    goodput->losing_hosts.push_back({.host = losses.host(host), .seconds = loss});
  }
  std::stable_sort(goodput->losing_hosts.begin(), goodput->losing_hosts.end(),
                   [&](const auto& a, const auto& b) { return sum(a.seconds) > sum(b.seconds); });
  if (goodput->losing_hosts.size() > kMaxLosingHosts) goodput->losing_hosts.resize(kMaxLosingHosts);
  goodput->lost_seconds = losses.lost_seconds();
  goodput->loss_judged_steps = losses.losses().judged_steps();
}

// Both passes over all spans.
absl::Status MakeLedger(const storage::JobDetail& detail, const std::vector<AttemptFacts>& facts,
                        int64_t now_ns, size_t max_spans, StepReader* reader,
                        const LossesOfRows& make_losses, JobGoodput* goodput) {
  const std::vector<AttemptSpan> spans = SpansOf(facts, now_ns);
  RewindFinder rewinds;
  uint64_t rows = 0;
  std::vector<const Channel*> clocks;
  for (const AttemptSpan& span : spans) {
    rewinds.BeginSpan();
    const auto clock = reader->ReadClock(span, facts[span.index].attempt, [&](int64_t step) {
      rewinds.Add(step);
      ++rows;
    });
    if (!clock.ok()) return clock.status();
    clocks.push_back(*clock);
  }
  TACHO_ASSIGN_OR_RETURN(JobLosses losses, make_losses(rows));
  LedgerMaker maker(facts, spans, rewinds.Floors(), now_ns, {.max_spans = max_spans});
  for (size_t i = 0; i < spans.size(); ++i) {
    maker.BeginSpan();
    if (clocks[i] == nullptr) continue;
    const uint32_t attempt = facts[spans[i].index].attempt;
    absl::Status judged;
    const auto add = [&](const StepRow& row) { maker.AddStep(row); };
    losses.BeginSpan(attempt);
    absl::Status status = reader->ReadRows(*clocks[i], spans[i], attempt, [&](const StepRow& row) {
      if (judged.ok()) judged = losses.AddStep(row, add);
    });
    if (judged.ok()) judged = losses.EndSpan(add);
    if (!status.ok()) return status;
    if (!judged.ok()) return judged;
  }
  maker.Finish();
  TakeLosses(losses, goodput);
  goodput->total = maker.total();
  goodput->spans = maker.bucket_spans();
  goodput->spans_joined = maker.bucket_spans_joined();
  goodput->tokens_per_step = maker.tokens_per_step();
  for (size_t i = 0; i < spans.size(); ++i) {
    goodput->attempts.push_back({facts[spans[i].index].attempt, maker.of_spans()[i]});
  }
  for (const AttemptFacts& one : facts) goodput->has_phases |= !one.phases.empty();
  if (!maker.stepping_span().has_value()) return absl::OkStatus();
  const size_t stepping = *maker.stepping_span();
  goodput->has_steps = true;
  goodput->steps_attempt = facts[spans[stepping].index].attempt;
  goodput->step_metric = clocks[stepping]->metric;
  goodput->steps = FiguresOf(maker.samples(), AttributesOf(detail, *goodput->steps_attempt),
                             CountsFromZero(detail));
  const std::vector<double> times = StepTimesOf(maker.samples());
  goodput->step_times.assign(times.begin(), times.end());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<JobGoodput> GoodputOf(const storage::Store& store, absl::string_view job,
                                     const conditions::SignalNames& names, absl::Time now,
                                     const query::QueryControl& control, size_t max_spans,
                                     const AgentReports& reports) {
  const std::optional<storage::JobDetail> detail = store.FindJob(job);
  if (!detail.has_value()) return absl::NotFoundError(absl::StrCat("no job \"", job, "\""));
  JobGoodput goodput;
  goodput.job = std::string(job);
  if (!detail->attempts.empty()) {
    goodput.attempt = detail->attempts.back().attempt;
    goodput.attributes = detail->attempts.back().attributes;
    goodput.hosts = HostsOf(*detail, goodput.attempt);
  }
  const auto reference = ReferenceTask(*detail);
  if (reference.has_value()) goodput.reference_task = *reference;
  TACHO_ASSIGN_OR_RETURN(const auto facts,
                         FactsOf(store, *detail, goodput.reference_task, now, reports, control));
  std::vector<storage::SeriesPtr> series;
  if (reference.has_value()) {
    TACHO_ASSIGN_OR_RETURN(auto found, SeriesOfTask(store, job, *reference));
    series = std::move(found);
  }
  const Channels channels = ChannelsOf(series, names);
  StepReader reader(store, series, channels, control);
  const auto losses = [&](uint64_t rows) {
    return JobLosses::Create(store, job, goodput.reference_task, names, rows, control);
  };
  TACHO_RETURN_IF_ERROR(
      MakeLedger(*detail, facts, absl::ToUnixNanos(now), max_spans, &reader, losses, &goodput));
  return goodput;
}

}  // namespace tacho::server::goodput
