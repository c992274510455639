// The order of ListJobs, and its page tokens.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tacho::server::query {

// Where a job stands in the listing. Jobs that were seen since active_since_ns come first, by name;
// then the others, the newest first.
struct JobPosition {
  int64_t active_since_ns = 0;  // Set by the first page; all later activity counts as this.
  int64_t seen_ns = INT64_MAX;  // At most active_since_ns. The default is before every job.
  std::string name;

  // `seen_ns` is the time of the job's newest row; INT64_MIN: it has none.
  static JobPosition Of(int64_t active_since_ns, int64_t seen_ns, std::string name);
};

// Both positions have the same active_since_ns.
bool IsBefore(const JobPosition& a, const JobPosition& b);

// The token of a page that ends at this position.
std::string PageTokenOf(const JobPosition& position);
//   INVALID_ARGUMENT  it is not a token; the text names page_token.
absl::StatusOr<JobPosition> ReadPageToken(absl::string_view token);

}  // namespace tacho::server::query
