#include "server/conditions/condition_settings.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/message_differencer.h"

namespace tacho::server::conditions {

absl::StatusOr<std::shared_ptr<const ConditionSettings>> ConditionSettings::Create(
    const config::v1::Conditions& config) {
  std::shared_ptr<ConditionSettings> settings(new ConditionSettings(config));
  settings->detectors_ = AllDetectors(config);
  for (const auto& job : config.jobs()) {
    Rule rule;
    rule.pattern = std::make_unique<RE2>(job.pattern(), RE2::Quiet);
    if (!rule.pattern->ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("conditions.jobs: pattern '", job.pattern(), "': ", rule.pattern->error()));
    }
    rule.detectors = AllDetectors(job);
    settings->rules_.push_back(std::move(rule));
  }
  return std::shared_ptr<const ConditionSettings>(std::move(settings));
}

std::shared_ptr<const ConditionSettings> ConditionSettings::WithDetectors(
    const config::v1::Conditions& config, Detectors detectors) {
  std::shared_ptr<ConditionSettings> settings(new ConditionSettings(config));
  settings->detectors_ = std::move(detectors);
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

const Detectors& ConditionSettings::Of(absl::string_view job) const {
  for (const Rule& rule : rules_) {
    if (RE2::FullMatch(re2::StringPiece(job.data(), job.size()), *rule.pattern)) {
      return rule.detectors;
    }
  }
  return detectors_;
}

}  // namespace tacho::server::conditions
