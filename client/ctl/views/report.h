// A report on two runs, for deciding whether a change is good.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/ctl/views/comparison.h"
#include "client/ctl/views/threshold.h"

namespace tacho::ctl {

// Energy that a metric of power, summed over all tasks and chips, came to.
struct EnergyLine {
  std::string metric;
  std::vector<std::optional<v1::Integral>> runs;  // One for each run; nullopt if it has none.
};

struct Report {
  Comparison comparison;  // Has two subjects: the baseline, then the run that is judged.
  std::vector<Verdict> verdicts;
  absl::Time now;
  absl::TimeZone zone;
  std::string zone_name;
  size_t curves = 0;  // How many metrics get a chart at most.
  std::vector<EnergyLine> energy = {};
  // What each run cost as a whole, or nothing; a run of which an attempt was chosen has none.
  std::vector<std::optional<v1::CostResponse>> costs = {};

  const std::string& first() const { return comparison.names[0]; }
  const std::string& second() const { return comparison.names[1]; }
  bool passed() const;
  // "Passed", "FAILED: 1 of 3 thresholds", "No thresholds were set".
  std::string VerdictText() const;
};

// Metrics with a threshold, then those that changed most; each once.
std::vector<const v1::CompareMetric*> ByWeight(const Report& report);

// One line of the tables of both formats.
struct ReportLine {
  std::string name;
  std::string first;
  std::string second;
};
// Job, attempts, steps, times, and cost of both.
std::vector<ReportLine> Facts(const Report& report);

// "metric [unit]"
std::string MetricTitle(const v1::Metric& metric);
// How much the second run's values (of a counter, its rate) differ on average: "+2.1 %", or a
// difference where the first run's average is 0; "" if nothing can be compared.
std::string ChangeText(const v1::CompareMetric& metric);
// The average of a run's samples, or "12.5/s" for what counts.
std::string AverageText(const v1::CompareMetric& metric, size_t run);
// Whether a metric is a counter, which kCountRemark then explains.
bool AnyCount(const Report& report);
inline constexpr absl::string_view kCountRemark =
    "For counters and histograms, the average and the change are of the rate, the growth per "
    "second "
    "of one series.";
// "1200 J, 0.000333 kWh; without 2m that are not covered"
std::string EnergyText(const std::optional<v1::Integral>& energy);
inline constexpr absl::string_view kEnergyRemark =
    "Energy is the power of all tasks and chips over time, of all attempts unless one was chosen. "
    "More than a minute without a sample is not covered.";
// "+2.1 %" or "+0.5"; "unknown".
std::string ChangeText(const Verdict& verdict);

void WriteMarkdown(std::ostream& out, const Report& report);

// One file without scripts or external resources; it follows the reader's choice of light or dark.
void WriteHtml(std::ostream& out, const Report& report);

void WriteReportJson(std::ostream& out, const Report& report);

}  // namespace tacho::ctl
