// A watch subscribes and opens its view at one commit, so that history and what follows meet
// without a gap. History needs a worker; the live part does not, as one pump serves all watches and
// none of them may make it wait.
#include "server/query/watch/watch_hub.h"

#include <pthread.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"
#include "server/query/range/pieces.h"
#include "server/query/read/query_control.h"
#include "server/query/read/selection.h"
#include "server/query/read/series_scan.h"
#include "server/query/watch/watch_rows.h"
#include "storage/store.h"

namespace tacho::server::query {
namespace {

constexpr uint64_t kBacklogBytes = 4u << 20;
// One commit to a job under load must fit.
constexpr uint64_t kChangeBytes = 16u << 20;

uint64_t BytesOf(const storage::Change& change) {
  return change.bytes == nullptr ? change.event->message.size() : change.bytes->size();
}

absl::Status TooSlow(bool live) {
  if (live) {
    return absl::ResourceExhaustedError(
        "the client reads more slowly than samples come: watch fewer series, or watch again with "
        "begin_unix_ns set to the newest time that it has");
  }
  return absl::ResourceExhaustedError(
      "more came up while history was sent than is kept for a watch: set begin_unix_ns later or "
      "watch fewer series");
}

using SendResponse = absl::FunctionRef<absl::Status(const v1::WatchResponse&)>;

absl::Status SendSeries(const storage::SeriesPtr& series, SeriesScan scan, SendResponse send,
                        SeriesNumbers* numbers) {
  storage::Chunk chunk;
  for (;;) {
    TACHO_ASSIGN_OR_RETURN(const auto more, scan.Next({}, &chunk));
    if (!more) return absl::OkStatus();
    const storage::SampleView& samples = chunk.samples();
    const SeriesNumbers::Number number = numbers->Of(series->id);
    v1::WatchResponse response;
    if (number.is_new) {
      FillSeries(*series, number.index, &response);
      TACHO_RETURN_IF_ERROR(send(response));
    }
    for (size_t begin = 0; begin < samples.size(); begin += kSamplesPerPiece) {
      const size_t end = std::min(samples.size(), begin + kSamplesPerPiece);
      response.Clear();
      response.mutable_samples()->set_index(number.index);
      FillPoints(samples, begin, end, response.mutable_samples()->mutable_points());
      TACHO_RETURN_IF_ERROR(send(response));
    }
  }
}

// Sends the events, if the plan wants them, and the series with samples from plan.begin_ns on.
// `view` was opened with the subscription. It is null if the plan asks for no history: then this
// only checks the number of series. Each series that is sent gets its number in *numbers.
//   RESOURCE_EXHAUSTED  more series match than the plan allows.
//   others              from the store, control.Check() and `send`.
absl::Status SendHistory(const storage::Store& store, const WatchPlan& plan, storage::JobView* view,
                         const QueryControl& control, SendResponse send, SeriesNumbers* numbers) {
  auto series = store.FindSeries(plan.selection.selector, plan.max_series);
  if (absl::IsResourceExhausted(series.status())) return TooManyWatched(plan);
  if (!series.ok()) return series.status();
  KeepPart(plan.selection.part, &*series);
  if (view == nullptr) return absl::OkStatus();
  TACHO_CHECK(plan.begin_ns.has_value());
  if (plan.events) {
    TACHO_ASSIGN_OR_RETURN(const auto events, view->Events(*plan.begin_ns, INT64_MAX));
    for (const storage::Event& event : events) {
      v1::WatchResponse response;
      ToProto(event, response.mutable_event());
      TACHO_RETURN_IF_ERROR(send(response));
    }
  }
  storage::ReadOptions read;
  read.begin_ns = *plan.begin_ns;
  read.attempt = plan.selection.attempts.only();
  for (const storage::SeriesPtr& one : *series) {
    SeriesScan scan(view->Read(one, read), plan.selection.attempts, control);
    TACHO_RETURN_IF_ERROR(SendSeries(one, std::move(scan), send, numbers));
  }
  return absl::OkStatus();
}

}  // namespace

struct WatchHub::Watch {
  Watch(const WatchPlan& plan_in, std::function<absl::Status()> recheck_in,
        std::shared_ptr<WatchStream> stream_in)
      : plan(plan_in),
        recheck(std::move(recheck_in)),
        stream(std::move(stream_in)),
        wanted(plan_in.selection),
        backlog(plan_in.max_series) {}

  const WatchPlan plan;
  const std::function<absl::Status()> recheck;
  const std::shared_ptr<WatchStream> stream;
  std::unique_ptr<storage::Subscription> subscription;  // Set before the pump sees the watch.
  // The pump's.
  std::deque<storage::Change> changes;
  uint64_t change_bytes = 0;
  WantedColumns wanted;
  WatchBacklog backlog;
  uint64_t samples_counted = 0;
  bool live = false;
  absl::Time last_sent;
  absl::Time next_recheck;
};

WatchHub::WatchHub(WatchHubOptions options)
    : options_(std::move(options)), bell_(std::make_shared<WatchBell>()) {}

void WatchHub::Begin(const WatchPlan& plan, std::function<absl::Status()> recheck,
                     const std::shared_ptr<WatchStream>& stream) {
  const auto watch = std::make_shared<Watch>(plan, std::move(recheck), stream);
  if (absl::Status status = SendHistoryOf(plan, watch); !status.ok()) stream->End(status);
}

absl::Status WatchHub::SendHistoryOf(const WatchPlan& plan, const WatchPtr& watch) {
  std::unique_ptr<storage::JobView> view;
  watch->subscription = options_.store->Subscribe({.job = plan.selection.selector.job,
                                                   .buffer_bytes = kChangeBytes,
                                                   .on_change = [bell = bell_] { bell->Ring(); }},
                                                  plan.begin_ns.has_value() ? &view : nullptr);
  // From here on the pump empties the subscription's buffer, so that what is not wanted of the job
  // does not fill it.
  if (!Follow(watch)) return errors::Draining();
  GoneLive gone_live = {watch, SeriesNumbers()};
  const auto send = [&](const v1::WatchResponse& message) { return watch->stream->Write(message); };
  absl::Status status = SendHistory(*options_.store, plan, view.get(), watch->stream->control(),
                                    send, &gone_live.numbers);
  if (!status.ok()) return status;
  v1::WatchResponse mark;
  mark.mutable_live()->set_clock_unix_ns(absl::ToUnixNanos(options_.now()));
  if (status = send(mark); !status.ok()) return status;
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return errors::Draining();
    gone_live_.push_back(std::move(gone_live));
  }
  bell_->Ring();
  return absl::OkStatus();
}

bool WatchHub::Follow(WatchPtr watch) {
  absl::MutexLock lock(&mutex_);
  if (closed_) return false;
  followed_.push_back(std::move(watch));
  if (!pump_.joinable()) pump_ = std::thread([this] { Run(); });
  return true;
}

void WatchHub::Close() {
  std::thread pump;
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    pump.swap(pump_);
  }
  bell_->Ring();
  if (pump.joinable()) pump.join();
}

void WatchHub::Run() {
  pthread_setname_np(pthread_self(), "watches");
  for (;;) {
    const bool closing = TakeIn();
    for (const WatchPtr& watch : watches_) {
      if (closing) watch->stream->End(errors::Draining());
      Serve(watch.get());
    }
    Clear();
    if (closing) return;
    bell_->Wait(watches_.empty() && ending_.empty() ? absl::InfiniteDuration() : kWatchTick);
  }
}

bool WatchHub::TakeIn() {
  std::vector<GoneLive> gone_live;
  bool closing = false;
  {
    absl::MutexLock lock(&mutex_);
    watches_.insert(watches_.end(), followed_.begin(), followed_.end());
    followed_.clear();
    gone_live.swap(gone_live_);
    closing = closed_;
  }
  for (GoneLive& one : gone_live) {
    one.watch->backlog.SetNumbers(std::move(one.numbers));
    one.watch->live = true;
    one.watch->last_sent = MonotonicNow();
  }
  return closing;
}

absl::Status WatchHub::Collect(Watch* watch) {
  std::vector<storage::Change> taken;
  if (!watch->subscription->Take(&taken).ok()) return TooSlow(watch->live);
  for (storage::Change& change : taken) {
    watch->change_bytes += BytesOf(change);
    watch->changes.push_back(std::move(change));
  }
  while (!watch->changes.empty() && watch->backlog.bytes() < kBacklogBytes) {
    const storage::Change& change = watch->changes.front();
    if (change.event != nullptr) {
      if (watch->plan.events) watch->backlog.Add({.event = change.event});
    } else if (const auto columns = watch->wanted.Of(*change.layout); !columns->empty()) {
      watch->backlog.Add(SelectRows(change, columns));
    }
    watch->change_bytes -= BytesOf(change);
    watch->changes.pop_front();
  }
  if (watch->change_bytes > kChangeBytes) return TooSlow(watch->live);
  return absl::OkStatus();
}

absl::StatusOr<bool> WatchHub::Send(Watch* watch) {
  v1::WatchResponse message;
  while (watch->stream->HasRoom()) {
    auto more = watch->backlog.Next(&message);
    if (absl::IsResourceExhausted(more.status())) return TooManyWatched(watch->plan);
    if (!more.ok() || !*more) return true;
    watch->stream->Post(std::move(message));
    watch->last_sent = MonotonicNow();
  }
  return false;
}

void WatchHub::Serve(Watch* watch) {
  absl::Status status;
  while (!watch->stream->ended()) {
    status = Collect(watch);
    if (!status.ok() || !watch->live || watch->backlog.bytes() == 0) break;
    const auto all_sent = Send(watch);
    status = all_sent.status();
    if (!status.ok() || !*all_sent) break;
  }
  if (const uint64_t samples = watch->backlog.samples() - watch->samples_counted; samples > 0) {
    watch->samples_counted += samples;
    watch->stream->control().CountRead(samples);
    if (options_.on_samples != nullptr) options_.on_samples(samples);
  }
  if (status.ok()) status = Recheck(watch);
  if (!status.ok()) return watch->stream->End(status);
  SayAlive(watch);
}

absl::Status WatchHub::Recheck(Watch* watch) const {
  const absl::Time now = MonotonicNow();
  if (watch->recheck == nullptr || now < watch->next_recheck) return absl::OkStatus();
  watch->next_recheck = now + kWatchRecheck;
  return watch->recheck();
}

void WatchHub::SayAlive(Watch* watch) const {
  const absl::Time now = MonotonicNow();
  if (!watch->live || now - watch->last_sent < options_.alive_after) return;
  v1::WatchResponse mark;
  mark.mutable_alive()->set_clock_unix_ns(absl::ToUnixNanos(options_.now()));
  watch->last_sent = now;
  if (watch->stream->HasRoom()) watch->stream->Post(std::move(mark));
}

void WatchHub::Clear() {
  const absl::Time now = MonotonicNow();
  std::erase_if(watches_, [&](const WatchPtr& watch) {
    if (!watch->stream->ended()) return false;
    if (!watch->stream->finished()) ending_.push_back({watch->stream, now + kWatchGrace});
    return true;
  });
  std::erase_if(ending_, [&](const Ending& ending) {
    if (ending.stream->finished()) return true;
    if (now < ending.cut_off) return false;
    ending.stream->CutOff();
    return true;
  });
}

}  // namespace tacho::server::query
