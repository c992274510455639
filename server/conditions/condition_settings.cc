#include "server/conditions/condition_settings.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/util/message_differencer.h"
#include "proto/base/status_macros.h"
#include "proto/config/profile_defaults.h"

namespace tacho::server::conditions {
namespace {

// A floor that the file gives holds always, unless it gives the other one, too.
template <typename Section>
void KeepGivenFloor(Section* section) {
  const auto gives = [&](const char* key) {
    const auto& given = section->given();
    return std::find(given.begin(), given.end(), key) != given.end();
  };
  if (!gives("progress.stalled.floor") || gives("progress.stalled.settled_floor")) return;
  auto* const stalled = section->mutable_progress()->mutable_stalled();
  stalled->set_settled_floor(stalled->floor());
}

ProfilerRules RulesOf(const config::v1::Conditions::Profiler& section) {
  return {.on = {section.on().begin(), section.on().end()},
          .every = absl::Nanoseconds(section.every()),
          .every_steps = static_cast<int64_t>(section.every_steps()),
          .duration = absl::Nanoseconds(section.duration()),
          .min_interval = absl::Nanoseconds(section.min_interval()),
          .tasks = section.tasks()};
}

absl::Status CheckNames(absl::string_view key, const JobRules& rules) {
  std::vector<std::string> known;
  for (const Detector& detector : rules.With(Profile::kBalanced)) known.push_back(detector.name);
  for (const std::string& name : rules.profiler.on) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat(key, ".profiler.on: there is no condition '",
                                                   name, "'; there are ",
                                                   absl::StrJoin(known, ", ")));
  }
  return absl::OkStatus();
}

// `section` is the section `conditions`, or an entry of its `jobs`.
template <typename Section>
JobRules RulesOf(const Section& section) {
  JobRules rules;
  rules.fixed = ParseProfile(section.profile());
  rules.profiler = RulesOf(section.profiler());
  for (const Profile profile : kProfiles) {
    Section changed = section;
    config::UseProfile(ProfileName(profile), &changed);
    KeepGivenFloor(&changed);
    rules.of_profile.at(static_cast<size_t>(profile)) = AllDetectors(changed);
    if (profile == Profile::kFast) rules.fast = changed.progress().stalled();
  }
  return rules;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ConditionSettings>> ConditionSettings::Create(
    const config::v1::Conditions& config) {
  std::shared_ptr<ConditionSettings> settings(new ConditionSettings(config));
  settings->general_ = RulesOf(config);
  TACHO_RETURN_IF_ERROR(CheckNames("conditions", settings->general_));
  for (const auto& job : config.jobs()) {
    Rule rule;
    rule.pattern = std::make_unique<RE2>(job.pattern(), RE2::Quiet);
    if (!rule.pattern->ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("conditions.jobs: pattern '", job.pattern(), "': ", rule.pattern->error()));
    }
    rule.rules = RulesOf(job);
    TACHO_RETURN_IF_ERROR(
        CheckNames(absl::StrCat("conditions.jobs[", settings->rules_.size(), "]"), rule.rules));
    settings->rules_.push_back(std::move(rule));
  }
  return std::shared_ptr<const ConditionSettings>(std::move(settings));
}

std::shared_ptr<const ConditionSettings> ConditionSettings::WithDetectors(
    const config::v1::Conditions& config, const Detectors& detectors) {
  std::shared_ptr<ConditionSettings> settings(new ConditionSettings(config));
  settings->general_ = RulesOf(config);
  settings->general_.of_profile.fill(detectors);
  return settings;
}

WindowLimits ConditionSettings::window_limits() const {
  WindowLimits limits;
  limits.points = config_.points();
  limits.job_bytes = config_.job_bytes();
  limits.total_bytes = config_.total_bytes();
  limits.host_window = absl::Nanoseconds(config_.host_window());
  limits.max_jobs = config_.max_jobs();
  return limits;
}

SignalNames ConditionSettings::signal_names() const { return ConfiguredNames(config_.signals()); }

bool ConditionSettings::ReadsOtherMetrics(const ConditionSettings& other) const {
  return !google::protobuf::util::MessageDifferencer::Equals(config_.signals(),
                                                             other.config_.signals());
}

const JobRules& ConditionSettings::Of(absl::string_view job) const {
  for (const Rule& rule : rules_) {
    if (RE2::FullMatch(re2::StringPiece(job.data(), job.size()), *rule.pattern)) {
      return rule.rules;
    }
  }
  return general_;
}

}  // namespace tacho::server::conditions
