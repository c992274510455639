// The flags of 'tachoctl query' and those that it shares with other commands, as requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/base/flags.h"
#include "tacho/v1/query.pb.h"

namespace tacho::ctl {

struct QueryOptions {
  v1::RangeRequest request;
  // Rows of a table, or all samples for JSON and CSV; nullopt: the format decides.
  std::optional<size_t> limit;

  bool reduced() const { return request.max_points() > 0; }
  bool by_step() const { return request.axis() == v1::AXIS_STEP; }
};

const std::vector<FlagSpec>& QueryFlags();

// The flags --match, --since, --from, --to, which other commands share.
const std::vector<FlagSpec>& TimeFlags();
const FlagSpec& MatchFlag();

// nullopt if no time flag was given.
//   INVALID_ARGUMENT  the text names the flag and what was expected.
absl::StatusOr<std::optional<v1::TimeRange>> ParseTimeRange(const ParsedArgs& args, absl::Time now,
                                                            absl::TimeZone zone);

// The flag --attempts; ATTEMPTS_UNSPECIFIED if it was not given.
FlagSpec AttemptsFlag(absl::string_view default_value);
v1::Attempts ParseAttempts(const ParsedArgs& args);

// --rate and --increase.
const std::vector<FlagSpec>& CounterFlags();
//   INVALID_ARGUMENT  both are given.
absl::StatusOr<v1::CounterFunction> ParseCounter(const ParsedArgs& args);

// The flag --steps; nullopt if it was not given.
FlagSpec StepsFlag();
//   INVALID_ARGUMENT  the text names the flag and what was expected.
absl::StatusOr<std::optional<v1::StepRange>> ParseStepsFlag(const ParsedArgs& args);

// The number after `flag`, from `minimum` to `maximum`; nullopt if the flag was not given.
//   INVALID_ARGUMENT  the text names the flag and what was expected.
absl::StatusOr<std::optional<uint64_t>> ParseNumber(const ParsedArgs& args, absl::string_view flag,
                                                    uint64_t minimum, uint64_t maximum);

//   INVALID_ARGUMENT  the text names the flag and what was expected.
absl::StatusOr<std::vector<v1::Matcher>> ParseMatchers(const ParsedArgs& args);

// `args.positionals()` is JOB METRIC...
//   INVALID_ARGUMENT  the text names the flag and what was expected.
absl::StatusOr<QueryOptions> ParseQueryOptions(const ParsedArgs& args, absl::Time now,
                                               absl::TimeZone zone);

}  // namespace tacho::ctl
