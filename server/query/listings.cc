#include "server/query/listings.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "server/grpc_status.h"
#include "server/query/selection.h"
#include "server/query/series_scan.h"

namespace tacho::server {
namespace {

// Series whose newest samples are read between two looks at the query's control.
constexpr size_t kSeriesAtOnce = 1000;

uint64_t SeriesLimit(uint64_t asked, uint64_t most) {
  return std::min(asked == 0 ? kDefaultListedSeries : asked, most);
}

// Collects entries and sends them in pieces.
template <typename Response>
class Pieces {
 public:
  explicit Pieces(Send<Response> send) : send_(send) {}

  Response* piece() { return &piece_; }
  // Call after adding an entry of so many bytes.
  absl::Status Added(size_t bytes) {
    bytes_ += bytes;
    return bytes_ < kListingPieceBytes ? absl::OkStatus() : Flush();
  }
  absl::Status Flush() {
    if (bytes_ == 0) return absl::OkStatus();
    absl::Status status = send_(piece_);
    piece_.Clear();
    bytes_ = 0;
    return status;
  }

 private:
  const Send<Response> send_;
  Response piece_;
  size_t bytes_ = 0;
};

storage::ReadOptions ReadOf(const AttemptCondition& attempts) {
  storage::ReadOptions read;
  read.attempt = attempts.only();
  return read;
}

// `newest` of a series if its attempt is allowed, else the newest sample of one that is.
absl::StatusOr<std::optional<storage::LatestSample>> NewestAllowed(
    const storage::Store& store, const storage::SeriesPtr& series,
    std::optional<storage::LatestSample> newest, const AttemptCondition& attempts,
    const QueryControl& control) {
  if (!newest.has_value() || attempts.Allows(newest->attempt)) return newest;
  std::optional<storage::LatestSample> found;
  SeriesScan scan(store.Read(series, ReadOf(attempts)), attempts, control);
  absl::Status status = scan.ForEach([&](const Sample& sample) {
    found =
        storage::LatestSample{series, sample.time_ns, sample.step, sample.attempt, sample.value};
  });
  if (!status.ok()) return status;
  return found;
}

absl::StatusOr<bool> HasAllowed(const storage::Store& store, const storage::SeriesPtr& series,
                                const AttemptCondition& attempts, const QueryControl& control) {
  if (attempts.any()) return true;
  storage::SampleBlock block;
  return SeriesScan(store.Read(series, ReadOf(attempts)), attempts, control).Next(&block);
}

void ToProto(const storage::Event& event, v1::RecordedEvent* proto) {
  v1::Source* source = proto->mutable_source();
  source->set_job(event.source.job);
  if (event.source.task.has_value()) source->set_task(*event.source.task);
  source->set_attempt(event.source.attempt);
  source->set_host(event.source.host);
  proto->set_time_unix_ns(event.time_ns);
  if (event.step.has_value()) proto->set_step(*event.step);
  proto->set_kind(event.kind);
  proto->set_message(event.message);
  proto->mutable_fields()->insert(event.fields.begin(), event.fields.end());
}

}  // namespace

absl::Status ListSeries(const storage::Store& store, const v1::ListSeriesRequest& request,
                        uint64_t max_series, const QueryControl& control,
                        Send<v1::ListSeriesResponse> send) {
  absl::StatusOr<Selection> selection = MakeSelection(request.selector());
  if (!selection.ok()) return selection.status();
  auto all = FindSelected(store, *selection, SeriesLimit(request.max_series(), max_series));
  if (!all.ok()) return all.status();
  Pieces<v1::ListSeriesResponse> pieces(send);
  for (const storage::SeriesPtr& series : *all) {
    if (absl::Status status = control.Check(); !status.ok()) return status;
    absl::StatusOr<bool> listed = HasAllowed(store, series, selection->attempts, control);
    if (!listed.ok()) return listed.status();
    if (!*listed) continue;
    v1::SeriesInfo* info = pieces.piece()->add_series();
    ToProto(*series, info);
    if (absl::Status status = pieces.Added(info->ByteSizeLong()); !status.ok()) return status;
  }
  return pieces.Flush();
}

absl::Status Latest(const storage::Store& store, const v1::LatestRequest& request,
                    uint64_t max_series, const QueryControl& control,
                    Send<v1::LatestResponse> send) {
  absl::StatusOr<Selection> selection = MakeSelection(request.selector());
  if (!selection.ok()) return selection.status();
  auto all = FindSelected(store, *selection, SeriesLimit(request.max_series(), max_series));
  if (!all.ok()) return all.status();
  Pieces<v1::LatestResponse> pieces(send);
  std::vector<storage::SeriesPtr> chunk;
  std::vector<std::optional<storage::LatestSample>> latest;
  for (size_t i = 0; i < all->size(); ++i) {
    if (i % kSeriesAtOnce == 0) {
      if (absl::Status status = control.Check(); !status.ok()) return status;
      const auto begin = all->begin() + static_cast<ptrdiff_t>(i);
      chunk.assign(begin, begin + static_cast<ptrdiff_t>(std::min(kSeriesAtOnce, all->size() - i)));
      auto read = store.LatestOf(chunk);
      if (!read.ok()) return read.status();
      latest = *std::move(read);
    }
    const storage::SeriesPtr& series = (*all)[i];
    auto newest = NewestAllowed(store, series, std::move(latest[i % kSeriesAtOnce]),
                                selection->attempts, control);
    if (!newest.ok()) return newest.status();
    if (!newest->has_value()) continue;
    v1::LatestSample* sample = pieces.piece()->add_samples();
    ToProto(*series, sample->mutable_series());
    sample->set_time_unix_ns((*newest)->time_ns);
    if ((*newest)->step != storage::kNoStep) sample->set_step((*newest)->step);
    sample->set_attempt((*newest)->attempt);
    sample->set_value((*newest)->value);
    if (absl::Status status = pieces.Added(sample->ByteSizeLong()); !status.ok()) return status;
  }
  return pieces.Flush();
}

absl::Status ListEvents(const storage::Store& store, const v1::ListEventsRequest& request,
                        const QueryControl& control, Send<v1::ListEventsResponse> send) {
  if (request.job().empty()) return InvalidFieldError("job", "is required");
  int64_t begin_ns = INT64_MIN;
  int64_t end_ns = INT64_MAX;
  if (request.has_time()) {
    absl::Status status = SetTimeRange(request.time(), &begin_ns, &end_ns);
    if (!status.ok()) return status;
  }
  auto events = store.Events(request.job(), begin_ns, end_ns);
  if (!events.ok()) return events.status();
  if (events->empty() && !store.FindJob(request.job()).has_value()) {
    return NoSuchJob(store, request.job());
  }
  Pieces<v1::ListEventsResponse> pieces(send);
  for (const storage::Event& event : *events) {
    if (!request.kind().empty() && event.kind != request.kind()) continue;
    if (absl::Status status = control.Check(); !status.ok()) return status;
    v1::RecordedEvent* proto = pieces.piece()->add_events();
    ToProto(event, proto);
    if (absl::Status status = pieces.Added(proto->ByteSizeLong()); !status.ok()) return status;
  }
  return pieces.Flush();
}

}  // namespace tacho::server
