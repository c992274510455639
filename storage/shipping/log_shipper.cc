// One thread reads and cuts; the senders' threads store. What is shipped is the end of the last
// segment that is stored with all before it, or, if nothing is on its way, of what was read.
#include "storage/shipping/log_shipper.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "proto/base/timed_wait.h"
#include "storage/shard/segment.h"

namespace tacho::storage {
namespace {

// A write is never cut, and no write has nearly as much.
constexpr size_t kMaxRecords = kMaxSegmentPayload / 2;

}  // namespace

LogShipper::LogShipper(LogShipperOptions options)
    : options_(std::move(options)),
      tail_(options_.db, options_.families, options_.after),
      cut_after_(options_.after),
      shipped_(options_.after),
      read_(options_.after) {
  TACHO_CHECK(options_.db != nullptr && options_.log != nullptr);
  SegmentSenders::Options senders;
  senders.on_progress = [this] { NoteStored(); };
  senders_ = std::make_unique<SegmentSenders>(options_.log, std::move(senders));
  thread_ = std::thread([this] { Run(); });
}

void LogShipper::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  senders_->Stop();  // Closes the log, which ends the wait for its window.
  if (thread_.joinable()) thread_.join();
}

uint64_t LogShipper::shipped() const {
  absl::MutexLock lock(&mutex_);
  return shipped_;
}

uint64_t LogShipper::kept_bytes() const {
  absl::MutexLock lock(&mutex_);
  return kept_bytes_;
}

absl::Status LogShipper::AwaitShipped(uint64_t sequence, absl::Duration patience) {
  absl::MutexLock lock(&mutex_);
  wanted_ = std::max(wanted_, sequence);
  const auto settled = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return shipped_ >= sequence || !ended_.ok() || stopping_;
  };
  AwaitFor(&mutex_, absl::Condition(&settled), patience);
  if (shipped_ >= sequence) return absl::OkStatus();
  if (!ended_.ok()) return ended_;
  if (stopping_) return absl::CancelledError("the store is being closed");
  return absl::DeadlineExceededError("the log did not reach the bucket in time");
}

uint64_t LogShipper::FirstNeeded(uint64_t position, uint64_t sequence) const {
  absl::MutexLock lock(&mutex_);
  TACHO_CHECK(sequence <= shipped_);
  for (const std::deque<Cut>* cuts : {&stored_, &unstored_}) {
    for (const Cut& cut : *cuts) {
      if (cut.through > sequence || cut.last_position >= position) return cut.number;
    }
  }
  return newest_ + 1;
}

void LogShipper::Forget(uint64_t number) {
  absl::MutexLock lock(&mutex_);
  while (!stored_.empty() && stored_.front().number < number) {
    kept_bytes_ -= stored_.front().bytes;
    stored_.pop_front();
  }
}

void LogShipper::Run() {
  pthread_setname_np(pthread_self(), "log shipper");
  absl::Time begun = MonotonicNow();
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      const auto due = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || wanted_ > read_;
      };
      AwaitFor(&mutex_, absl::Condition(&due), begun + options_.interval - MonotonicNow());
      if (stopping_) return;
    }
    begun = MonotonicNow();
    absl::StatusOr<bool> more = true;
    while (more.ok() && *more) more = Ship();
    if (!more.ok()) return NoteEnded(more.status());
    // What the local disk keeps for us is let go as it reaches the bucket.
    const uint64_t through = shipped();
    if (through == std::exchange(logs_deleted_, through)) continue;
    tail_.DeleteLogsThrough(through).IgnoreError();  // It is tried again with the next segment.
  }
}

absl::StatusOr<bool> LogShipper::Ship() {
  TACHO_ASSIGN_OR_RETURN(const LogTail::Piece piece, tail_.Read(options_.segment_bytes));
  if (!piece.records.empty()) TACHO_RETURN_IF_ERROR(Append(piece));
  NotePassed(piece.through);
  return piece.more;
}

absl::Status LogShipper::Append(const LogTail::Piece& piece) {
  std::vector<std::string> records;
  Cut cut;
  for (size_t i = 0; i < piece.records.size(); ++i) {
    const LogTail::Record& record = piece.records[i];
    records.push_back(record.bytes);
    cut.bytes += record.bytes.size();
    cut.through = record.last;
    cut.last_position = std::max(cut.last_position, record.last_position);
    const bool is_last = i + 1 == piece.records.size();
    if (!is_last && cut.bytes + piece.records[i + 1].bytes.size() <= kMaxRecords) continue;
    TACHO_RETURN_IF_ERROR(AppendOne(records, cut, record.last));
    records.clear();
    cut = Cut();
  }
  return absl::OkStatus();
}

absl::Status LogShipper::AppendOne(const std::vector<std::string>& records, Cut cut,
                                   uint64_t last) {
  for (;;) {
    const uint64_t before = options_.log->stored();
    const auto number = options_.log->Append(records, cut_after_, last);
    if (number.ok()) {
      cut_after_ = last;
      cut.number = *number;
      {
        absl::MutexLock lock(&mutex_);
        unstored_.push_back(cut);
        newest_ = *number;
      }
      NoteStored();  // A sender may have stored it before it was noted here.
      return absl::OkStatus();
    }
    if (!absl::IsResourceExhausted(number.status())) return number.status();
    TACHO_RETURN_IF_ERROR(options_.log->AwaitStoredAbove(before).status());
  }
}

void LogShipper::NotePassed(uint64_t through) {
  {
    absl::MutexLock lock(&mutex_);
    read_ = std::max(read_, through);
    if (!unstored_.empty()) {
      unstored_.back().through = through;
      return;
    }
    if (shipped_ >= through) return;
    shipped_ = through;
  }
  if (options_.on_shipped) options_.on_shipped(through);
}

void LogShipper::NoteStored() {
  const uint64_t stored = options_.log->stored();
  uint64_t shipped = 0;
  {
    absl::MutexLock lock(&mutex_);
    while (!unstored_.empty() && unstored_.front().number <= stored) {
      shipped = unstored_.front().through;
      kept_bytes_ += unstored_.front().bytes;
      stored_.push_back(unstored_.front());
      unstored_.pop_front();
    }
    if (shipped != 0) shipped_ = std::max(shipped_, shipped);
  }
  if (shipped != 0 && options_.on_shipped) options_.on_shipped(shipped);
  if (options_.log->fenced()) {
    NoteEnded(absl::AbortedError(
        "another collector has become the owner of this shard in the bucket: nothing more is "
        "acknowledged here"));
  }
}

void LogShipper::NoteEnded(const absl::Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    if (!ended_.ok() || stopping_) return;
    ended_ = why;
  }
  if (options_.on_ended) options_.on_ended(why);
}

}  // namespace tacho::storage
