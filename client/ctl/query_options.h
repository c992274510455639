// What 'tachoctl query' was asked for, as a request and how to show its answer.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/ctl/flags.h"
#include "tacho/v1/query.pb.h"

namespace tacho::ctl {

struct QueryOptions {
  v1::RangeRequest request;
  // Rows of a table, or samples in all for JSON and CSV; nullopt: the format decides.
  std::optional<size_t> limit;

  bool reduced() const { return request.max_points() > 0; }
  bool by_step() const { return request.axis() == v1::AXIS_STEP; }
};

const std::vector<FlagSpec>& QueryFlags();

// The flags --match, --since, --from, --to, which other commands share.
const std::vector<FlagSpec>& TimeFlags();
const FlagSpec& MatchFlag();

// Sets nothing if no time flag was given.
//   INVALID_ARGUMENT  the text names the flag and what was expected.
absl::StatusOr<std::optional<v1::TimeRange>> ParseTimeRange(const ParsedArgs& args, absl::Time now,
                                                            absl::TimeZone zone);

//   INVALID_ARGUMENT  the text names the flag and what was expected.
absl::StatusOr<std::vector<v1::Matcher>> ParseMatchers(const ParsedArgs& args);

// `args.positionals()` is JOB METRIC...
//   INVALID_ARGUMENT  the text names the flag and what was expected.
absl::StatusOr<QueryOptions> ParseQueryOptions(const ParsedArgs& args, absl::Time now,
                                               absl::TimeZone zone);

}  // namespace tacho::ctl
