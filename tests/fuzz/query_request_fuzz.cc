// Requests of whoever may query: what is accepted is within the limits, and its conditions can be
// tried on any series. The first byte says which request.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "google/protobuf/stubs/logging.h"
#include "server/query/compare/compare_plan.h"
#include "server/query/range/range_plan.h"
#include "server/query/read/selection.h"
#include "tacho/v1/query.pb.h"

namespace {

namespace query = tacho::server::query;

void Expect(bool holds) {
  if (!holds) std::abort();
}

void Try(const query::Selection& selection) {
  Expect(selection.selector.metrics.size() <= query::kMaxSelectorMetrics);
  Expect(selection.selector.matchers.size() <= query::kMaxSelectorMatchers);
  for (const auto& matcher : selection.selector.matchers) {
    for (const absl::string_view value : {"", "0", "host-1", "\xff\xfe", "caf\xc3\xa9"}) {
      const bool matches = matcher.MatchesValue(value);
      Expect(matches == matcher.MatchesValue(value));
    }
  }
}

void CheckRead(const tacho::storage::ReadOptions& read) { Expect(read.begin_ns <= read.end_ns); }

void CheckRange(const tacho::v1::RangeRequest& request) {
  constexpr query::RangeLimits kLimits = {.max_series = 1000, .max_samples = 100'000};
  const auto plan = query::MakeRangePlan(request, kLimits);
  if (!plan.ok()) return Expect(!plan.status().message().empty());
  Expect(plan->max_points <= query::kMaxPoints);
  Expect(plan->max_series <= kLimits.max_series && plan->max_samples <= kLimits.max_samples);
  Expect(plan->by.size() <= query::kMaxByLabels &&
         std::is_sorted(plan->by.begin(), plan->by.end()));
  Expect(!plan->aggregates() || (plan->quantile >= 0 && plan->quantile <= 1));
  CheckRead(plan->read);
  Try(plan->selection);
}

void CheckCompare(const tacho::v1::CompareRequest& request) {
  const auto plan = query::MakeComparePlan(request);
  if (!plan.ok()) return Expect(!plan.status().message().empty());
  Expect(plan->subjects.size() <= query::kMaxSubjects);
  Expect(plan->max_points <= query::kMaxComparedPoints);
  CheckRead(plan->read);
  for (const auto& subject : plan->subjects) Try(subject.selection);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const google::protobuf::LogSilencer no_lines_about_what_is_no_utf8;
  if (size == 0) return 0;
  const auto bytes = static_cast<int>(size - 1);
  tacho::v1::RangeRequest range;
  tacho::v1::CompareRequest compare;
  tacho::v1::Selector selector;
  switch (data[0] % 3) {
    case 0:
      if (range.ParseFromArray(data + 1, bytes)) CheckRange(range);
      break;
    case 1:
      if (compare.ParseFromArray(data + 1, bytes)) CheckCompare(compare);
      break;
    default:
      if (!selector.ParseFromArray(data + 1, bytes)) break;
      if (const auto selection = query::MakeSelection(selector); selection.ok()) Try(*selection);
  }
  return 0;
}
