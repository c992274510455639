#include "server/query/lists/event_listing.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/errors/grpc_status.h"
#include "server/query/read/message_packing.h"
#include "server/query/read/selection.h"

namespace tacho::server::query {
namespace {

constexpr int kMaxKinds = 1000;
// Events that are held to reverse their order, some hundred bytes each.
constexpr uint32_t kMaxNewest = 100'000;

// Chooses the events that a request asks for.
struct EventFilter {
  storage::ReadOptions range;
  absl::flat_hash_set<std::string> kinds;  // Empty: every one.
  AttemptCondition attempts;

  bool Holds(const storage::Event& event) const {
    if (!kinds.empty() && !kinds.contains(event.kind)) return false;
    const int64_t step = event.step.value_or(storage::kNoStep);
    if (range.first_step.has_value() && step < *range.first_step) return false;
    if (range.last_step.has_value() && step > *range.last_step) return false;
    return attempts.AllowsRow(event.source.attempt, step);
  }
};

absl::StatusOr<EventFilter> MakeFilter(const storage::Store& store,
                                       const v1::ListEventsRequest& request) {
  if (request.job().empty()) return errors::InvalidFieldError("job", "is required");
  if (request.kinds_size() > kMaxKinds) {
    return errors::InvalidFieldError("kinds", absl::StrCat("at most ", kMaxKinds, " kinds"));
  }
  if (request.newest() > kMaxNewest) {
    return errors::InvalidFieldError("newest", absl::StrCat("is at most ", kMaxNewest));
  }
  EventFilter filter;
  auto range = ReadOptionsOf(request);
  if (!range.ok()) return range.status();
  filter.range = *std::move(range);
  filter.kinds.insert(request.kinds().begin(), request.kinds().end());
  if (!request.kind().empty()) filter.kinds.insert(request.kind());
  Selection selection;
  selection.selector.job = request.job();
  TACHO_RETURN_IF_ERROR(ChooseAttempts(store, request.attempts(), &selection));
  filter.attempts = std::move(selection.attempts);
  return filter;
}

// Calls take(event) for those that the filter lets pass, until it fails.
template <typename Take>
absl::Status ForEachEvent(const storage::Store& store, const std::string& job,
                          const EventFilter& filter, storage::Store::EventOrder order,
                          const QueryControl& control, const Take& take) {
  absl::Status stopped;
  absl::Status status = store.VisitEvents(job, filter.range.begin_ns, filter.range.end_ns, order,
                                          [&](storage::Event event) {
                                            stopped = control.Check();
                                            if (stopped.ok() && filter.Holds(event)) {
                                              stopped = take(std::move(event));
                                            }
                                            return stopped.ok();
                                          });
  return stopped.ok() ? status : stopped;
}

// The newest ones that the filter lets pass, ascending.
absl::StatusOr<std::vector<storage::Event>> Newest(const storage::Store& store,
                                                   const v1::ListEventsRequest& request,
                                                   const EventFilter& filter,
                                                   const QueryControl& control) {
  std::vector<storage::Event> events;
  const absl::Status enough = absl::OutOfRangeError("enough");
  absl::Status status =
      ForEachEvent(store, request.job(), filter, storage::Store::EventOrder::kNewestFirst, control,
                   [&](storage::Event event) {
                     events.push_back(std::move(event));
                     return events.size() < request.newest() ? absl::OkStatus() : enough;
                   });
  if (!status.ok() && status != enough) return status;
  std::reverse(events.begin(), events.end());
  return events;
}

}  // namespace

absl::Status ListEvents(const storage::Store& store, const v1::ListEventsRequest& request,
                        const QueryControl& control, Send<v1::ListEventsResponse> send) {
  TACHO_ASSIGN_OR_RETURN(const auto filter, MakeFilter(store, request));
  MessagePacking<v1::ListEventsResponse> packing(/*packed=*/true, send);
  bool any = false;
  const auto add = [&](const storage::Event& event) {
    any = true;
    v1::RecordedEvent* proto = packing.message()->add_events();
    ToProto(event, proto);
    return packing.Added(proto->ByteSizeLong());
  };
  if (request.newest() > 0) {
    TACHO_ASSIGN_OR_RETURN(const auto events, Newest(store, request, filter, control));
    for (const storage::Event& event : events) {
      TACHO_RETURN_IF_ERROR(add(event));
    }
  } else {
    TACHO_RETURN_IF_ERROR(ForEachEvent(store, request.job(), filter,
                                       storage::Store::EventOrder::kOldestFirst, control, add));
  }
  // A job may have been made by an event alone.
  if (!any && !store.FindJob(request.job()).has_value()) return NoSuchJob(store, request.job());
  return packing.Flush();
}

}  // namespace tacho::server::query
