#include "server/conditions/condition_state.h"

#include <algorithm>
#include <utility>
#include <vector>

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

// The same suspect, whatever its task: a host, or a task of no known host.
bool SameSuspect(const Culprit& a, const Culprit& b) {
  if (a.host != b.host || a.chip != b.chip || a.metric != b.metric) return false;
  return !a.host.empty() || a.task == b.task;
}

size_t CountSame(const std::vector<Culprit>& culprits, const Culprit& wanted) {
  return static_cast<size_t>(
      std::count_if(culprits.begin(), culprits.end(),
                    [&](const Culprit& one) { return SameSuspect(one, wanted); }));
}

}  // namespace

void ConditionState::KeepCulprits(int64_t now_ns, Finding* finding) {
  const std::vector<Culprit>& before = finding_.culprits;
  std::vector<Culprit>& now = finding->culprits;
  if (before.empty()) {
    named_ns_ = now_ns;
    return;
  }
  for (Culprit& culprit : now) {
    const auto known = std::find_if(before.begin(), before.end(),
                                    [&](const Culprit& one) { return SameSuspect(one, culprit); });
    // Several tasks of one host are told apart by their numbers.
    if (known == before.end() || CountSame(before, culprit) > 1 || CountSame(now, culprit) > 1) {
      continue;
    }
    culprit.task = known->task;
    culprit.step = known->step;
  }
  const Culprit first = before.front();
  const auto again = std::find_if(now.begin(), now.end(), [&](const Culprit& one) {
    return SameSuspect(one, first) && one.task == first.task;
  });
  if (again != now.end()) {
    named_ns_ = now_ns;
    std::rotate(now.begin(), again, again + 1);
  } else if (absl::Nanoseconds(now_ns - named_ns_) <= kCulpritStays) {
    now.insert(now.begin(), first);
    if (now.size() > kMaxCulprits) now.pop_back();
  } else {
    named_ns_ = now_ns;
  }
}

ConditionState::Change ConditionState::Update(const Finding& finding, int64_t now_ns,
                                              const Times& times, bool frozen) {
  if (finding.judged && finding.present) return BePresent(finding, now_ns, times, frozen);
  return BeAbsent(finding, now_ns, times, frozen);
}

ConditionState::Change ConditionState::BePresent(const Finding& finding, int64_t now_ns,
                                                 const Times& times, bool frozen) {
  absent_since_.reset();
  if (status_ == ConditionStatus::kTrue) {
    const auto step = finding_.step;
    Finding next = finding;
    KeepCulprits(now_ns, &next);
    const bool same = next.reason == finding_.reason && next.severity == finding_.severity &&
                      SameCulprit(next, finding_);
    finding_ = std::move(next);
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
  named_ns_ = now_ns;
}

}  // namespace tacho::server::conditions
