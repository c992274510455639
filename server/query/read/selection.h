// Checks what a request selects and puts it in the store's words.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/query/read/attempts.h"
#include "server/query/read/host_part.h"
#include "storage/index/matcher.h"
#include "storage/model/event.h"
#include "storage/model/series_reader.h"
#include "storage/store.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

// The most metrics, and the most matchers, of a selector: a request with more is a mistake, and
// each costs a look at every series.
inline constexpr int kMaxSelectorMetrics = 10'000;
inline constexpr int kMaxSelectorMatchers = 100;

struct Selection {
  storage::Selector selector;  // Without the matchers on "attempt".
  AttemptCondition attempts;
  HostPart part;
};

// `field` names the place of the matcher in the request.
//   INVALID_ARGUMENT  the text names the field.
absl::StatusOr<storage::Matcher> MakeMatcher(const v1::Matcher& matcher, absl::string_view field);

//   INVALID_ARGUMENT  the text names the field.
absl::StatusOr<Selection> MakeSelection(const v1::Selector& selector);

// Narrows the selection to the attempts that `choice` stands for, as of the job's rows now. An
// unknown job has no attempts.
//   INVALID_ARGUMENT  `choice` is not known; the text names the field "attempts".
//   others            from the store.
absl::Status ChooseAttempts(const storage::Store& store, v1::Attempts choice, Selection* selection);

// The condition on time in storage's form.
//   INVALID_ARGUMENT  the end is not after the beginning.
absl::Status SetTimeRange(const v1::TimeRange& range, int64_t* begin_ns, int64_t* end_ns);

// The series that are selected, by (metric, task, host, labels).
//   NOT_FOUND           no such job; the text names the nearest names.
//   RESOURCE_EXHAUSTED  more than `limit` match; the text says how to narrow.
absl::StatusOr<std::vector<storage::SeriesPtr>> FindSelected(const storage::Store& store,
                                                             const Selection& selection,
                                                             uint64_t limit);

// NOT_FOUND for a job, with the nearest names that exist.
absl::Status NoSuchJob(const storage::Store& store, absl::string_view job);

void ToProto(const storage::Metric& metric, v1::Metric* proto);
void ToProto(const storage::Series& series, v1::SeriesInfo* proto);

// The conditions on time and steps in storage's form; null is no condition.
//   INVALID_ARGUMENT  an end lies before its beginning; the text names the field.
absl::StatusOr<storage::ReadOptions> MakeReadOptions(const v1::TimeRange* time,
                                                     const v1::StepRange* steps);

// The same for a request that has the fields `time` and `steps`.
template <typename Request>
absl::StatusOr<storage::ReadOptions> ReadOptionsOf(const Request& request) {
  return MakeReadOptions(request.has_time() ? &request.time() : nullptr,
                         request.has_steps() ? &request.steps() : nullptr);
}

void ToProto(const storage::Event& event, v1::RecordedEvent* proto);

}  // namespace tacho::server::query
