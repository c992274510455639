// Collectives of steps: the part of RecorderState that CollectiveScope uses. A ring's metrics have
// no labels, so the name of a collective and its peer are part of the metric's name.
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "client/collective_scope.h"
#include "client/recorder_state.h"
#include "client/step_scope.h"
#include "proto/names/normalised_name.h"

namespace tacho::client {
namespace {

// Each is two metrics of every row, and the collector judges as many (kMaxTracksOfSignal).
constexpr size_t kMaxCollectives = 16;

}  // namespace

CollectiveMetric RecorderState::DeclareCollective(std::string_view name,
                                                  std::optional<uint32_t> peer) noexcept {
  const uint32_t index = FindCollective(name, peer);
  return index == kNone ? CollectiveMetric() : CollectiveMetric(index);
}

uint32_t RecorderState::FindCollective(std::string_view name,
                                       std::optional<uint32_t> peer) noexcept {
  for (uint32_t i = 0; i < collectives_.size(); ++i) {
    if (collectives_[i].name == name && collectives_[i].peer == peer) return i;
  }
  if (!Mine()) return kNone;
  try {
    if (collectives_.size() == kMaxCollectives) {
      Refuse("more than 16 collectives of a step, peers counted");
      return kNone;
    }
    std::string base = NormalisedName(name);
    if (base.empty()) {
      Refuse("a collective's name has no letter and no digit");
      return kNone;
    }
    base.insert(0, "collective_");
    if (peer.has_value()) base.append("_peer_").append(std::to_string(*peer));
    const uint32_t seconds = Declare(MetricType::kGauge, base + "_seconds", "s",
                                     "Time of the step within this collective.");
    if (seconds == kNone) return kNone;
    collectives_.push_back({.name = std::string(name),
                            .peer = peer,
                            .bytes_name = base + "_bytes",
                            .seconds = seconds});
    return static_cast<uint32_t>(collectives_.size() - 1);
  } catch (...) {
    Refuse("out of memory");
    return kNone;
  }
}

uint32_t RecorderState::CheckCollective(CollectiveMetric collective) noexcept {
  if (collective.index_ < collectives_.size()) return collective.index_;
  Refuse("a collective of a step that was refused");
  return kNone;
}

uint64_t RecorderState::BeginCollective(uint32_t collective, uint64_t bytes) noexcept {
  if (!Mine() || !step_.open || collective == kNone) return 0;
  if (step_.collective != kNone) {
    Refuse("a collective within a collective");
    return 0;
  }
  if (comm_phase_ == kNone) comm_phase_ = FindPhase("comm");
  const int64_t now_ns = clocks_.monotonic_ns();
  LeavePhase(now_ns);
  step_.collective = collective;
  step_.collective_bytes = bytes;
  step_.collective_begin_ns = now_ns;
  step_.phase_around = step_.phase;
  step_.phase = comm_phase_;
  step_.phase_begin_ns = now_ns;
  return ++collectives_begun_;
}

void RecorderState::EndCollective(uint64_t number) noexcept {
  if (!Mine() || number != collectives_begun_ || step_.collective == kNone) return;
  LeaveCollective(clocks_.monotonic_ns());
}

void RecorderState::LeaveCollective(int64_t now_ns) {
  if (step_.collective == kNone) return;
  Collective& collective = collectives_[std::exchange(step_.collective, kNone)];
  AddSpan(collective.seconds, now_ns - step_.collective_begin_ns);
  if (step_.collective_bytes != 0) AddBytes(&collective);
  // A phase that the trainer entered meanwhile goes on.
  if (step_.phase != comm_phase_) return;
  LeavePhase(now_ns);
  step_.phase = step_.phase_around;
  step_.phase_begin_ns = now_ns;
}

void RecorderState::AddBytes(Collective* collective) noexcept {
  if (collective->bytes == kNone) {
    collective->bytes = DeclareMetric(MetricType::kGauge, collective->bytes_name, "By",
                                      "Bytes of the step that this collective moved.")
                            .index_;
    if (collective->bytes == kNone) return;  // Refused, and counted.
  }
  Add(Metric(collective->bytes), static_cast<double>(step_.collective_bytes));
}

CollectiveScope::CollectiveScope(CollectiveScope&& other) noexcept
    : state_(std::exchange(other.state_, nullptr)), number_(other.number_) {}

void CollectiveScope::End() noexcept {
  if (RecorderState* const state = std::exchange(state_, nullptr)) state->EndCollective(number_);
}

CollectiveScope StepScope::Collective(std::string_view name, uint64_t bytes,
                                      std::optional<uint32_t> peer) noexcept {
  if (state_ == nullptr) return CollectiveScope(nullptr, 0);
  return CollectiveScope(state_,
                         state_->BeginCollective(state_->FindCollective(name, peer), bytes));
}

CollectiveScope StepScope::Collective(CollectiveMetric collective, uint64_t bytes) noexcept {
  if (state_ == nullptr) return CollectiveScope(nullptr, 0);
  return CollectiveScope(state_,
                         state_->BeginCollective(state_->CheckCollective(collective), bytes));
}

}  // namespace tacho::client
