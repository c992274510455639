#include "tests/support/synthetic_window.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/support/synthetic_noise.h"

namespace tacho::testing {

using server::conditions::JobWindow;
using server::conditions::Point;
using server::conditions::Signal;
using server::conditions::TaskWindow;
using server::conditions::Track;
using server::conditions::Tracks;
using server::conditions::WindowEvent;

std::string SyntheticHost(uint32_t host) { return absl::StrFormat("host%04d", host); }

SyntheticFleet::SyntheticFleet(FleetOptions options, std::vector<Fault> faults,
                               double until_seconds)
    : options_(std::move(options)), faults_(std::move(faults)) {
  if (options_.synchronous) {
    LayOut(steps_.emplace_back(), 0, options_.tasks, until_seconds);
    return;
  }
  steps_.resize(options_.tasks);
  for (uint32_t task = 0; task < options_.tasks; ++task) {
    LayOut(steps_[task], task, task + 1, until_seconds);
  }
}

int64_t SyntheticFleet::Time(double seconds) {
  constexpr int64_t kOriginSeconds = 1'750'000'000;
  return kOriginSeconds * 1'000'000'000 + static_cast<int64_t>(std::llround(seconds * 1e9));
}

void SyntheticFleet::LayOut(Steps& steps, uint32_t first_task, uint32_t last_task,
                            double until) const {
  double start = options_.init_seconds;
  for (size_t i = 0; start < until && i < options_.steps.value_or(UINT32_MAX); ++i) {
    Step step;
    step.start = step.barrier = start;
    for (uint32_t task = first_task; task < last_task; ++task) {
      step.barrier =
          std::max(step.barrier, start + DataWait(task, i, start) + Compute(task, i, start));
    }
    const uint64_t number = options_.first_step + i;
    if (number % options_.checkpoint_every == 0 && i > 0) {
      step.checkpoint =
          options_.checkpoint_seconds + Amount(FaultKind::kLongSave, first_task, step.barrier);
    }
    if (number % options_.eval_every == 0 && i > 0) step.eval = options_.eval_seconds;
    step.end = step.barrier + Comm(start) + step.eval + step.checkpoint;
    for (const Fault& fault : faults_) {
      if (fault.kind != FaultKind::kHang && fault.kind != FaultKind::kDataStall &&
          fault.kind != FaultKind::kHostDies) {
        continue;
      }
      bool hit = false;
      for (uint32_t task = first_task; task < last_task; ++task) hit |= Hits(fault, task);
      if (!hit || fault.at_seconds < start || fault.at_seconds >= step.end) continue;
      step.done = std::isfinite(fault.until_seconds);
      if (step.done) step.stall += fault.until_seconds - fault.at_seconds;
    }
    step.barrier += step.stall;
    step.end += step.stall;
    steps.push_back(step);
    if (!step.done) return;
    start = step.end;
  }
}

const SyntheticFleet::Steps& SyntheticFleet::StepsOf(uint32_t task) const {
  return options_.synchronous ? steps_[0] : steps_[task];
}

bool SyntheticFleet::Hits(const Fault& fault, uint32_t task) const {
  if (fault.task.has_value()) return *fault.task == task;
  return fault.host == kAllHosts || fault.host == HostOf(task);
}

double SyntheticFleet::Amount(FaultKind kind, uint32_t task, double seconds) const {
  double sum = 0;
  for (const Fault& fault : faults_) {
    if (fault.kind == kind && Hits(fault, task) && seconds >= fault.at_seconds &&
        seconds < fault.until_seconds) {
      sum += fault.amount;
    }
  }
  return sum;
}

const Fault* SyntheticFleet::Find(FaultKind kind, uint32_t task, double seconds) const {
  for (const Fault& fault : faults_) {
    if (fault.kind == kind && Hits(fault, task) && seconds >= fault.at_seconds &&
        seconds < fault.until_seconds) {
      return &fault;
    }
  }
  return nullptr;
}

double SyntheticFleet::DataWait(uint32_t task, size_t index, double start) const {
  const double noise = SyntheticGauss(options_.seed, NoiseStream::kData, task, index);
  double wait = options_.data_wait * std::exp(10 * options_.noise * noise);
  const double share = Amount(FaultKind::kInputBound, task, start);
  if (share > 0) wait = share / (1 - share) * (options_.compute + options_.comm);
  return wait + Amount(FaultKind::kSlowInput, task, start);
}

double SyntheticFleet::Compute(uint32_t task, size_t index, double start) const {
  const double noise = SyntheticGauss(options_.seed, NoiseStream::kCompute, task, index);
  const double host = SyntheticGauss(options_.seed, NoiseStream::kHost, HostOf(task), 0);
  const double factor =
      (1 + Amount(FaultKind::kSlowHost, task, start) + Amount(FaultKind::kSlowdown, task, start)) /
      (1 - Amount(FaultKind::kThrottle, task, start));
  const double now_and_then = index % 3 == 0 ? 1 + Amount(FaultKind::kNowAndThen, task, start) : 1;
  double compute = options_.compute * factor * now_and_then * (1 + options_.host_spread * host) *
                   std::max(0.1, 1 + options_.noise * noise);
  if (index == 0) compute += options_.compile_seconds;
  return compute;
}

std::optional<uint32_t> SyntheticFleet::StepAt(double seconds) const {
  const Steps& steps = steps_[0];
  for (size_t i = 0; i < steps.size(); ++i) {
    if (seconds < steps[i].start) break;
    if (seconds < steps[i].end || !steps[i].done) {
      return options_.first_step + static_cast<uint32_t>(i);
    }
  }
  return std::nullopt;
}

std::optional<double> SyntheticFleet::EndOf(uint32_t step) const {
  const Steps& steps = steps_[0];
  if (step < options_.first_step || step - options_.first_step >= steps.size()) return std::nullopt;
  const Step& found = steps[step - options_.first_step];
  if (!found.done) return std::nullopt;
  return found.end;
}

bool SyntheticFleet::PausesAt(double seconds, uint32_t task) const {
  const Steps& steps = StepsOf(task);
  const auto found = std::partition_point(steps.begin(), steps.end(), [&](const Step& step) {
    return step.done && step.end <= seconds;
  });
  if (found == steps.end() || seconds < found->start) return false;
  return found->checkpoint > 0 || found->eval > 0;
}

std::optional<double> SyntheticFleet::CheckpointAfter(double seconds) const {
  for (const Step& step : steps_[0]) {
    const double begin = step.end - step.checkpoint;
    if (step.checkpoint > 0 && begin >= seconds) return begin;
  }
  return std::nullopt;
}

double SyntheticFleet::SilentFrom(uint32_t task) const {
  double from = std::numeric_limits<double>::infinity();
  for (const Fault& fault : faults_) {
    const bool silences =
        fault.kind == FaultKind::kMissingTask || fault.kind == FaultKind::kNeverStarted ||
        fault.kind == FaultKind::kSilentTrainer || fault.kind == FaultKind::kSilentAgent ||
        fault.kind == FaultKind::kHostDies;
    if (silences && Hits(fault, task)) from = std::min(from, fault.at_seconds);
  }
  return from;
}

JobWindow SyntheticFleet::At(double seconds) const {
  JobWindow window;
  window.job = options_.job;
  window.attempt = options_.attempt;
  window.now_ns = Time(seconds);
  window.attempt_started_ns = Time(0);
  window.attributes = options_.attributes;
  window.attributes.emplace("tasks", absl::StrCat(options_.tasks));
  window.attributes.emplace("config_fingerprint", "synthetic");
  window.baselines = options_.baselines;
  window.straggles_elsewhere = options_.straggles_elsewhere;
  server::phases::PhasePairs pairs;
  for (const WindowEvent& event : EventsUntil(seconds)) {
    pairs.Add(event.kind, event.time_ns, event.task);
  }
  const server::phases::PhaseCover phases(pairs.Take());
  for (uint32_t task = 0; task < options_.tasks; ++task) FillTask(task, seconds, phases, &window);
  for (uint32_t host = 0; host * options_.tasks_per_host < options_.tasks; ++host) {
    FillHost(host, seconds, &window);
    FillChips(host, seconds, &window);
  }
  FillEvents(seconds, &window);
  return window;
}

void SyntheticFleet::Add(Signal signal, Point point, Tracks* tracks) const {
  if (options_.omit.contains(signal)) return;
  std::vector<Track>& list = (*tracks)[signal];
  if (list.empty()) list.push_back({.metric = SyntheticMetric(signal), .points = {}});
  list.front().points.push_back(point);
}

void SyntheticFleet::Add(Signal signal, const std::string& metric, Point point,
                         Tracks* tracks) const {
  if (options_.omit.contains(signal)) return;
  std::vector<Track>& list = (*tracks)[signal];
  auto track = std::find_if(list.begin(), list.end(),
                            [&](const Track& one) { return one.metric == metric; });
  if (track == list.end()) track = list.insert(list.end(), {.metric = metric, .points = {}});
  track->points.push_back(point);
}

std::vector<std::pair<size_t, double>> SyntheticFleet::RowsOf(uint32_t task, double now) const {
  const Steps& steps = StepsOf(task);
  const double silent_from = SilentFrom(task);
  const Fault* const hang = Find(FaultKind::kHang, task, now);
  std::vector<std::pair<size_t, double>> rows;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].done || steps[i].start > now) break;
    if ((options_.first_step + i) % options_.log_every != 0) continue;
    const double delay =
        options_.row_delay * SyntheticUniform(options_.seed, NoiseStream::kDelay, task, i);
    const double time = steps[i].end + delay;
    if (time > now || time >= silent_from) continue;
    if (hang != nullptr && hang->amount > 0 && i + 1 < steps.size() &&
        hang->at_seconds < steps[i + 1].end && hang->at_seconds >= steps[i + 1].start) {
      continue;
    }
    rows.emplace_back(i, time);
  }
  return rows;
}

void SyntheticFleet::FillTask(uint32_t task, double now, const server::phases::PhaseCover& phases,
                              JobWindow* window) const {
  const double silent_from = SilentFrom(task);
  if (silent_from <= 0) return;
  const Steps& steps = StepsOf(task);
  const double skew = Amount(FaultKind::kClockSkew, task, now);
  TaskWindow out;
  out.task = task;
  out.host = SyntheticHost(HostOf(task));
  out.first_time_ns = Time(std::min(now, options_.init_seconds + skew));
  out.last_time_ns = out.first_time_ns;
  const std::vector<std::pair<size_t, double>> rows = RowsOf(task, now);
  // The pace is measured as rows come, and covers the whole attempt; tracks have the newest rows.
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& [index, time] = rows[i];
    const int64_t time_ns = Time(time + skew);
    out.last_time_ns = out.last_step_time_ns = time_ns;
    out.last_step = options_.first_step + static_cast<int64_t>(index);
    if (out.first_step_time_ns == 0) out.first_step_time_ns = time_ns;
    out.pace.Of(1).Note(time_ns, *out.last_step);
    out.pace.Settle(time_ns, [&](int64_t from, int64_t to) { return phases.CoveredNs(from, to); });
    if (i + options_.max_points < rows.size() || time < now - options_.window_seconds) continue;
    FillStep(task, index, time_ns, &out.tracks);
    FillCurves(task, index, time_ns, &out.tracks);
  }
  out.ended = options_.steps.has_value() && steps.size() == *options_.steps && steps.back().done &&
              steps.back().end + 1 < now;
  window->tasks.push_back(std::move(out));
}

void SyntheticFleet::FillStep(uint32_t task, size_t index, int64_t time_ns, Tracks* tracks) const {
  const Step& step = StepsOf(task)[index];
  const double data = DataWait(task, index, step.start);
  const double compute = Compute(task, index, step.start);
  const double wait = step.barrier - step.start - data - compute;
  const int64_t number = options_.first_step + static_cast<int64_t>(index);
  const auto add = [&](Signal signal, double value) {
    Add(signal, {.time_ns = time_ns, .step = number, .value = value}, tracks);
  };
  add(Signal::kStepTime, step.end - step.start);
  add(Signal::kDataWait, data);
  add(Signal::kCompute, compute);
  add(Signal::kCommWait, wait + Comm(step.start));
  if (step.checkpoint > 0) add(Signal::kCheckpointTime, step.checkpoint);
  if (step.eval > 0) add(Signal::kEvalTime, step.eval);
  add(Signal::kTokens, options_.tokens_per_step * static_cast<double>(number + 1));
  if (options_.collectives) FillCollectives(task, index, time_ns, tracks);
}

double SyntheticFleet::Comm(double start) const {
  double comm = options_.comm;
  for (const Fault& fault : faults_) {
    const bool slows = fault.kind == FaultKind::kSlowComm || fault.kind == FaultKind::kSlowLink;
    if (slows && start >= fault.at_seconds && start < fault.until_seconds) comm += fault.amount;
  }
  return comm;
}

void SyntheticFleet::FillCollectives(uint32_t task, size_t index, int64_t time_ns,
                                     Tracks* tracks) const {
  const Step& step = StepsOf(task)[index];
  const auto factor = [&](uint32_t subject) {
    const double noise = SyntheticGauss(options_.seed, NoiseStream::kComm, subject, index);
    return std::exp(options_.comm_noise * noise);
  };
  const auto ready = [&](uint32_t of) {
    return DataWait(of, index, step.start) + Compute(of, index, step.start);
  };
  const auto add = [&](Signal signal, const std::string& metric, double value) {
    const int64_t number = options_.first_step + static_cast<int64_t>(index);
    Add(signal, metric, {.time_ns = time_ns, .step = number, .value = value}, tracks);
  };
  const double wait = step.barrier - step.start - ready(task);
  // The transfer takes the same time for all of them.
  add(Signal::kCollective, "collective_all_reduce_seconds",
      wait + Comm(step.start) * factor(options_.tasks));
  add(Signal::kCollectiveBytes, "collective_all_reduce_bytes", options_.comm_bytes);
  for (const uint32_t lower : {(task + options_.tasks - 1) % options_.tasks, task}) {
    const uint32_t upper = (lower + 1) % options_.tasks;
    const uint32_t peer = lower == task ? upper : lower;
    if (peer == task || (options_.tasks == 2 && lower == 1)) continue;
    const double exchange =
        options_.comm / 3 * factor(lower) + Amount(FaultKind::kSlowLink, lower, step.start);
    const std::string metric = absl::StrCat("collective_ring_peer_", peer);
    add(Signal::kCollective, metric + "_seconds",
        std::max(0.0, ready(peer) - ready(task)) + exchange);
    add(Signal::kCollectiveBytes, metric + "_bytes", options_.comm_bytes / 3);
  }
}

std::vector<WindowEvent> SyntheticFleet::EventsUntil(double now) const {
  std::vector<WindowEvent> events;
  const uint32_t recording = options_.synchronous ? 1 : options_.tasks;
  for (uint32_t task = 0; options_.events && task < recording; ++task) {
    const double until = std::min(now, SilentFrom(task));
    const auto add = [&](double seconds, const char* kind,
                         int64_t step = server::conditions::kNoPointStep) {
      if (seconds > until) return;
      events.push_back({.time_ns = Time(seconds),
                        .step = step,
                        .attempt = options_.attempt,
                        .task = task,
                        .host = SyntheticHost(HostOf(task)),
                        .kind = kind,
                        .fields = {}});
    };
    add(0, "attempt_started");
    add(0, "init_started");
    add(options_.init_seconds, "initialized");
    add(options_.init_seconds, "compile_started");
    add(options_.init_seconds + options_.compile_seconds, "compiled");
    const Steps& steps = StepsOf(task);
    for (size_t i = 0; i < steps.size() && steps[i].done && steps[i].start <= until; ++i) {
      const Step& step = steps[i];
      const int64_t number = options_.first_step + static_cast<int64_t>(i);
      if (step.eval > 0) add(step.end - step.checkpoint - step.eval, "eval_started", number);
      if (step.eval > 0) add(step.end - step.checkpoint, "eval_ended", number);
      if (step.checkpoint > 0) add(step.end - step.checkpoint, "checkpoint_started", number);
      if (step.checkpoint > 0) add(step.end, "checkpoint_saved", number);
    }
  }
  std::stable_sort(events.begin(), events.end(), [](const WindowEvent& a, const WindowEvent& b) {
    return a.time_ns < b.time_ns;
  });
  return events;
}

void SyntheticFleet::FillEvents(double now, JobWindow* window) const {
  window->events = EventsUntil(now);
  window->ended =
      !window->tasks.empty() && std::all_of(window->tasks.begin(), window->tasks.end(),
                                            [](const TaskWindow& task) { return task.ended; });
  const double end = steps_[0].back().end + 1;
  if (!window->ended || end > now) return;
  window->events.push_back({.time_ns = Time(end),
                            .step = server::conditions::kNoPointStep,
                            .attempt = options_.attempt,
                            .task = 0,
                            .host = SyntheticHost(0),
                            .kind = "ended",
                            .fields = {{"status", "succeeded"}}});
}

}  // namespace tacho::testing
