// The section `conditions` of the configuration, ready for use: the detectors for each job, with
// their settings.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "re2/re2.h"
#include "server/conditions/detectors/detectors.h"
#include "server/conditions/job_profile.h"
#include "server/conditions/profile_schedule.h"
#include "server/conditions/window/signal_names.h"
#include "server/conditions/window/window_builder.h"
#include "tacho/config/v1/conditions.pb.h"

namespace tacho::server::conditions {

using Detectors = std::vector<Detector>;

// How some jobs are judged.
struct JobRules {
  std::optional<Profile> fixed;         // nullopt: PhaseRecord chooses.
  std::array<Detectors, 3> of_profile;  // By Profile.
  Progress::Stalled fast;               // Stalled in the profile fast.
  ProfilerRules profiler;

  const Detectors& With(Profile profile) const {
    return of_profile.at(static_cast<size_t>(profile));
  }
};

// Immutable.
class ConditionSettings {
 public:
  // `config` is as ParseYaml() leaves it.
  //   INVALID_ARGUMENT  a pattern does not compile, or there is no such condition; the text names
  //   it.
  static absl::StatusOr<std::shared_ptr<const ConditionSettings>> Create(
      const config::v1::Conditions& config);
  // Uses these detectors for every job and profile: for tests of the engine.
  static std::shared_ptr<const ConditionSettings> WithDetectors(
      const config::v1::Conditions& config, const Detectors& detectors);

  bool enabled() const { return config_.enabled(); }
  absl::Duration interval() const { return absl::Nanoseconds(config_.interval()); }
  absl::Duration settle() const { return absl::Nanoseconds(config_.settle()); }
  absl::Duration forget_after() const { return absl::Nanoseconds(config_.forget_after()); }
  bool stacks_on_stall() const { return config_.stacks() == "on_stall"; }
  WindowLimits window_limits() const;
  SignalNames signal_names() const;
  // Whether windows made with `other` cannot be used with these settings.
  bool ReadsOtherMetrics(const ConditionSettings& other) const;

  // Those of the first entry of conditions.jobs that matches, or else the general ones.
  const JobRules& Of(absl::string_view job) const;

 private:
  struct Rule {
    std::unique_ptr<RE2> pattern;
    JobRules rules;
  };

  explicit ConditionSettings(const config::v1::Conditions& config) : config_(config) {}

  const config::v1::Conditions config_;
  JobRules general_;
  std::vector<Rule> rules_;
};

}  // namespace tacho::server::conditions
