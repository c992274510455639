// Which profile of settings a job is judged with where conditions.profile is "auto".
//
// The limits of the profile "fast" are a few seconds. They suit a job that pauses only in phases
// that it records; any other job would raise false alarms. So the job's record decides:
//
//   balanced ─▶ fast   it has recorded a checkpoint, an evaluation or a restore that ended; its
//                      steps cover 5 minutes of this attempt; it has not paused without a phase
//                      within an hour, and at most once within a day
//   fast ─▶ balanced   it has paused without a phase
//
// A pause is the time between two rows with a new step of any task, without the phases in it
// (window/task_pace.h). It counts if it is longer than a share of the limit at which the job would
// be Stalled in the profile fast, max(floor, factor × the interval of rows): 0.8 of it takes a job
// out of fast, and there must be none of 0.5 within the hour before it gets in. These two shares
// and the hour keep the profile from flapping. Pauses of several tasks at one time are one pause.
//
// A hang that is going on is no pause yet, so it is judged with the profile that the job had.
// The record lasts over attempts. After a restart of the collector it is read from the rows of the
// newest attempt (window/window_loader.h): a day of the lowest task, less of the others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/conditions/window/window.h"
#include "tacho/config/v1/conditions_progress.pb.h"

namespace tacho::server::conditions {

enum class Profile : uint8_t { kFast, kBalanced, kQuiet };
inline constexpr std::array<Profile, 3> kProfiles = {Profile::kFast, Profile::kBalanced,
                                                     Profile::kQuiet};

absl::string_view ProfileName(Profile profile);  // "fast", "balanced", "quiet"
// nullopt: "auto", or no name of a profile.
std::optional<Profile> ParseProfile(absl::string_view name);

// The profile that a job is judged with, for people.
struct JobProfile {
  Profile profile = Profile::kBalanced;
  bool automatic = false;  // Chosen by PhaseRecord.
  std::string reason;      // One sentence.
  int64_t since_ns = 0;    // When it changed last; 0: never.
};

// How well one job records its phases. One thread at a time.
class PhaseRecord {
 public:
  static constexpr absl::Duration kProof = absl::Minutes(5);
  static constexpr absl::Duration kQuarantine = absl::Hours(1);
  static constexpr absl::Duration kMemory = absl::Hours(24);
  static constexpr double kLeaves = 0.8;  // Shares of the limit.
  static constexpr double kEnters = 0.5;
  static constexpr size_t kMaxPauses = 16;  // Kept of earlier attempts; the newest.
  // A job does not leave fast while one of its conditions holds, because that would clear it, but
  // for this long at most.
  static constexpr absl::Duration kHeldAtMost = absl::Minutes(10);

  // Looks at the window of a judgement, before it is judged. `fast` are the settings of Stalled in
  // the profile fast; `holding`: some condition of the job holds.
  void Update(const JobWindow& window, const config::v1::ConditionsProgress::Stalled& fast,
              bool holding);

  const JobProfile& profile() const { return profile_; }

 private:
  void NotePhases(const JobWindow& window);
  void NotePauses(const JobWindow& window, double limit);
  // Why the job cannot be fast; empty: it can.
  std::string WhyNot(const JobWindow& window, double limit) const;
  void Become(Profile profile, int64_t now_ns);

  JobProfile profile_{.automatic = true};
  bool judged_ = false;
  uint32_t attempt_ = 0;
  size_t phases_ = 0;           // Ended ones that show that the job records, in this attempt.
  bool recorded_ever_ = false;  // In any attempt.
  std::vector<Pause> earlier_;  // Of earlier attempts; ascending.
  std::vector<Pause> pauses_;   // With those of this attempt; ascending.
  std::optional<int64_t> held_since_ns_;
};

}  // namespace tacho::server::conditions
