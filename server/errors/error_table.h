// Failures between the collector and its clients, one row for each. A failure has
// the same meaning over gRPC and over HTTP, and says whether trying again helps.
//
// docs/errors.md shows the table to people, and tests/server/errors/error_table_test.cc compares
// the two. tests/server/errors/error_rows_test.cc provokes each row from outside.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tacho::server::errors {

enum class Failure {
  // Time heals these. The first row of a code stands for statuses that name no failure.
  kOverloaded,    // More comes in than the disk, the memory or the workers take.
  kDraining,      // The collector is shutting down.
  kDiskRefuses,   // The disk is full or has failed.
  kClockDoubted,  // The collector's clock may be wrong.
  kSuperseded,    // A newer stream of the same agent took over.
  // The sender has to change something first.
  kMalformed,
  kTooLarge,
  kOutOfOrder,
  kMisdirected,  // Another collector of the cluster keeps the job.
  kUnauthenticated,
  kForbidden,
  kNameTaken,
  kNotFound,
  kUnsupported,    // A method or an encoding that is not served.
  kNotAcceptable,  // HTTP only: the client takes no format that there is.
  kTooSlow,
  kCancelled,
  // Somebody has to look at the collector.
  kDamaged,
  kInternal,
};

struct ErrorRow {
  Failure failure;
  absl::string_view name;  // google.rpc.ErrorInfo.reason: "DRAINING".
  absl::StatusCode code;
  int http_status;
  // How long to wait before a retry: at least this, and up to `retry_spread` more, so that clients
  // that were turned away together come back at different times. Zero: a retry fails in the same
  // way.
  absl::Duration retry_after;
  absl::Duration retry_spread;
  absl::string_view what;    // For docs/errors.md: what has happened,
  absl::string_view remedy;  // and who does what.
};

// In the order of Failure.
std::span<const ErrorRow> ErrorTable();

// A status with the row's code, which carries its failure as payload.
absl::Status ErrorOf(Failure failure, absl::string_view text);
// kDraining, for whatever comes or still runs while the collector shuts down.
absl::Status Draining();

// The row of the failure that the status carries; else the first row with its code; kInternal's for
// codes that are in no row. `status` must not be OK.
const ErrorRow& RowOf(const absl::Status& status);

// The row's delay; nullopt if a retry does not help. Consecutive values of `spread`, such as the
// numbers of streams, spread evenly.
std::optional<absl::Duration> RetryAfter(const absl::Status& status, uint64_t spread);

}  // namespace tacho::server::errors
