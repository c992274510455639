// What a call of Prometheus' HTTP API about names asks for. Pure.
//
// https://prometheus.io/docs/prometheus/latest/querying/api/#querying-metadata
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/http/http_message.h"
#include "server/promread/read_request.h"

namespace tacho::server::promread {

// The longest form that is taken.
inline constexpr size_t kMaxFormBytes = size_t{256} << 10;

struct ExploreRequest {
  // One for each match[]; all have the times of the request. At most kMaxQueries, with kMaxMatchers
  // matchers together.
  std::vector<ReadQuery> selectors;
  ReadQuery everything;  // The times alone.
  // As the request says; 0: there is none.
  uint64_t limit = 0;
  uint64_t limit_per_metric = 0;
  std::string metric;  // Empty: every one.
};

// Reads the parameters start, end, match[], limit, limit_per_metric and metric, of the query and of
// a POST's form. Others are not looked at, as Prometheus does it. Nothing is trusted; memory is
// bounded by kMaxFormBytes and the regular expressions of kMaxMatchers.
//   INVALID_ARGUMENT (MALFORMED)    the text names the parameter and what is wrong with it.
//   RESOURCE_EXHAUSTED (TOO_LARGE)  more selectors or matchers than there may be.
absl::StatusOr<ExploreRequest> ReadExploreRequest(const http::HttpRequest& request);

// A time in ms since the Unix epoch: seconds with a fraction, or RFC 3339. Times beyond int64 are
// its ends.
//   INVALID_ARGUMENT (MALFORMED)
absl::StatusOr<int64_t> ParseTimeMs(absl::string_view text);

}  // namespace tacho::server::promread
