#include "server/conditions/job_profile.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/conditions/measures/heard.h"
#include "server/conditions/measures/phases.h"
#include "server/conditions/measures/step_times.h"

namespace tacho::server::conditions {
namespace {

constexpr std::array<absl::string_view, 3> kProfileNames = {"fast", "balanced", "quiet"};

// Compiling and initialising show nothing: libraries record them for a trainer that records no
// checkpoint.
bool ShowsRecording(const PhaseInterval& phase) {
  return !phase.open() && (phase.phase == Phase::kCheckpoint || phase.phase == Phase::kEval ||
                           phase.phase == Phase::kRestore);
}

std::string At(int64_t time_ns) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", absl::FromUnixNanos(time_ns),
                          absl::UTCTimeZone());
}

double Longest(const std::vector<Pause>& pauses) {
  double longest = 0;
  for (const Pause& pause : pauses) longest = std::max(longest, pause.seconds);
  return longest;
}

// How long the job has made steps in this attempt.
int64_t SteppedNs(const JobWindow& window) {
  int64_t first_ns = INT64_MAX;
  int64_t last_ns = 0;
  for (const TaskWindow& task : window.tasks) {
    if (!task.last_step.has_value() || task.first_step_time_ns == 0) continue;
    first_ns = std::min(first_ns, task.first_step_time_ns);
    last_ns = std::max(last_ns, task.last_step_time_ns);
  }
  return first_ns == INT64_MAX ? 0 : last_ns - first_ns;
}

}  // namespace

absl::string_view ProfileName(Profile profile) {
  return kProfileNames.at(static_cast<size_t>(profile));
}

std::optional<Profile> ParseProfile(absl::string_view name) {
  for (const Profile profile : kProfiles) {
    if (ProfileName(profile) == name) return profile;
  }
  return std::nullopt;
}

void PhaseRecord::NotePhases(const JobWindow& window) {
  const std::vector<PhaseInterval> phases = FindPhases(window);
  phases_ = static_cast<size_t>(std::count_if(phases.begin(), phases.end(), ShowsRecording));
  recorded_ever_ = recorded_ever_ || phases_ > 0;
}

void PhaseRecord::NotePauses(const JobWindow& window, double limit) {
  std::vector<Pause> found;
  for (const TaskWindow& task : window.tasks) {
    for (const Pause& pause : task.pace.Pauses()) {
      if (pause.seconds > kEnters * limit) found.push_back(pause);
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Pause& a, const Pause& b) { return a.end_ns < b.end_ns; });
  pauses_ = earlier_;
  const auto apart_ns = static_cast<int64_t>(std::max(limit, 60.0) * 1e9);
  bool first = true;
  for (const Pause& pause : found) {
    if (!first && pause.end_ns - pauses_.back().end_ns <= apart_ns) {
      pauses_.back() = {pause.end_ns, std::max(pause.seconds, pauses_.back().seconds)};
    } else {
      pauses_.push_back(pause);
    }
    first = false;
  }
  const int64_t old_ns = window.now_ns - absl::ToInt64Nanoseconds(kMemory);
  std::erase_if(pauses_, [&](const Pause& pause) { return pause.end_ns < old_ns; });
}

std::string PhaseRecord::WhyNot(const JobWindow& window, double limit) const {
  if (!recorded_ever_) return "it has recorded no checkpoint, evaluation or restore yet";
  const bool is_fast = profile_.profile == Profile::kFast;
  const int64_t recent_ns = window.now_ns - absl::ToInt64Nanoseconds(kQuarantine);
  size_t counted = 0;
  for (const Pause& pause : pauses_) {
    if (pause.seconds > kLeaves * limit) ++counted;
    const double share = is_fast ? kLeaves : kEnters;
    if (pause.end_ns >= recent_ns && pause.seconds > share * limit) {
      return absl::StrFormat("it paused for %.0f s without a recorded phase, until %s",
                             pause.seconds, At(pause.end_ns));
    }
  }
  if (counted >= 2) {
    return absl::StrFormat(
        "it paused %d times within a day without a recorded phase, for up to "
        "%.0f s, the last time until %s",
        counted, Longest(pauses_), At(pauses_.back().end_ns));
  }
  if (!is_fast && SteppedNs(window) < absl::ToInt64Nanoseconds(kProof)) {
    return "its steps cover less than 5 minutes of this attempt";
  }
  return "";
}

void PhaseRecord::Become(Profile profile, int64_t now_ns) {
  if (profile == profile_.profile) return;
  profile_.profile = profile;
  // What a restart of the collector finds was so before.
  profile_.since_ns = judged_ ? now_ns : 0;
}

void PhaseRecord::Update(const JobWindow& window,
                         const config::v1::ConditionsProgress::Stalled& fast, bool holding) {
  if (window.attempt != attempt_) {
    earlier_ = pauses_;
    if (earlier_.size() > kMaxPauses) {
      earlier_.erase(earlier_.begin(), earlier_.end() - static_cast<std::ptrdiff_t>(kMaxPauses));
    }
    attempt_ = window.attempt;
  }
  if (!holding) held_since_ns_.reset();
  if (holding && !held_since_ns_.has_value()) held_since_ns_ = window.now_ns;
  NotePhases(window);
  const double limit = std::max(Seconds(fast.floor()), fast.factor() * ProgressInterval(window));
  NotePauses(window, limit);
  const std::string why_not = WhyNot(window, limit);
  const bool stays = holding && profile_.profile == Profile::kFast &&
                     window.now_ns - *held_since_ns_ < absl::ToInt64Nanoseconds(kHeldAtMost);
  if (why_not.empty()) {
    Become(Profile::kFast, window.now_ns);
    profile_.reason = "it records its phases, and pauses only in them";
  } else if (!stays) {
    Become(Profile::kBalanced, window.now_ns);
    profile_.reason = why_not;
  }
  judged_ = true;
}

}  // namespace tacho::server::conditions
