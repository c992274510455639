// HardwareErrors: chips counted errors recently.
//
// Definition. A chip has errors of a kind if its counter of that kind grew within the newest `span`
// by at least the limit of the kind:
//   uncorrected ECC        1                 critical
//   XID                    1                 by its number where known (xid.h), else warning
//   remapped memory rows   1                 warning
//   links (ICI, NVLink)    link_errors       warning
//   corrected ECC          corrected_errors  info
// A counter that falls was reset with its driver, and counts from zero. The first value in the
// window is not growth: those errors are old. DCGM's gauge holds the code of the last XID; it
// counts one error whenever it changes to a code other than 0, and its value is the number.
//
// Score: errors. Culprits of the worst kind come first, then by errors. The limits are ours.
// Limits: DCGM's gauge shows two equal XIDs in a row as one.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/conditions/detectors/detectors.h"
#include "server/conditions/measures/xid.h"
#include "server/conditions/window/signal_names.h"

namespace tacho::server::conditions {
namespace {

struct Kind {
  Signal signal;
  absl::string_view reason;
  absl::string_view noun;
  Severity severity;
};

// The worst first, among those of equal severity.
constexpr Kind kKinds[] = {
    {Signal::kEccUncorrected, "UncorrectedEcc", "uncorrected ECC errors", Severity::kCritical},
    {Signal::kXid, "Xid", "XID errors", Severity::kWarning},
    {Signal::kRemappedRows, "RemappedRows", "remapped memory rows", Severity::kWarning},
    {Signal::kLinkErrors, "LinkErrors", "link errors", Severity::kWarning},
    {Signal::kEccCorrected, "CorrectedEcc", "corrected ECC errors", Severity::kInfo},
};

struct Errors {
  const Kind* kind = nullptr;
  const ChipWindow* chip = nullptr;
  std::string metric;
  Severity severity = Severity::kInfo;
  double count = 0;
  int64_t since_ns = 0;  // The first of them.
  std::optional<int> xid;
};

// Calls visit(point, growth) for each value after `since_ns` that is larger than the one before it.
template <typename Visit>
void VisitGrowth(const Track& track, int64_t since_ns, bool last_code, const Visit& visit) {
  std::optional<double> before;
  for (const Point& point : track.points) {
    if (!std::isfinite(point.value)) continue;
    double growth = 0;
    if (before.has_value() && last_code) {
      growth = point.value != *before && point.value != 0 ? 1 : 0;
    } else if (before.has_value()) {
      growth = point.value < *before ? point.value : point.value - *before;
    }
    before = point.value;
    if (growth > 0 && point.time_ns > since_ns) visit(point, growth);
  }
}

double LimitOf(const Kind& kind, const Hardware::HardwareErrors& settings) {
  if (kind.signal == Signal::kLinkErrors) return settings.link_errors();
  if (kind.signal == Signal::kEccCorrected) return settings.corrected_errors();
  return 1;
}

void NoteXid(int number, Errors* errors) {
  const Xid* xid = FindXid(number);
  const Severity severity = xid == nullptr ? Severity::kWarning : xid->severity;
  if (errors->xid.has_value() && severity <= errors->severity) return;
  errors->xid = number;
  errors->severity = severity;
}

// Adds up all metrics of the kind.
std::optional<Errors> ErrorsOf(const ChipWindow& chip, const Kind& kind, int64_t since_ns,
                               const Hardware::HardwareErrors& settings, bool* judged) {
  const auto tracks = chip.tracks.find(kind.signal);
  if (tracks == chip.tracks.end()) return std::nullopt;
  Errors errors = {.kind = &kind, .chip = &chip, .metric = "", .severity = kind.severity};
  for (const Track& track : tracks->second) {
    if (track.empty()) continue;
    *judged = true;
    const bool last_code = kind.signal == Signal::kXid &&
                           absl::StrContains(NormalisedName(track.metric), "dev_xid_errors");
    VisitGrowth(track, since_ns, last_code, [&](const Point& point, double growth) {
      if (errors.count == 0 || point.time_ns < errors.since_ns) errors.since_ns = point.time_ns;
      if (errors.metric.empty()) errors.metric = track.metric;
      errors.count += growth;
      if (last_code && point.value > 0 && point.value < 1e6) {
        NoteXid(static_cast<int>(point.value), &errors);
      }
    });
  }
  if (errors.count < LimitOf(kind, settings) || errors.count <= 0) return std::nullopt;
  return errors;
}

std::string MessageOf(const Errors& worst, size_t others) {
  std::string text = absl::StrFormat("Chip %s of %s counted %g %s", worst.chip->chip,
                                     worst.chip->host, worst.count, worst.kind->noun);
  if (worst.xid.has_value()) {
    const Xid* xid = FindXid(*worst.xid);
    absl::StrAppend(&text, ", number ", *worst.xid);
    if (xid != nullptr) absl::StrAppend(&text, " (", xid->text, ")");
  }
  if (others > 0) {
    absl::StrAppend(&text, "; ", others,
                    others == 1 ? " more chip or kind of error is affected"
                                : " more chips or kinds of errors are affected");
  }
  return text;
}

}  // namespace

Finding DetectHardwareErrors(const JobWindow& window, const Hardware::HardwareErrors& settings) {
  const int64_t since = window.now_ns - settings.span();
  std::vector<Errors> found;
  bool judged = false;
  for (const ChipWindow& chip : window.chips) {
    for (const Kind& kind : kKinds) {
      auto errors = ErrorsOf(chip, kind, since, settings, &judged);
      if (errors.has_value()) found.push_back(*std::move(errors));
    }
  }
  if (!judged) return NotJudged();
  if (found.empty()) return NotPresent();
  std::stable_sort(found.begin(), found.end(), [](const Errors& a, const Errors& b) {
    return std::tuple(b.severity, a.kind, b.count) < std::tuple(a.severity, b.kind, a.count);
  });
  const Errors& worst = found.front();
  Finding finding = Present(worst.severity, worst.kind->reason, MessageOf(worst, found.size() - 1));
  finding.since_ns = worst.since_ns;
  finding.figures = {{"errors", worst.count, "{error}"},
                     {"threshold", LimitOf(*worst.kind, settings), "{error}"}};
  if (worst.xid.has_value()) finding.AddFigure("xid", *worst.xid, "1");
  for (const Errors& errors : found) {
    finding.BlameChip(errors.chip->host, errors.chip->chip, errors.count, errors.metric);
  }
  return finding;
}

}  // namespace tacho::server::conditions
