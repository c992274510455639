// Takes rows and events into the windows of their jobs. Rows of one layout are taken column by
// column, because the points of a series lie together in memory and those of a row do not.
#include "server/conditions/window/window_builder.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "proto/base/check.h"
#include "proto/base/stale_marker.h"
#include "proto/base/task_end.h"
#include "server/conditions/window/window_builder_state.h"
#include "server/phases/phases.h"

namespace tacho::server::conditions {
namespace {

constexpr size_t kMaxLayoutsOfJob = 65'536;
constexpr size_t kMaxTaskEnds = 65'536;
// A row that comes this long after an end shows that it was no end.
constexpr int64_t kRowsAfterEndNs = 60'000'000'000;
// The same for a row with a new step, which only a trainer writes: it began again.
constexpr int64_t kStepsAfterEndNs = 1'000'000'000;

// An event that explains the time before a row comes within this time of the row.
constexpr int64_t kEventsComeWithinNs = 10'000'000'000;

// So long a task may prepare its first row: compiling and restoring take tens of minutes. After
// that it is taken for one whose end was lost.
constexpr int64_t kPreparesForNs = 3'600'000'000'000;

constexpr std::array<absl::string_view, 4> kKindsThatBeginJobs = {
    "attempt_started", "init_started", "compile_started", "restore_started"};

// Whether the rows are of a task, not of an agent that samples its host.
bool IsOfJob(const storage::Layout& layout) {
  return layout.has_steps || layout.series.front()->source->task.has_value();
}

// INT64_MIN if there are no rows.
int64_t NewestTime(std::span<const storage::RowsEntry> entries) {
  int64_t newest_ns = INT64_MIN;
  for (const storage::RowsEntry& rows : entries) {
    if (rows.rows > 0) newest_ns = std::max(newest_ns, rows.Time(rows.rows - 1));
  }
  return newest_ns;
}

void NoteRow(int64_t time_ns, int64_t step, TaskWindow* task) {
  if (task->first_time_ns == 0 || time_ns < task->first_time_ns) task->first_time_ns = time_ns;
  task->last_time_ns = std::max(task->last_time_ns, time_ns);
  if (step == kNoPointStep) return;
  if (task->first_step_time_ns == 0 || time_ns < task->first_step_time_ns) {
    task->first_step_time_ns = time_ns;
  }
  if (task->last_step == step) {
    task->last_step_time_ns = std::min(task->last_step_time_ns, time_ns);
  } else if (!task->last_step || time_ns > task->last_step_time_ns ||
             (time_ns == task->last_step_time_ns && step > *task->last_step)) {
    // Or a newer row has a lower step: training went back.
    task->last_step = step;
    task->last_step_time_ns = time_ns;
  }
}

}  // namespace

WindowBuilder::WindowBuilder(SignalNames names, const WindowLimits& limits)
    : names_(std::move(names)), limits_(limits), elsewhere_(std::make_unique<JobState>()) {}

WindowBuilder::~WindowBuilder() = default;

void WindowBuilder::AddRows(const storage::Layout& layout,
                            std::span<const storage::RowsEntry> entries) {
  TACHO_CHECK(!layout.series.empty());
  const storage::SeriesSource& source = *layout.series.front()->source;
  JobState* job = elsewhere_.get();
  TaskWindow* task = nullptr;
  if (IsOfJob(layout)) {
    job = FindOrAddJob(source.job, NewestTime(entries));
    if (job == nullptr || !EnterAttempt(layout.attempt, job)) return;
    task = FindOrAddTask(source.task, source.host, job);
    RowPace& pace = task->pace.Of(layout.id);
    for (const storage::RowsEntry& rows : entries) {
      for (size_t row = 0; row < rows.rows; ++row) {
        NoteRow(rows.Time(row), rows.Step(row), task);
        if (rows.Step(row) != kNoPointStep) pace.Note(rows.Time(row), rows.Step(row));
        job->last_ns = std::max(job->last_ns, rows.Time(row));
      }
    }
  }
  const LayoutTargets& targets = *TargetsOf(layout, job, task);
  size_t rows_in_all = 0;
  for (const storage::RowsEntry& rows : entries) rows_in_all += rows.rows;
  const size_t most_of_host = PointsOf(nullptr, nullptr);
  const size_t most_of_task = task == nullptr ? 0 : PointsOf(job, task);
  for (const Target& target : targets.targets) {
    if (target.track == nullptr) continue;
    size_t coming = rows_in_all;
    for (const storage::RowsEntry& rows : entries) {
      if (target.column < rows.columns) {
        AddColumn(target, target.of_host ? most_of_host : most_of_task, coming, rows);
      }
      coming -= rows.rows;
    }
  }
}

void WindowBuilder::AddColumn(const Target& target, size_t most, size_t coming,
                              const storage::RowsEntry& rows) {
  for (size_t row = 0; row < rows.rows; ++row) {
    Point point{rows.Time(row), rows.Step(row), rows.Value(row, target.column)};
    if (IsStaleMarker(point.value)) continue;
    if (target.factor != 1) point.value *= target.factor;
    Add(target, most, coming - row, point);
  }
}

void WindowBuilder::AddSamples(const storage::Series& series, uint32_t attempt,
                               absl::Span<const Point> points) {
  const auto match = Meaning(series);
  if (!match) return;
  JobState* job = nullptr;
  TaskWindow* task = nullptr;
  if (!IsHostSignal(match->signal)) {
    // Samples without task and step are of a machine, not of training.
    if (points.empty()) return;
    if (!series.source->task && points.front().step == kNoPointStep) return;
    job = FindOrAddJob(series.source->job, points.back().time_ns);
    if (job == nullptr || !EnterAttempt(attempt, job)) return;
    task = FindOrAddTask(series.source->task, series.source->host, job);
  }
  const Target target = MakeTarget(series, *match, job, task);
  const size_t most = target.of_host ? PointsOf(nullptr, nullptr) : PointsOf(job, task);
  for (Point point : points) {
    if (task != nullptr) {
      NoteRow(point.time_ns, point.step, task);
      job->last_ns = std::max(job->last_ns, point.time_ns);
    }
    if (target.track == nullptr) continue;
    if (target.factor != 1) point.value *= target.factor;
    Add(target, most, 1, point);
  }
}

void WindowBuilder::TakePace(const storage::Series& series, uint32_t attempt, RowPace pace) {
  const auto found = jobs_.find(series.source->job);
  if (found == jobs_.end() || !found->second->entered) return;
  JobState* const job = found->second.get();
  if (job->window.attempt != attempt) return;
  FindOrAddTask(series.source->task, series.source->host, job)->pace.TakeStored(std::move(pace));
}

void WindowBuilder::BreakPaces(absl::string_view job) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  for (TaskWindow& task : found->second->window.tasks) task.pace.Break();
}

void WindowBuilder::SettlePaces(JobWindow* window) {
  const auto waits = [](const TaskWindow& task) { return task.pace.waits(); };
  if (std::none_of(window->tasks.begin(), window->tasks.end(), waits)) return;
  phases::PhasePairs pairs;
  for (const WindowEvent& event : window->events) pairs.Add(event.kind, event.time_ns, event.task);
  const phases::PhaseCover cover(pairs.Take());
  const int64_t until_ns = window->now_ns - kEventsComeWithinNs;
  for (TaskWindow& task : window->tasks) {
    task.pace.Settle(until_ns, [&](int64_t from, int64_t to) { return cover.CoveredNs(from, to); });
  }
}

WindowBuilder::JobState* WindowBuilder::FindOrAddJob(absl::string_view job, int64_t newest_ns) {
  const auto found = jobs_.find(job);
  if (found != jobs_.end()) return found->second.get();
  if (newest_ns < oldest_ns_) return nullptr;
  if (jobs_.size() >= limits_.max_jobs) {
    ++jobs_left_out_;
    return nullptr;
  }
  auto state = std::make_unique<JobState>();
  state->window.job = std::string(job);
  return jobs_.emplace(std::string(job), std::move(state)).first->second.get();
}

bool WindowBuilder::EnterAttempt(uint32_t attempt, JobState* job) {
  if (job->entered && attempt <= job->window.attempt) return attempt == job->window.attempt;
  for (const TaskWindow& task : job->window.tasks) Uncount(task.tracks, &job->tracks);
  JobState next;
  next.window.job = std::move(job->window.job);
  next.window.attempt = attempt;
  next.window.straggles_elsewhere = std::move(job->window.straggles_elsewhere);
  next.last_ns = job->last_ns;
  next.entered = true;
  *job = std::move(next);
  ++epoch_;
  return true;
}

TaskWindow* WindowBuilder::FindOrAddTask(std::optional<uint32_t> number, absl::string_view host,
                                         JobState* job) {
  std::vector<TaskWindow>& tasks = job->window.tasks;
  size_t* index = nullptr;
  bool is_new = false;
  if (number) {
    const auto [found, inserted] = job->by_number.try_emplace(*number, tasks.size());
    index = &found->second;
    is_new = inserted;
  } else {
    const auto [found, inserted] = job->by_host.try_emplace(std::string(host), tasks.size());
    index = &found->second;
    is_new = inserted;
  }
  if (is_new) {
    if (!tasks.empty()) job->sorted = false;
    TaskWindow& added = tasks.emplace_back();
    added.task = number;
    added.host = std::string(host);
    if (number && (!job->lowest_task || *number < *job->lowest_task)) job->lowest_task = number;
  }
  TACHO_CHECK(*index < tasks.size());
  TaskWindow& task = tasks[*index];
  if (task.host != host) task.host = std::string(host);  // It was restarted elsewhere.
  return &task;
}

WindowBuilder::LayoutTargets* WindowBuilder::TargetsOf(const storage::Layout& layout, JobState* job,
                                                       TaskWindow* task) {
  if (job->layouts.size() >= kMaxLayoutsOfJob && !job->layouts.contains(layout.id)) {
    job->layouts.clear();
  }
  LayoutTargets& known = job->layouts[layout.id];
  if (known.epoch == epoch_) return &known;
  const bool first_time = known.epoch == 0;
  // A new track may move others, so look up again those found before.
  for (uint64_t epoch = 0; epoch != epoch_;) {
    epoch = epoch_;
    known.targets.clear();
    for (uint32_t column = 0; column < layout.series.size(); ++column) {
      const storage::Series& series = *layout.series[column];
      const auto match = Meaning(series);
      if (!match || (task == nullptr && !IsHostSignal(match->signal))) continue;
      Target target = MakeTarget(series, *match, task == nullptr ? nullptr : job, task);
      target.column = column;
      known.targets.push_back(target);
    }
  }
  known.epoch = epoch_;
  if (first_time) {
    tracks_left_out_ += static_cast<uint64_t>(
        std::count_if(known.targets.begin(), known.targets.end(),
                      [](const Target& target) { return target.track == nullptr; }));
  }
  return &known;
}

void WindowBuilder::AddEvent(const storage::Event& event) {
  if (event.source.job.empty() || absl::StartsWith(event.kind, "condition_")) return;
  const bool begins = event.source.task.has_value() ||
                      std::find(kKindsThatBeginJobs.begin(), kKindsThatBeginJobs.end(),
                                event.kind) != kKindsThatBeginJobs.end();
  if (!begins && !Knows(event.source.job)) return;
  JobState* const job = FindOrAddJob(event.source.job, event.time_ns);
  if (job == nullptr || !EnterAttempt(event.source.attempt, job)) return;
  job->last_ns = std::max(job->last_ns, event.time_ns);
  if (NoteEnd(event, job)) return;
  WindowEvent added;
  added.time_ns = event.time_ns;
  added.step = event.step.value_or(kNoPointStep);
  added.attempt = event.source.attempt;
  added.task = event.source.task;
  added.host = event.source.host;
  added.kind = event.kind;
  added.fields = event.fields;
  std::vector<WindowEvent>& events = job->window.events;
  const auto at = std::upper_bound(
      events.begin(), events.end(), event.time_ns,
      [](int64_t time_ns, const WindowEvent& other) { return time_ns < other.time_ns; });
  // The same event may come from the store and from the subscription.
  for (auto same = at; same != events.begin() && (--same)->time_ns == event.time_ns;) {
    if (same->kind == added.kind && same->task == added.task && same->host == added.host) return;
  }
  events.insert(at, std::move(added));
  if (events.size() > kMaxEvents) events.erase(events.begin());
}

std::vector<std::string> WindowBuilder::Jobs() const {
  std::vector<std::string> names;
  names.reserve(jobs_.size());
  for (const auto& [name, job] : jobs_) {
    if (job->entered) names.push_back(name);
  }
  return names;
}

uint32_t WindowBuilder::AttemptOf(absl::string_view job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? 0 : found->second->window.attempt;
}

int64_t WindowBuilder::LastSeenNs(absl::string_view job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? 0 : found->second->last_ns;
}

void WindowBuilder::SortTasks(JobState* job) {
  if (job->sorted) return;
  std::vector<TaskWindow>& tasks = job->window.tasks;
  std::sort(tasks.begin(), tasks.end(), [](const TaskWindow& a, const TaskWindow& b) {
    return std::tie(a.task, a.host) < std::tie(b.task, b.host);
  });
  job->by_number.clear();
  std::map<std::string, size_t, std::less<>> by_host;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].task) {
      job->by_number[*tasks[i].task] = i;
    } else {
      by_host[tasks[i].host] = i;
    }
  }
  job->by_host = std::move(by_host);
  job->sorted = true;
}

bool WindowBuilder::NoteEnd(const storage::Event& event, JobState* job) {
  if (!event.source.task.has_value()) return false;
  const uint32_t task = *event.source.task;
  if (event.kind == "attempt_started") {
    if (job->started_ns.size() >= kMaxTaskEnds && !job->started_ns.contains(task)) return false;
    int64_t& started_ns = job->started_ns.try_emplace(task, event.time_ns).first->second;
    started_ns = std::max(started_ns, event.time_ns);
  }
  if (!IsEndKind(event.kind)) return false;
  if (job->ends.size() >= kMaxTaskEnds && !job->ends.contains(task)) return true;
  JobState::End& end = job->ends[task];
  if (event.time_ns >= end.about.time_ns) {
    end = {.about = {task, event.source.host, event.time_ns, event.fields},
           .exited = event.kind == kExitedKind};
  }
  return true;
}

void WindowBuilder::FindEnds(int64_t now_ns, JobState* job) {
  JobWindow& window = job->window;
  for (TaskWindow& task : window.tasks) task.ended = false;
  window.ended = false;
  window.exits.clear();
  for (const WindowEvent& event : window.events) {
    if (event.kind == "attempt_started") window.attempt_started_ns = event.time_ns;
    if (!IsEndKind(event.kind) || event.time_ns + kRowsAfterEndNs < job->last_ns) continue;
    window.ended = true;
    if (event.kind == kExitedKind) {
      window.exits.push_back({std::nullopt, event.host, event.time_ns, event.fields});
    }
  }
  size_t ended = 0;
  for (const auto& [number, end] : job->ends) {
    const int64_t time_ns = end.about.time_ns;
    const auto started = job->started_ns.find(number);
    if (started != job->started_ns.end() && started->second > time_ns) continue;
    if (const auto found = job->by_number.find(number); found != job->by_number.end()) {
      TACHO_CHECK(found->second < window.tasks.size());
      TaskWindow& task = window.tasks[found->second];
      if (time_ns + kRowsAfterEndNs < task.last_time_ns) continue;
      if (task.last_step && time_ns + kStepsAfterEndNs < task.last_step_time_ns) continue;
      task.ended = true;
    }
    ++ended;
    if (end.exited) window.exits.push_back(end.about);
  }
  std::stable_sort(window.exits.begin(), window.exits.end(),
                   [](const TaskExit& a, const TaskExit& b) { return a.time_ns < b.time_ns; });
  if (ended > 0) window.ended = window.ended || !MayLive(now_ns, *job);
}

bool WindowBuilder::MayLive(int64_t now_ns, const JobState& job) {
  const JobWindow& window = job.window;
  const bool all_silent = now_ns - job.last_ns > kRowsAfterEndNs;
  const auto may_live = [&](const TaskWindow& task) {
    if (!task.lives()) return false;
    if (!all_silent) return true;
    if (!task.task.has_value()) return false;
    // Where an agent reports, it would have told the end.
    const auto host = std::lower_bound(
        window.hosts.begin(), window.hosts.end(), task.host,
        [](const HostWindow& one, const std::string& name) { return one.host < name; });
    return host != window.hosts.end() && host->host == task.host && host->agent.has_value() &&
           host->agent->connected;
  };
  if (std::any_of(window.tasks.begin(), window.tasks.end(), may_live)) return true;
  // Tasks that have begun and sent no row yet.
  return std::any_of(job.started_ns.begin(), job.started_ns.end(), [&](const auto& started) {
    const auto& [number, time_ns] = started;
    if (job.by_number.contains(number) || now_ns - time_ns > kPreparesForNs) return false;
    const auto end = job.ends.find(number);
    return end == job.ends.end() || end->second.about.time_ns < time_ns;
  });
}

void WindowBuilder::Visit(absl::string_view name, int64_t now_ns, const ingest::AgentLedger* agents,
                          absl::FunctionRef<void(JobWindow&)> visit) {
  const auto found = jobs_.find(name);
  if (found == jobs_.end()) return;
  JobState* const job = found->second.get();
  JobWindow& window = job->window;
  SortTasks(job);
  window.now_ns = now_ns;
  if (window.attempt_started_ns == 0) {
    for (const TaskWindow& task : window.tasks) {
      if (task.first_time_ns == 0) continue;
      if (window.attempt_started_ns == 0 || task.first_time_ns < window.attempt_started_ns) {
        window.attempt_started_ns = task.first_time_ns;
      }
    }
  }
  Rebalance(job);
  SettlePaces(&window);
  BorrowHosts(now_ns, agents, &window);
  FindEnds(now_ns, job);
  visit(window);
  ReturnHosts(&window);
}

void WindowBuilder::Forget(absl::string_view job) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  for (const TaskWindow& task : found->second->window.tasks) {
    Uncount(task.tracks, &found->second->tracks);
  }
  jobs_.erase(found);
  ++epoch_;
}

WindowBuilder::Stats WindowBuilder::stats() const {
  return {.jobs = jobs_.size(),
          .tracks = tracks_,
          .bytes = bytes_,
          .tracks_left_out = tracks_left_out_,
          .jobs_left_out = jobs_left_out_};
}

}  // namespace tacho::server::conditions
