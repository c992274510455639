#include "server/conditions/condition_state.h"

#include <utility>

namespace tacho::server::conditions {
namespace {

bool HasLasted(std::optional<int64_t>* since_ns, int64_t now_ns, absl::Duration wanted) {
  if (!since_ns->has_value()) *since_ns = now_ns;
  return absl::Nanoseconds(now_ns - **since_ns) >= wanted;
}

bool SameCulprit(const Finding& a, const Finding& b) {
  if (a.culprits.empty() || b.culprits.empty()) return a.culprits.empty() == b.culprits.empty();
  const Culprit& x = a.culprits.front();
  const Culprit& y = b.culprits.front();
  return x.task == y.task && x.host == y.host && x.chip == y.chip && x.metric == y.metric;
}

}  // namespace

ConditionState::Change ConditionState::Update(const Finding& finding, int64_t now_ns,
                                              const Times& times, bool frozen) {
  if (finding.judged && finding.present) return BePresent(finding, now_ns, times, frozen);
  return BeAbsent(finding, now_ns, times, frozen);
}

ConditionState::Change ConditionState::BePresent(const Finding& finding, int64_t now_ns,
                                                 const Times& times, bool frozen) {
  absent_since_.reset();
  if (status_ == ConditionStatus::kTrue) {
    const bool same = finding.reason == finding_.reason && finding.severity == finding_.severity &&
                      SameCulprit(finding, finding_);
    const auto step = finding_.step;
    finding_ = finding;
    // The step at which it began stays, as the time does.
    if (step.has_value()) finding_.step = step;
    return same ? Change::kNone : Change::kOther;
  }
  if (!HasLasted(&present_since_, now_ns, times.hold_for) || frozen) return Change::kNone;
  const int64_t since_ns = finding.since_ns != 0 ? finding.since_ns : *present_since_;
  Become(ConditionStatus::kTrue, finding, since_ns, now_ns);
  return Change::kRaised;
}

ConditionState::Change ConditionState::BeAbsent(const Finding& finding, int64_t now_ns,
                                                const Times& times, bool frozen) {
  present_since_.reset();
  const ConditionStatus next = finding.judged ? ConditionStatus::kFalse : ConditionStatus::kUnknown;
  if (status_ == next) {
    absent_since_.reset();
    return Change::kNone;
  }
  // UNKNOWN becomes FALSE at once.
  if (status_ != ConditionStatus::kUnknown) {
    if (!HasLasted(&absent_since_, now_ns, times.clear_after) || frozen) return Change::kNone;
  }
  const bool was_true = status_ == ConditionStatus::kTrue;
  Finding why;
  why.judged = finding.judged;
  why.severity = finding.severity;
  why.reason = finding.reason;
  why.message = finding.message;
  Become(next, why, was_true ? *absent_since_ : now_ns, now_ns);
  return was_true ? Change::kCleared : Change::kOther;
}

void ConditionState::Restore(const Finding& finding, int64_t since_ns, int64_t changed_ns) {
  Become(ConditionStatus::kTrue, finding, since_ns, changed_ns);
}

ConditionState::Change ConditionState::End(int64_t now_ns, std::string reason,
                                           std::string message) {
  const bool was_true = status_ == ConditionStatus::kTrue;
  if (status_ == ConditionStatus::kUnknown) return Change::kNone;
  Finding why;
  why.reason = std::move(reason);
  why.message = std::move(message);
  Become(ConditionStatus::kUnknown, why, now_ns, now_ns);
  return was_true ? Change::kCleared : Change::kOther;
}

void ConditionState::Become(ConditionStatus status, const Finding& finding, int64_t since_ns,
                            int64_t now_ns) {
  status_ = status;
  finding_ = finding;
  since_ns_ = since_ns;
  changed_ns_ = now_ns;
  present_since_.reset();
  absent_since_.reset();
}

}  // namespace tacho::server::conditions
