// DataLoss: rows of the job's hosts were lost on their way.
//
// Definition. The agent of a host of the job told of rows that it could not keep (a ring that was
// overwritten, a full spool, a damaged file), or of a gap in what it sends, within `recent`; the
// numbers are of the whole window.
//
// Reason: RowsLost. Culprits: the hosts, by rows lost; score: rows.
//
// Needs agents. Cannot tell what was in the rows; nor loss that nobody noticed, such as a trainer's
// rows that were never recorded.
//
// Source: our own (Gap messages of tacho.v1.Ingest).
#pragma once

#include "absl/time/time.h"
#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct DataLossSettings {
  absl::Duration recent = absl::Minutes(10);
};

Finding DetectDataLoss(const JobWindow& window, const DataLossSettings& settings);

}  // namespace tacho::server::conditions
