// A comparison of runs: its flags, its answer, its JSON.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/ctl/call/query_client.h"
#include "client/ctl/line/parse.h"
#include "client/ctl/text/json_writer.h"
#include "client/ctl/text/plot_axis.h"
#include "proto/base/flags.h"

namespace tacho::ctl {

struct Comparison {
  bool by_step = true;             // Else by time since each subject began.
  std::vector<std::string> names;  // The subjects, as the user typed them.
  v1::CompareSubjects subjects;
  std::vector<v1::CompareMetric> metrics;  // Each has one column a subject, and samples in one.
  std::vector<std::string> missing;        // Requested metrics without samples in any subject.
};

// Flags that say what is compared and how: --by, --metric, --match, --steps, --attempts, --points.
const std::vector<FlagSpec>& CompareFlags();

//   INVALID_ARGUMENT  the text names the flag and what was expected.
absl::StatusOr<v1::CompareRequest> ParseCompareRequest(const ParsedArgs& args,
                                                       const std::vector<SubjectName>& subjects);

// As QueryClient::Compare, and
//   INTERNAL  the answer does not fit together.
absl::StatusOr<Comparison> ReadComparison(QueryClient& client, const v1::CompareRequest& request,
                                          const std::vector<SubjectName>& subjects);

// Whether the metric only counts up: a counter, or the observations of a histogram. An average of
// its values says nothing; how fast it grows does.
bool IsCount(const v1::Metric& metric);

// How a subject differs from the first one: by the mean difference of their values, or in the rate
// at which they count.
struct Change {
  bool known = false;  // Else there is nothing to compare.
  double difference = kNotANumber;
  double relative = kNotANumber;  // To the first one's magnitude; NaN if that is 0.
};
Change ChangeOf(const v1::CompareMetric& metric, size_t subject);

// The attempts that took part: "0, 2..4".
std::string AttemptsText(const v1::ComparedSubject& subject);

// One curve for each subject, with its name, even if it has no points.
std::vector<Curve> CurvesOf(const Comparison& comparison, const v1::CompareMetric& metric);

// Members "by", "subjects", "attributes", "equal_attributes" and "metrics" of the object that is
// open; `with_rows` says whether each metric has its rows.
void WriteComparison(JsonWriter& json, const Comparison& comparison, bool with_rows);

// The same members, for the help.
extern const char* const kComparisonJsonHelp;

// "+0.5 %", "-12.3 %", "0 %"; "" for NaN.
std::string PercentText(double fraction);
// "+0.25", "-3", "0"; "" for NaN.
std::string SignedText(double value);

}  // namespace tacho::ctl
