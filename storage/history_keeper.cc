// The side towards the bucket: who owns the manifest, commits, garbage. The days themselves are in
// history_days.cc.
#include "storage/history_keeper.h"

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"
#include "proto/base/timed_wait.h"
#include "storage/shard/bucket_keys.h"
#include "storage/shard/garbage.h"
#include "storage/shard/manifest_commit.h"
#include "storage/shard/shard_count.h"

namespace tacho::storage {
namespace {

constexpr int kMaxTries = 5;
constexpr absl::Duration kFirstWait = absl::Seconds(1);
// A query that began before a commit may still read what the commit has made superfluous.
constexpr absl::Duration kReadersMayTake = absl::Hours(1);
// How long a commit waits for the log. The next round tries again.
constexpr absl::Duration kShippingMayTake = absl::Seconds(30);
constexpr absl::Duration kSweepPause = absl::Hours(24);

uint64_t DrawNonce() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace

HistoryKeeper::HistoryKeeper(Options options)
    : options_(std::move(options)),
      days_({.bucket = options_.history.bucket, .pieces = options_.history.pieces}),
      record_(options_.database),
      object_({.bucket = options_.history.bucket,
               .shard = options_.history.shard,
               .random =
                   [this] {
                     TACHO_CHECK(nonce_.has_value());
                     return *std::exchange(nonce_, std::nullopt);
                   },
               .before_retry = [this](int tries) { return WaitBeforeRetry(tries); }}) {}

absl::StatusOr<std::unique_ptr<HistoryKeeper>> HistoryKeeper::Open(Options options) {
  TACHO_CHECK(options.history.bucket != nullptr && options.history.pieces != nullptr);
  std::unique_ptr<HistoryKeeper> keeper(new HistoryKeeper(std::move(options)));
  TACHO_RETURN_IF_ERROR(keeper->record_.Load());
  const std::optional<Manifest>& known = keeper->record_.known();
  if (keeper->options_.claimed.has_value()) TACHO_RETURN_IF_ERROR(keeper->TakeClaim());
  keeper->days_.Set(known ? known->closed_days : std::map<int64_t, StoredFile>(),
                    keeper->record_.whole_from());
  return keeper;
}

absl::Status HistoryKeeper::WaitBeforeRetry(int tries) {
  absl::MutexLock lock(&mutex_);
  if (!options_.waits || tries >= kMaxTries) {
    return absl::UnavailableError("the bucket does not answer; the next round tries again");
  }
  if (AwaitFor(&mutex_, absl::Condition(&stopping_), kFirstWait * (1 << (tries - 1)))) {
    return absl::CancelledError("the store is being closed");
  }
  return absl::OkStatus();
}

void HistoryKeeper::Stop() {
  absl::MutexLock lock(&mutex_);
  stopping_ = true;
}

absl::Status HistoryKeeper::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

absl::Status HistoryKeeper::Round() {
  absl::Status status = DoRound();
  absl::Status before;
  {
    absl::MutexLock lock(&mutex_);
    before = std::exchange(status_, status);
  }
  // Once, though a bucket may be away for hours.
  if (status.code() != before.code() && !absl::IsCancelled(status)) {
    Log(status.ok() ? "history: the bucket can be written again"
                    : absl::StrCat("history: days stay on the disk: ", status.ToString()));
  }
  return status;
}

absl::Status HistoryKeeper::DoRound() {
  TACHO_RETURN_IF_ERROR(Claim());
  DeleteGarbage();
  if (options_.claimed.has_value()) TACHO_RETURN_IF_ERROR(CommitStateIfDue());
  // Ascending: a day leaves the disk after all days before it.
  for (const PartitionPtr& day : options_.database->partitions->Between(INT64_MIN, INT64_MAX)) {
    TACHO_RETURN_IF_ERROR(VisitDay(day));
  }
  return Sweep();
}

absl::Status HistoryKeeper::PrepareNonce() {
  const uint64_t nonce = DrawNonce();
  TACHO_RETURN_IF_ERROR(record_.AddPending(nonce));
  nonce_ = nonce;
  return absl::OkStatus();
}

absl::Status HistoryKeeper::Claim() {
  if (fenced_) {
    return absl::AbortedError(
        "another process has become the owner of this history in the bucket: two collectors must "
        "not have the same bucket.url");
  }
  if (log_ == nullptr) {
    TACHO_RETURN_IF_ERROR(
        CheckShardCount(*options_.history.bucket, options_.history.shards, object_.before_retry()));
  }
  while (log_ == nullptr) {
    absl::StatusOr<ReadManifest> old = object_.Read();
    if (absl::IsNotFound(old.status()) && record_.known()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the manifest ", ManifestKey(object_.shard()),
          " is not in the bucket any more, and days of this store are there: restore it, or undo "
          "the change of bucket.url"));
    }
    if (!old.ok() && !absl::IsNotFound(old.status())) return old.status();
    if (old.ok() && !record_.IsMine(old->manifest.nonce)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the bucket has the history of another store (last written by ", old->manifest.owner,
          "), or of a newer copy of this one: give this store a bucket.url of its own"));
    }
    Manifest next = old.ok() ? old->manifest : Manifest{.shard = object_.shard()};
    ++next.epoch;
    next.owner = options_.history.owner;
    next.logs = {{.epoch = next.epoch, .first = 1}};
    // A copy that an owner with `ack: shared` has left would be behind from now on.
    next.state.clear();
    next.positions.clear();
    TACHO_RETURN_IF_ERROR(PrepareNonce());
    const auto written =
        old.ok() ? object_.Replace(*old, std::move(next)) : object_.Create(std::move(next));
    if (absl::IsAborted(written.status())) continue;  // Look who it was.
    if (!written.ok()) return written.status();
    Reach(options_.at_point, crash_point::kHistoryClaimed);
    TACHO_RETURN_IF_ERROR(TakeManifest(written->manifest));
    log_ = std::make_unique<ShardLog>(ShardLogOptions{.bucket = options_.history.bucket,
                                                      .shard = object_.shard(),
                                                      .epoch = written->manifest.epoch,
                                                      .nonce = written->manifest.nonce});
  }
  return absl::OkStatus();
}

absl::Status HistoryKeeper::TakeManifest(const Manifest& manifest) {
  TACHO_RETURN_IF_ERROR(record_.SetKnown(manifest));
  days_.Set(manifest.closed_days, record_.whole_from());
  return absl::OkStatus();
}

absl::Status HistoryKeeper::Commit(const std::function<void(Manifest*)>& change) {
  CommitRequest request{.replay_from = {.epoch = log_->epoch(), .first = 1}};
  if (options_.claimed.has_value()) {
    // The blocks may have rows that are not in the bucket's log yet.
    TACHO_RETURN_IF_ERROR(AwaitShipped(kShippingMayTake));
    request.replay_from = replay_from_;
    request.stored_through = log_->stored();
    request.sealed = options_.claimed->sealed;
  }
  request.change = [&](Manifest* manifest) -> absl::Status {
    TACHO_RETURN_IF_ERROR(PrepareNonce());
    change(manifest);
    return absl::OkStatus();
  };
  return CommitRequested(request);
}

absl::Status HistoryKeeper::CommitRequested(const CommitRequest& request) {
  const auto committed = CommitManifest(object_, *log_, request);
  if (absl::IsAborted(committed.status())) fenced_ = true;
  if (!committed.ok()) return committed.status();
  Reach(options_.at_point, crash_point::kHistoryCommitted);
  TACHO_RETURN_IF_ERROR(TakeManifest(committed->written.manifest));
  const absl::Time now = options_.monotonic();
  for (const std::string& key : committed->garbage) garbage_.emplace_back(now, key);
  return absl::OkStatus();
}

void HistoryKeeper::DeleteGarbage() {
  const absl::Time before = options_.monotonic() - kReadersMayTake;
  std::vector<std::string> due;
  std::erase_if(garbage_, [&](const auto& one) {
    if (one.first > before) return false;
    due.push_back(one.second);
    return true;
  });
  if (due.empty()) return;
  for (const std::string& key : due) options_.history.pieces->Forget(key);
  DeleteObjects(*options_.history.bucket, due);
}

absl::Status HistoryKeeper::Sweep() {
  const absl::Time now = options_.monotonic();
  if (now < next_sweep_) return absl::OkStatus();
  TACHO_ASSIGN_OR_RETURN(const std::vector<std::string> orphans,
                         FindOrphans(*options_.history.bucket, *record_.known(), {},
                                     [this](int tries) { return WaitBeforeRetry(tries); }));
  next_sweep_ = now + kSweepPause;
  std::vector<std::string> twice;
  for (const std::string& key : orphans) {
    if (swept_.contains(key)) twice.push_back(key);
  }
  swept_ = {orphans.begin(), orphans.end()};
  DeleteObjects(*options_.history.bucket, twice);
  return absl::OkStatus();
}

absl::Status HistoryKeeper::DropBefore(int64_t day) {
  const auto picture = days_.picture();
  if (picture->days.empty() || picture->days.front()->day() >= day) return absl::OkStatus();
  TACHO_RETURN_IF_ERROR(Claim());
  return Commit([&](Manifest* manifest) {
    auto& closed = manifest->closed_days;
    closed.erase(closed.begin(), closed.lower_bound(day));
    manifest->kept_from_day = std::max(manifest->kept_from_day.value_or(day), day);
  });
}

}  // namespace tacho::storage
