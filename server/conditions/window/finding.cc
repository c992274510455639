#include "server/conditions/window/finding.h"

#include <utility>

#include "proto/base/check.h"

namespace tacho::server::conditions {

absl::string_view SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kInfo:
      return "info";
    case Severity::kWarning:
      return "warning";
    case Severity::kCritical:
      return "critical";
  }
  return "";
}

std::optional<Severity> ParseSeverity(absl::string_view name) {
  if (name == "info") return Severity::kInfo;
  if (name == "warning") return Severity::kWarning;
  if (name == "critical") return Severity::kCritical;
  return std::nullopt;
}

Finding Present(Severity severity, absl::string_view reason, std::string message) {
  TACHO_CHECK(!reason.empty() && !message.empty());
  Finding finding = NotPresent();
  finding.present = true;
  finding.severity = severity;
  finding.reason = std::string(reason);
  finding.message = std::move(message);
  return finding;
}

void Finding::AddFigure(absl::string_view name, double value, absl::string_view unit) {
  figures.push_back({std::string(name), value, std::string(unit)});
}

void Finding::Blame(Culprit culprit) {
  if (culprits.size() < kMaxCulprits) culprits.push_back(std::move(culprit));
}

void Finding::BlameTask(const TaskWindow& task, double score, std::optional<int64_t> at,
                        absl::string_view metric) {
  Blame({task.task, task.host, "", std::string(metric), at, score});
}

void Finding::BlameHost(absl::string_view host, double score, std::optional<uint32_t> task) {
  Blame({task, std::string(host), "", "", std::nullopt, score});
}

void Finding::BlameChip(absl::string_view host, absl::string_view chip, double score,
                        absl::string_view metric) {
  Blame({std::nullopt, std::string(host), std::string(chip), std::string(metric), std::nullopt,
         score});
}

void Finding::BlameMetric(absl::string_view metric, int64_t at, double score) {
  Blame({std::nullopt, "", "", std::string(metric), at, score});
}

}  // namespace tacho::server::conditions
