// A finding is a detector's report about a job at one moment. Detectors are pure functions.
// ConditionState (condition_state.h) decides later how long a finding must last before the
// condition is raised, and how long it must be gone before the condition is cleared.
//
// A detector returns NotJudged() or NotPresent(), or it builds the finding in four steps:
//
//   Finding finding = Present(Severity::kWarning, "HostClock", "The clock of h1 is 3 s ahead.");
//   finding.since_ns = …;                                             // and `step`, where known
//   finding.figures = {{"offset", 3.0, "s"}, {"threshold", 1.0, "s"}};
//   for (const Offset& offset : offsets) finding.BlameHost(offset.host, offset.seconds);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

enum class Severity : uint8_t { kInfo, kWarning, kCritical };

absl::string_view SeverityName(Severity severity);  // "info", "warning", "critical"
// nullopt: no such name. In a condition's configuration an empty name keeps the finding's severity.
std::optional<Severity> ParseSeverity(absl::string_view name);

// One figure that a finding is based on.
struct Figure {
  std::string name;  // "step_time_median", "threshold", …
  double value = 0;
  std::string unit;  // UCUM, as of metrics: "s", "By", "1".
};

// A suspect. Fields that do not apply are empty.
struct Culprit {
  std::optional<uint32_t> task;
  std::string host;
  std::string chip;
  std::string metric;
  std::optional<int64_t> step;  // Since this step, or at it.
  double score = 0;             // The detector defines it, and says which way is worse.
};

inline constexpr size_t kMaxCulprits = 16;

struct Finding {
  // False: the data is too short, or the detector's signals are not recorded. The condition is then
  // neither true nor false.
  bool judged = false;
  bool present = false;
  Severity severity = Severity::kWarning;
  std::string reason;           // One CamelCase word for programs: "NonFiniteLoss".
  std::string message;          // One sentence for people, with host, step and figures.
  int64_t since_ns = 0;         // When it began, as far as the data shows; 0: now.
  std::optional<int64_t> step;  // Since this step, or at it.
  std::vector<Figure> figures;
  std::vector<Culprit> culprits;  // The worst first.

  void AddFigure(absl::string_view name, double value, absl::string_view unit);

  // Each adds a culprit. Call them with the worst first: the ones after kMaxCulprits are dropped.
  void Blame(Culprit culprit);
  void BlameTask(const TaskWindow& task, double score, std::optional<int64_t> step = std::nullopt,
                 absl::string_view metric = "");
  void BlameHost(absl::string_view host, double score, std::optional<uint32_t> task = std::nullopt);
  void BlameChip(absl::string_view host, absl::string_view chip, double score,
                 absl::string_view metric = "");
  void BlameMetric(absl::string_view metric, int64_t step, double score = 0);
};

// There was nothing to judge by.
inline Finding NotJudged() { return {}; }
// Judged, and all is well.
inline Finding NotPresent() { return {.judged = true}; }
Finding Present(Severity severity, absl::string_view reason, std::string message);

}  // namespace tacho::server::conditions
