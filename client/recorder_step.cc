// Steps and their phases: the part of RecorderState that StepScope uses. A step is a row with the
// times of its phases as gauges, so that the ring needs no record of its own for it.
#include <array>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "client/recorder_state.h"
#include "client/step_scope.h"
#include "proto/base/check.h"

namespace tacho::client {
namespace {

constexpr double kSecondsPerNs = 1e-9;
// More phases than a step can sensibly have; looking one up goes through all.
constexpr size_t kMaxPhases = 32;

struct KnownPhase {
  std::string_view name;
  std::string_view metric;
  std::string_view help;
};

// docs/notation.md: the signals data_wait, compute, comm_wait, checkpoint_time and eval_time.
constexpr std::array<KnownPhase, 5> kKnownPhases = {{
    {"data", "data_wait_seconds", "Time of the step that went to waiting for input."},
    {"compute", "compute_seconds", "Time of the step that went to own work before the barrier."},
    {"comm", "comm_wait_seconds", "Time of the step that went to waiting in collectives."},
    {"checkpoint", "checkpoint_seconds", "Time of the step for which a checkpoint blocked it."},
    {"eval", "eval_seconds", "Time of the step that went to evaluating."},
}};

std::pair<std::string, std::string> MetricOf(std::string_view phase) {
  for (const KnownPhase& known : kKnownPhases) {
    if (known.name == phase) return {std::string(known.metric), std::string(known.help)};
  }
  return {std::string(phase) + "_seconds",
          "Time of the step that went to the phase " + std::string(phase) + "."};
}

}  // namespace

Metric RecorderState::DeclarePhase(std::string_view name) noexcept {
  const uint32_t metric = FindPhase(name);
  return metric == kNone ? Metric() : Metric(metric);
}

uint32_t RecorderState::FindPhase(std::string_view name) noexcept {
  for (const auto& [known, metric] : phases_) {
    if (known == name) return metric;
  }
  if (!Mine()) return kNone;
  try {
    if (phases_.size() == kMaxPhases) {
      Refuse("more than 32 phases of a step");
      return kNone;
    }
    if (name.empty()) {
      Refuse("a phase of a step without a name");
      return kNone;
    }
    const auto [metric, help] = MetricOf(name);
    const uint32_t index = Declare(MetricType::kGauge, metric, "s", help);
    if (index != kNone) phases_.emplace_back(name, index);
    return index;
  } catch (...) {
    Refuse("out of memory");
    return kNone;
  }
}

uint32_t RecorderState::CheckPhase(Metric phase) noexcept {
  if (phase.index_ < row_.metric_count) return phase.index_;
  Refuse("a phase of a step that was refused");
  return kNone;
}

bool RecorderState::BeginStep(int64_t step) noexcept {
  if (!Mine()) return false;
  if (step_.open) {
    Refuse("a step within a step");
    return false;
  }
  if (step_duration_ == kNone) {
    step_time_ = DeclareMetric(MetricType::kGauge, "step_time_seconds", "s",
                               "Time from the end of the step before to the end of this one.")
                     .index_;
    step_duration_ = DeclareMetric(MetricType::kGauge, "step_duration_seconds", "s",
                                   "Time from the beginning of the step to its end.")
                         .index_;
  }
  step_ = {.open = true, .step = step, .begin_ns = clocks_.monotonic_ns()};
  return true;
}

void RecorderState::LeavePhase(int64_t now_ns) {
  if (step_.phase == kNone) return;
  TACHO_DCHECK(step_.phase < row_.metric_count);
  AddSpan(step_.phase, now_ns - step_.phase_begin_ns);
}

void RecorderState::AddSpan(uint32_t metric, int64_t span_ns) {
  Add(Metric(metric), static_cast<double>(span_ns) * kSecondsPerNs);
}

void RecorderState::EnterPhase(uint32_t metric) noexcept {
  if (!Mine() || !step_.open) return;
  const int64_t now_ns = clocks_.monotonic_ns();
  LeavePhase(now_ns);
  step_.phase = metric;
  step_.phase_begin_ns = now_ns;
}

void RecorderState::EndStep() noexcept {
  if (!Mine() || !step_.open) return;
  const int64_t now_ns = clocks_.monotonic_ns();
  LeaveCollective(now_ns);
  LeavePhase(now_ns);
  step_.open = false;
  const int64_t since_ns = last_step_end_ns_.value_or(step_.begin_ns);
  const auto set = [this](uint32_t metric, int64_t span_ns) {
    if (metric < row_.metric_count) values_[metric] = static_cast<double>(span_ns) * kSecondsPerNs;
  };
  set(step_time_, now_ns - since_ns);
  set(step_duration_, now_ns - step_.begin_ns);
  last_step_end_ns_ = now_ns;
  Commit(step_.step, clocks_.unix_ns());
}

void RecorderState::AbandonStep() noexcept {
  if (!Mine() || !step_.open) return;
  step_.open = false;
  step_.collective = kNone;
  ClearGauges();
}

StepScope::StepScope(RecorderState* state) noexcept
    : state_(state), exceptions_(std::uncaught_exceptions()) {}

StepScope::StepScope(StepScope&& other) noexcept
    : state_(std::exchange(other.state_, nullptr)), exceptions_(other.exceptions_) {}

StepScope::~StepScope() {
  if (state_ == nullptr) return;
  if (std::uncaught_exceptions() > exceptions_) {
    Abandon();
  } else {
    End();
  }
}

void StepScope::Phase(std::string_view name) noexcept {
  if (state_ != nullptr) state_->EnterPhase(state_->FindPhase(name));
}

void StepScope::Phase(Metric phase) noexcept {
  if (state_ != nullptr) state_->EnterPhase(state_->CheckPhase(phase));
}

void StepScope::EndPhase() noexcept {
  if (state_ != nullptr) state_->EnterPhase(UINT32_MAX);
}

void StepScope::End() noexcept {
  if (RecorderState* const state = std::exchange(state_, nullptr)) state->EndStep();
}

void StepScope::Abandon() noexcept {
  if (RecorderState* const state = std::exchange(state_, nullptr)) state->AbandonStep();
}

}  // namespace tacho::client
