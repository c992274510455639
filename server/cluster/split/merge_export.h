// Query.Export of a split job: the job as all members have it, all events, all series.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "server/cluster/split/part_source.h"
#include "server/query/read/query_control.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::cluster {

// What each member sends is of one moment, and that of another member of another one. Statuses are
// those of MergeRange().
absl::Status MergeExport(const PartSources<v1::ExportResponse>& parts,
                         const query::QueryControl& control,
                         absl::FunctionRef<absl::Status(const v1::ExportResponse&)> send);

}  // namespace tacho::server::cluster
