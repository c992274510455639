// Each block of steps is one matrix, tasks by steps, which is read a series at a time and judged a
// step at a time: memory is bounded whatever the job has.
#include "server/goodput/job_losses.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "proto/base/status_macros.h"
#include "server/goodput/sample_cursor.h"
#include "storage/index/matcher.h"

namespace tacho::server::goodput {
namespace {

using conditions::Signal;

constexpr size_t kMaxCells = 1 << 16;  // Of a block's matrix.
constexpr size_t kMaxBlockRows = 4096;
// The clocks of hosts may differ by so much, and rows may come so late.
constexpr int64_t kSlackNs = 600'000'000'000;

constexpr std::pair<Signal, double RecordedStep::*> kFields[] = {
    {Signal::kStepTime, &RecordedStep::step},
    {Signal::kDataWait, &RecordedStep::input},
    {Signal::kCompute, &RecordedStep::compute},
    {Signal::kCommWait, &RecordedStep::comm_wait},
    {Signal::kCheckpointTime, &RecordedStep::checkpoint},
    {Signal::kCollective, &RecordedStep::comm_wait}};

double RecordedStep::*FieldOf(Signal signal) {
  for (const auto& [one, field] : kFields) {
    if (one == signal) return field;
  }
  return nullptr;
}

constexpr RecordedStep kNothing = {kAbsent, kAbsent, kAbsent, kAbsent, kAbsent};

}  // namespace

absl::StatusOr<JobLosses> JobLosses::Create(const storage::Store& store, absl::string_view job,
                                            std::optional<uint32_t> reference_task,
                                            const conditions::SignalNames& names, uint64_t rows,
                                            const query::QueryControl& control,
                                            uint64_t max_samples) {
  JobLosses losses(control);
  // The best metric of each field: of several names for one meaning the one of the lowest rank. But
  // all collectives: their sum is the wait in collectives, where that is not recorded itself.
  TACHO_ASSIGN_OR_RETURN(const auto metrics, store.Metrics(job));
  std::map<Signal, std::pair<uint32_t, std::string>> best;
  std::set<std::string> collectives;
  for (const storage::MetricUse& use : metrics) {
    const auto match = names.Find(use.metric.name);
    if (!match.has_value() || FieldOf(match->signal) == nullptr) continue;
    losses.factors_[use.metric.name] = match->factor;
    if (match->signal == Signal::kCollective) {
      collectives.insert(use.metric.name);
      continue;
    }
    const auto [place, fresh] = best.try_emplace(match->signal, match->rank, use.metric.name);
    if (!fresh && match->rank < place->second.first) place->second = {match->rank, use.metric.name};
  }
  if (best.contains(Signal::kCommWait)) collectives.clear();
  const bool waits = best.contains(Signal::kCommWait) || !collectives.empty();
  if (!best.contains(Signal::kCompute) && !(waits && best.contains(Signal::kStepTime))) {
    return losses;
  }
  storage::Selector selector;
  selector.job = std::string(job);
  selector.metrics.assign(collectives.begin(), collectives.end());
  for (const auto& [signal, metric] : best) selector.metrics.push_back(metric.second);
  losses.summed_ = std::move(collectives);
  const auto series = store.FindSeries(selector, kMaxSeries);
  if (absl::IsResourceExhausted(series.status())) return losses;
  if (!series.ok()) return series.status();
  std::map<std::string, size_t> hosts;
  std::map<std::pair<std::optional<uint32_t>, std::string>, Worker> workers;
  for (const storage::SeriesPtr& one : *series) {
    if (one->metric->type == storage::MetricType::kHistogram || one->source->host.empty()) continue;
    const auto [host, fresh] = hosts.try_emplace(one->source->host, hosts.size());
    if (fresh) losses.hosts_.push_back(one->source->host);
    Worker& worker = workers[{one->source->task, one->source->host}];
    worker.host = host->second;
    worker.is_reference = one->source->task == reference_task;
    worker.series.emplace_back(FieldOf(names.Find(one->metric->name)->signal), one);
  }
  if (hosts.size() < HostLosses::kLeastHosts) return losses;
  for (auto& [key, worker] : workers) losses.workers_.push_back(std::move(worker));
  losses.view_ = store.OpenView(*series);
  losses.block_rows_ = std::clamp<size_t>(kMaxCells / losses.workers_.size(), 16, kMaxBlockRows);
  losses.every_ = 1 + rows * series->size() / max_samples;
  return losses;
}

void JobLosses::BeginSpan(uint32_t attempt) {
  attempt_ = attempt;
  has_row_ = false;
}

absl::Status JobLosses::AddStep(const StepRow& row, RowSink sink) {
  if (workers_.empty()) {
    sink(row);
    return absl::OkStatus();
  }
  Row now = {.time_ns = row.time_ns, .step = row.step};
  if (has_row_ && row.step == last_.step) {
    held_.push_back({row, std::nullopt});
    // A step that comes again and again must not fill the memory.
    return held_.size() < 2 * kMaxBlockRows ? absl::OkStatus() : EndBlock(sink);
  }
  if (has_row_) {
    if (row.step > last_.step) now.steps = static_cast<double>(row.step - last_.step);
    now.most_seconds = static_cast<double>(std::max<int64_t>(0, row.time_ns - last_.time_ns)) / 1e9;
  } else if (std::isfinite(row.step_seconds)) {
    now.most_seconds = std::max(0.0, row.step_seconds);
  }
  // A step that was there before belongs to another block.
  if (block_.size() >= block_rows_ || row_of_step_.contains(row.step)) {
    TACHO_RETURN_IF_ERROR(EndBlock(sink));
  }
  row_of_step_[row.step] = block_.size();
  held_.push_back({row, block_.size()});
  block_.push_back(now);
  has_row_ = true;
  last_ = now;
  return absl::OkStatus();
}

absl::Status JobLosses::EndSpan(RowSink sink) { return EndBlock(sink); }

absl::Status JobLosses::EndBlock(RowSink sink) {
  if (!block_.empty() && blocks_++ % every_ == 0) {
    TACHO_RETURN_IF_ERROR(JudgeBlock());
  } else {
    for (Row& row : block_) row.waiting_seconds = waiting_share_ * row.most_seconds;
  }
  for (Held& held : held_) {
    if (held.at.has_value()) held.row.waiting_seconds = block_[*held.at].waiting_seconds;
    sink(held.row);
  }
  held_.clear();
  block_.clear();
  row_of_step_.clear();
  return absl::OkStatus();
}

absl::Status JobLosses::JudgeBlock() {
  TACHO_RETURN_IF_ERROR(control_->Check());
  std::vector<std::vector<RecordedStep>> recorded(workers_.size());
  for (size_t i = 0; i < workers_.size(); ++i) {
    recorded[i].assign(block_.size(), kNothing);
    TACHO_RETURN_IF_ERROR(ReadWorker(workers_[i], &recorded[i]));
  }
  double waited = 0;
  double took = 0;
  for (size_t at = 0; at < block_.size(); ++at) {
    JudgeStep(recorded, at);
    waited += block_[at].waiting_seconds;
    took += block_[at].most_seconds;
  }
  waiting_share_ = took > 0 ? waited / took : 0;
  return absl::OkStatus();
}

void JobLosses::JudgeStep(const std::vector<std::vector<RecordedStep>>& recorded, size_t at) {
  Row& row = block_[at];
  const auto times = static_cast<double>(every_);
  std::vector<HostLosses::TaskStep> tasks;
  std::optional<double> reference;
  for (size_t i = 0; i < workers_.size(); ++i) {
    HostLosses::TaskStep task = {.host = workers_[i].host};
    if (!OwnWorkOf(recorded[i][at], &task.own)) continue;
    tasks.push_back(task);
    if (workers_[i].is_reference) reference = task.own.total;
  }
  const HostLosses::StepLoss loss =
      losses_.AddStep(tasks, row.steps * times, row.most_seconds * times);
  lost_seconds_ += loss.seconds;
  if (!reference.has_value()) return;
  // By as much as its own work is above the median it does not wait itself.
  const double late = std::max(0.0, *reference - loss.median_seconds) * row.steps;
  row.waiting_seconds = std::max(0.0, loss.seconds / times - late);
}

absl::Status JobLosses::ReadWorker(const Worker& worker,
                                   std::vector<RecordedStep>* recorded) const {
  const auto [first, last] =
      std::minmax_element(block_.begin(), block_.end(),
                          [](const Row& a, const Row& b) { return a.time_ns < b.time_ns; });
  storage::ReadOptions options;
  options.begin_ns = first->time_ns - kSlackNs;
  options.end_ns = last->time_ns + kSlackNs;
  options.first_step = row_of_step_.begin()->first;
  options.last_step = row_of_step_.rbegin()->first;
  options.attempt = attempt_;
  options.read_once = true;
  for (const auto& [field, series] : worker.series) {
    std::vector<std::unique_ptr<storage::SeriesReader>> readers;
    readers.push_back(view_->Read(series, options));
    SampleCursor cursor(std::move(readers), factors_.at(series->metric->name));
    std::vector<double> own(block_.size(), kAbsent);
    const bool sums = summed_.contains(series->metric->name);
    for (;;) {
      TACHO_RETURN_IF_ERROR(cursor.Next());
      if (cursor.at_end()) break;
      const auto row = row_of_step_.find(cursor.sample().step);
      if (row != row_of_step_.end()) own[row->second] = cursor.sample().value;
    }
    for (size_t at = 0; at < own.size(); ++at) {
      if (std::isnan(own[at])) continue;
      double& value = (*recorded)[at].*field;
      value = std::isnan(value) || !sums ? own[at] : value + own[at];
    }
  }
  return absl::OkStatus();
}

}  // namespace tacho::server::goodput
