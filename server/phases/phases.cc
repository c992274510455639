#include "server/phases/phases.h"

#include <algorithm>
#include <array>

namespace tacho::server::phases {
namespace {

struct PhaseWords {
  Phase phase;
  absl::string_view name;
  absl::string_view start;
  absl::string_view end;
};

constexpr std::array<PhaseWords, 6> kPhases = {{
    {Phase::kInit, "initializing", "init_started", "initialized"},
    {Phase::kCompile, "compiling", "compile_started", "compiled"},
    {Phase::kRestore, "restoring", "restore_started", "checkpoint_restored"},
    {Phase::kCheckpoint, "checkpointing", "checkpoint_started", "checkpoint_saved"},
    {Phase::kEval, "evaluating", "eval_started", "eval_ended"},
    {Phase::kPreempted, "preempted", "preempted", "init_started"},
}};

}  // namespace

absl::string_view PhaseName(Phase phase) { return kPhases.at(static_cast<size_t>(phase)).name; }

bool IsPhaseEvent(absl::string_view kind) {
  return std::any_of(kPhases.begin(), kPhases.end(), [kind](const PhaseWords& words) {
    return kind == words.start || kind == words.end;
  });
}

void PhasePairs::Add(absl::string_view kind, int64_t time_ns, std::optional<uint32_t> task) {
  for (const PhaseWords& words : kPhases) {
    if (kind != words.start && kind != words.end) continue;
    const auto key = std::make_pair(task, words.phase);
    if (const auto before = open_.find(key); before != open_.end()) {
      phases_[before->second].end_ns = time_ns;
      open_.erase(before);
    }
    if (kind != words.start) continue;
    open_[key] = phases_.size();
    phases_.push_back({.phase = words.phase, .start_ns = time_ns, .task = task});
  }
}

std::vector<PhaseInterval> PhasePairs::Take() {
  open_.clear();
  return std::exchange(phases_, {});
}

PhaseCover::PhaseCover(const std::vector<PhaseInterval>& phases) {
  for (const PhaseInterval& phase : phases) {
    if (phase.open() || phase.end_ns <= phase.start_ns) continue;
    if (!spans_.empty() && phase.start_ns <= spans_.back().end_ns) {
      spans_.back().end_ns = std::max(spans_.back().end_ns, phase.end_ns);
    } else {
      spans_.push_back({phase.start_ns, phase.end_ns});
    }
  }
}

int64_t PhaseCover::CoveredNs(int64_t from_ns, int64_t to_ns) const {
  auto span = std::partition_point(spans_.begin(), spans_.end(),
                                   [&](const Span& one) { return one.end_ns <= from_ns; });
  int64_t covered = 0;
  for (; span != spans_.end() && span->start_ns < to_ns; ++span) {
    covered += std::min(span->end_ns, to_ns) - std::max(span->start_ns, from_ns);
  }
  return covered;
}

}  // namespace tacho::server::phases
