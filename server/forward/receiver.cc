// A round reads as much as fits into one request a connection, by the series, and waits for all of
// them before the cursor moves. So the cursor is one number, and a series never overtakes itself.
#include "server/forward/receiver.h"

#include <algorithm>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "proto/base/background_thread.h"
#include "proto/base/clock.h"
#include "proto/base/stale_marker.h"
#include "proto/base/status_macros.h"
#include "proto/base/timed_wait.h"
#include "server/forward/receiver_config.h"
#include "server/metrics/metric_families.h"
#include "server/promread/read_time.h"

namespace tacho::server::forward {
namespace {

// Of an answer's text, in the log.
constexpr size_t kMaxAnswerText = 300;
// How often the time of a receiver that lacks nothing is written.
constexpr int64_t kCompleteEveryNs = 10'000'000'000;
// A receiver that is further behind is not told what has ended: samples may come first.
constexpr absl::Duration kNearlyComplete = absl::Seconds(10);

std::unique_ptr<Sender> SenderOf(const ReceiverOptions& options) {
  SenderOptions way = {options.config, options.now, options.version, options.log};
  return SpeaksOtlp(options.config) ? NewOtlpSender(std::move(way))
                                    : NewRemoteWriteSender(std::move(way));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Receiver>> Receiver::Create(ReceiverOptions options) {
  TACHO_RETURN_IF_ERROR(CheckForward(options.config, options.key));
  TACHO_ASSIGN_OR_RETURN(auto naming, SeriesNaming::Create(options.config, options.key));
  TACHO_ASSIGN_OR_RETURN(auto aggregates, JobAggregates::Create(options.config, options.key));
  std::unique_ptr<storage::ForwardLog> log;
  if (options.config.series()) {
    auto opened = storage::ForwardLog::Open(options.store, options.config.name(),
                                            options.config.start_at() == "oldest"
                                                ? storage::ForwardLog::Start::kOldest
                                                : storage::ForwardLog::Start::kNow);
    if (!opened.ok()) {
      return absl::Status(opened.status().code(),
                          absl::StrCat(options.key, ": ", opened.status().message()));
    }
    log = *std::move(opened);
  }
  return std::unique_ptr<Receiver>(
      new Receiver(std::move(options), std::move(naming), std::move(log), std::move(aggregates)));
}

Receiver::Receiver(ReceiverOptions options, std::shared_ptr<const SeriesNaming> naming,
                   std::unique_ptr<storage::ForwardLog> log, JobAggregates aggregates)
    : options_(std::move(options)),
      log_(std::move(log)),
      texts_(std::move(naming), options_.shows),
      batches_(std::max<uint32_t>(1, options_.config.connections())),
      aggregates_(std::move(aggregates)),
      otlp_(SpeaksOtlp(options_.config)),
      sender_(SenderOf(options_)),
      complete_ns_(log_ == nullptr ? 0 : log_->cursor().complete_ns),
      sent_(metrics::NewCounter(options_.registry, "tacho_forward_samples_total",
                                {{"receiver", name()}})),
      refused_(metrics::NewCounter(options_.registry, "tacho_forward_samples_left_out_total",
                                   {{"receiver", name()}})),
      damaged_columns_(metrics::NewCounter(options_.registry, "tacho_forward_damaged_columns_total",
                                           {{"receiver", name()}})),
      bytes_(metrics::NewCounter(options_.registry, "tacho_forward_bytes_total",
                                 {{"receiver", name()}})),
      retries_(metrics::NewCounter(options_.registry, "tacho_forward_retries_total",
                                   {{"receiver", name()}})),
      missed_(metrics::NewCounter(options_.registry, "tacho_forward_aggregates_missed_total",
                                  {{"receiver", name()}})),
      told_ends_(metrics::NewCounter(options_.registry, "tacho_forward_series_ended_total",
                                     {{"receiver", name()}})),
      requests_(metrics::CounterFamily(options_.registry, "tacho_forward_requests_total")) {}

void Receiver::Start() {
  thread_ = std::thread([this] {
    BecomeBackgroundThread("forward");
    Run();
  });
}

void Receiver::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

bool Receiver::Pause(absl::Duration time) {
  absl::MutexLock lock(&mutex_);
  return !AwaitFor(&mutex_, absl::Condition(&stopping_), time);
}

void Receiver::Run() {
  aggregates_due_ = MonotonicNow();
  ends_due_ = MonotonicNow() + options_.ends_every;
  if (log_ != nullptr) ends_.Begin(*options_.store, &texts_);
  while (Pause(Round())) {
  }
}

absl::Duration Receiver::Lag() const {
  const int64_t since = complete_ns_;
  if (since == 0) return absl::ZeroDuration();
  return std::max(options_.now() - absl::FromUnixNanos(since), absl::ZeroDuration());
}

bool Receiver::Wants(const storage::LayoutPtr& layout, size_t column) {
  return texts_.Of(layout)[column] != nullptr;
}

void Receiver::Take(const storage::LayoutPtr& layout, size_t column, std::span<const int64_t> times,
                    std::span<const double> values) {
  const SeriesTextPtr& text = texts_.Of(layout)[column];
  taken_.resize(times.size());
  size_t size = 0;
  int64_t newest_ns = INT64_MIN;
  for (size_t i = 0; i < times.size(); ++i) {
    // In a row a stale marker says that the series has no value there, not that it has ended.
    if (IsStaleMarker(values[i])) continue;
    taken_[size++] = {TimeOf(times[i]), values[i]};
    newest_ns = std::max(newest_ns, times[i]);
  }
  if (size == 0) return;
  taken_.resize(size);
  ends_.Sent(layout, column, text, newest_ns);
  batches_[text->hash % batches_.size()].Add(text, taken_);
}

absl::Duration Receiver::Round() {
  SendAggregates();
  if (log_ == nullptr) return options_.poll;
  const absl::Time began = options_.now();
  for (WriteBatch& batch : batches_) batch.Clear();
  const auto more = log_->Next(size_t{options_.config.max_samples()} * batches_.size(), this);
  if (!more.ok()) {
    options_.log.Limited(log::Level::kError, "stored samples cannot be read for a receiver",
                         {{"receiver", name()}, {"why", more.status().message()}});
    return absl::Seconds(5);
  }
  damaged_columns_.Increment(static_cast<double>(log_->damaged_columns() - damaged_));
  damaged_ = log_->damaged_columns();
  if (*more) {
    if (complete_ns_ == 0) complete_ns_ = absl::ToUnixNanos(began);
    if (!SendAll()) return absl::ZeroDuration();
    // Something new may always have come meanwhile; what counts is what was there.
    if (log_->cursor().until == 0 && log_->cursor().position >= goal_) {
      complete_ns_ = std::max<int64_t>(complete_ns_, goal_ns_);
      goal_ = log_->end();
      goal_ns_ = absl::ToUnixNanos(options_.now());
    }
    CommitCursor();
    SendEnds();
    return absl::ZeroDuration();
  }
  complete_ns_ = 0;
  goal_ = 0;
  goal_ns_ = 0;
  if (absl::ToUnixNanos(began) - log_->cursor().complete_ns > kCompleteEveryNs) CommitCursor();
  SendEnds();
  return options_.poll;
}

void Receiver::CommitCursor() {
  const int64_t complete = complete_ns_;
  const absl::Status status =
      log_->Commit(complete == 0 ? absl::ToUnixNanos(options_.now()) : complete);
  if (!status.ok()) {
    options_.log.Limited(log::Level::kWarn, "how far a receiver is could not be written",
                         {{"receiver", name()}, {"why", status.message()}});
  }
}

bool Receiver::SendAll() {
  std::vector<std::thread> others;
  std::atomic<bool> all = true;
  for (size_t i = 1; i < batches_.size(); ++i) {
    batches_[i].Finish();
    if (batches_[i].samples() == 0) continue;
    others.emplace_back([this, i, &all] {
      if (!Send(batches_[i], Patience::kUntilTaken)) all = false;
    });
  }
  batches_[0].Finish();
  if (batches_[0].samples() > 0 && !Send(batches_[0], Patience::kUntilTaken)) all = false;
  for (std::thread& other : others) other.join();
  return all;
}

int64_t Receiver::TimeOf(int64_t time_ns) const {
  return otlp_ ? time_ns : promread::MsOf(time_ns);
}

bool Receiver::Send(const WriteBatch& batch, Patience patience) {
  absl::BitGen random;
  absl::Duration pause = options_.first_pause;
  const absl::Duration longest = absl::Nanoseconds(options_.config.max_backoff());
  PackedBatch packed;
  for (int number = 1;; ++number) {
    const Answer answer = sender_->Send(batch, number, &packed);
    if (!answer.code.empty()) {
      requests_.Add({{"receiver", name()}, {"code", answer.code}}).Increment();
      bytes_.Increment(static_cast<double>(answer.bytes));
    }
    sent_.Increment(static_cast<double>(answer.verdict.written));
    switch (answer.verdict.step) {
      case NextStep::kGoOn:
        return true;
      case NextStep::kLeaveOut:
        LeaveOut(batch, batch.samples() - answer.verdict.written, answer);
        return true;
      case NextStep::kUseFirst:
        continue;
      case NextStep::kSplit:
        if (batch.samples() > 1) return SendHalves(batch, answer, patience);
        LeaveOut(batch, 1, answer);
        return true;
      case NextStep::kTryLater:
        break;
    }
    const bool once = patience == Patience::kOnce;
    options_.log.Limited(log::Level::kWarn,
                         once ? "a receiver takes nothing now, and lacks the aggregates of a moment"
                              : "a receiver takes nothing now; what it lacks comes later",
                         {{"receiver", name()},
                          {"code", answer.code},
                          {"why", answer.why.substr(0, kMaxAnswerText)}});
    if (once) return false;
    retries_.Increment();
    // Half of it by chance, so that collectors do not come back together.
    absl::Duration wait = pause * absl::Uniform(random, 0.5, 1.0);
    if (answer.verdict.pause) wait = std::max(wait, *answer.verdict.pause);
    if (!Pause(wait)) return false;
    pause = std::min(pause * 2, longest);
  }
}

bool Receiver::SendHalves(const WriteBatch& batch, const Answer& answer, Patience patience) {
  options_.log.Limited(
      log::Level::kWarn,
      "a request is too large for a receiver and goes in two; a lower max_samples spares that",
      {{"receiver", name()},
       {"code", answer.code},
       {"samples", absl::StrCat(batch.samples())},
       {"why", answer.why.substr(0, kMaxAnswerText)}});
  const auto halves = batch.Halves();
  return Send(halves.first, patience) && Send(halves.second, patience);
}

void Receiver::SendEnds() {
  if (MonotonicNow() < ends_due_ || Lag() > kNearlyComplete) return;
  ends_due_ = MonotonicNow() + options_.ends_every;
  const auto ends = ends_.Find(*options_.store, options_.now(), options_.staleness);
  const size_t most = size_t{options_.config.max_samples()} * batches_.size();
  for (size_t begin = 0; begin < ends.size(); begin += most) {
    for (WriteBatch& batch : batches_) batch.Clear();
    const size_t end = std::min(ends.size(), begin + most);
    for (size_t i = begin; i < end; ++i) {
      const WriteSample marker = {TimeOf(ends[i].time_ns), StaleMarker()};
      batches_[ends[i].text->hash % batches_.size()].Add(ends[i].text, {&marker, 1});
    }
    if (!SendAll()) return;
    told_ends_.Increment(static_cast<double>(end - begin));
  }
}

void Receiver::SendAggregates() {
  const absl::Duration interval = absl::Nanoseconds(options_.config.aggregates().interval());
  const absl::Time now = MonotonicNow();
  if (interval == absl::ZeroDuration() || now < aggregates_due_) return;
  // The series held the thread up for so many evaluations: the receiver was away, or is slow.
  const int64_t late = (now - aggregates_due_) / interval;
  missed_.Increment(static_cast<double>(late));
  aggregates_due_ += (late + 1) * interval;
  const absl::Time at = options_.now();
  auto samples = aggregates_.Read(options_.page());
  if (!samples.ok()) {
    options_.log.Limited(log::Level::kError, "the aggregates of jobs cannot be read",
                         {{"receiver", name()}, {"why", samples.status().message()}});
    missed_.Increment();
    return;
  }
  if (!SendAggregates(*std::move(samples), at)) missed_.Increment();
}

bool Receiver::SendAggregates(std::vector<AggregateSample> samples, absl::Time at) {
  absl::flat_hash_map<size_t, SeriesTextPtr> gone = std::move(aggregates_shown_);
  aggregates_shown_.clear();
  for (const AggregateSample& sample : samples) {
    gone.erase(sample.text->hash);
    aggregates_shown_[sample.text->hash] = sample.text;
  }
  for (const auto& [hash, text] : gone) samples.push_back({text, StaleMarker()});
  WriteBatch batch;
  for (size_t i = 0; i < samples.size(); ++i) {
    const WriteSample sample = {TimeOf(absl::ToUnixNanos(at)), samples[i].value};
    batch.Add(samples[i].text, {&sample, 1});
    if (i + 1 < samples.size() && batch.samples() < options_.config.max_samples()) continue;
    batch.Finish();
    if (!Send(batch, Patience::kOnce)) return false;
    batch.Clear();
  }
  told_ends_.Increment(static_cast<double>(gone.size()));
  return true;
}

void Receiver::LeaveOut(const WriteBatch& batch, size_t count, const Answer& answer) {
  refused_.Increment(static_cast<double>(count));
  options_.log.Limited(log::Level::kError, "a receiver refuses samples for good; they are left out",
                       {{"receiver", name()},
                        {"code", answer.code},
                        {"samples", absl::StrCat(count)},
                        {"example", batch.Example()},
                        {"why", answer.why.substr(0, kMaxAnswerText)}});
}

}  // namespace tacho::server::forward
