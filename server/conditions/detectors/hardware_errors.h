// HardwareErrors: chips counted errors a short time ago.
//
// Definition. A chip has errors of a kind if its counter of that kind grew within the newest `span`
// by at least the kind's limit:
//   uncorrected ECC        1       critical
//   XID                    1       by its number where that is known (xid.h), else warning
//   remapped memory rows   1       warning
//   links (ICI, NVLink)    link_errors       warning
//   corrected ECC          corrected_errors  info
// A counter that falls was reset with its driver and counts from zero. The first value that the
// window shows is no growth: what was counted before is past. DCGM's gauge of the code of the last
// XID counts one error whenever it changes to another code than 0; its value is the number.
//
// Units: errors. Limits: two equal XIDs in a row are one for DCGM's gauge. Reasons: UncorrectedEcc,
// Xid, RemappedRows, LinkErrors, CorrectedEcc, of the worst kind. Score of a culprit: errors; of
// the worst kind first, the most first. The limits are our own.
#pragma once

#include "absl/time/time.h"
#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct HardwareErrorsSettings {
  absl::Duration span = absl::Minutes(15);
  double link_errors = 1;
  double corrected_errors = 100;
};

Finding DetectHardwareErrors(const JobWindow& window, const HardwareErrorsSettings& settings);

}  // namespace tacho::server::conditions
