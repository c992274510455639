// The bucket's copy of the store: which part of it goes there as state, and from where on the log
// is needed besides.
//
// Columns of days that are not closed are exported like the state, as the tables that RocksDB has
// of them. Closed days are in blocks already. Of the order, all that matters is that the columns
// come after the sealed positions: they may have more than those say, never less.
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "storage/codec/keys.h"
#include "storage/history_keeper.h"
#include "storage/shipping/state_restore.h"

namespace tacho::storage {
namespace {

constexpr absl::Duration kStateMayTake = absl::Seconds(60);

}  // namespace

absl::Status HistoryKeeper::TakeClaim() {
  const Manifest& manifest = options_.claimed->manifest;
  if (options_.claimed->restored && !manifest.closed_days.empty()) {
    // The disk has of closed days at most what came late.
    TACHO_RETURN_IF_ERROR(record_.SetWholeFrom(manifest.closed_days.rbegin()->first + 1));
  }
  TACHO_RETURN_IF_ERROR(record_.SetKnown(manifest));
  log_ = std::make_unique<ShardLog>(ShardLogOptions{.bucket = options_.history.bucket,
                                                    .shard = manifest.shard,
                                                    .epoch = manifest.epoch,
                                                    .nonce = manifest.nonce});
  replay_from_ = manifest.logs.front();
  exporter_ = std::make_unique<StateExporter>(StateExporter::Options{
      .db = options_.database->db.get(),
      .env = options_.env == nullptr ? rocksdb::Env::Default() : options_.env,
      .bucket = options_.history.bucket,
      .shard = manifest.shard,
      .epoch = manifest.epoch,
      .directory = absl::StrCat(options_.path, "/bucket-export"),
      .before_retry = [this](int tries) { return WaitBeforeRetry(tries); }});
  if (!options_.claimed->restored) exporter_->Know(manifest.state);
  next_commit_ = options_.monotonic() + options_.shared.commit_every;
  return absl::OkStatus();
}

std::vector<PartitionPtr> HistoryKeeper::DaysOfState() const {
  std::vector<PartitionPtr> days;
  const Manifest& known = *record_.known();
  for (const PartitionPtr& day : options_.database->partitions->Between(INT64_MIN, INT64_MAX)) {
    if (known.closed_days.contains(day->day())) {
      if (const auto sent = sent_writes_.find(day->day()); sent != sent_writes_.end()) {
        if (sent->second == day->writes()) continue;
      } else if (day->writes() == 0) {
        // Nothing came since the store was opened: then it has late rows only if it had some.
        const std::string name = PartitionName(day->day());
        bool had = false;
        for (const StateFile& file : known.state) {
          const auto table = DecodeStateMetadata(file.metadata);
          had = had || !table.ok() || table->family == name;
        }
        if (!had) continue;
      }
    }
    days.push_back(day);
  }
  return days;
}

absl::Status HistoryKeeper::CommitState(bool base) {
  TACHO_CHECK(options_.claimed.has_value() && base == (shipper_ == nullptr));
  const auto commit = [&]() -> absl::Status {
    TACHO_RETURN_IF_ERROR(Claim());
    const Database& database = *options_.database;
    // Before the export: what is sealed, or written, later is replayed.
    const uint64_t unsealed_from = options_.sealed_up_to();
    const uint64_t written = database.db->GetLatestSequenceNumber();
    std::vector<rocksdb::ColumnFamilyHandle*> families = {database.state, database.index,
                                                          database.events};
    const std::vector<PartitionPtr> days = DaysOfState();
    for (const PartitionPtr& day : days) families.push_back(day->handle());
    TACHO_ASSIGN_OR_RETURN(std::vector<StateFile> files, exporter_->Export(families));
    Reach(options_.at_point, crash_point::kSharedExported);
    CommitRequest request{.replay_from = {.epoch = log_->epoch(), .first = 1},
                          .sealed = options_.claimed->sealed};
    if (!base) {
      // The exported state says which rows were taken in, so the log must have them.
      TACHO_RETURN_IF_ERROR(AwaitShipped(kStateMayTake));
      request.stored_through = log_->stored();
      request.replay_from.first = shipper_->FirstNeeded(unsealed_from, written);
      // What older owners' logs have is needed until all of it is sealed.
      if (unsealed_from < options_.claimed->journal_end) request.replay_from = replay_from_;
    }
    request.change = [&](Manifest* manifest) -> absl::Status {
      TACHO_RETURN_IF_ERROR(PrepareNonce());
      manifest->state = files;
      manifest->positions = EncodePositions(unsealed_from);
      return absl::OkStatus();
    };
    TACHO_RETURN_IF_ERROR(CommitRequested(request));
    replay_from_ = request.replay_from;
    if (!base && replay_from_.epoch == log_->epoch()) shipper_->Forget(replay_from_.first);
    return absl::OkStatus();
  };
  absl::Status status = commit();
  ++(status.ok() ? commits_ : failed_commits_);
  if (status.ok()) next_commit_ = options_.monotonic() + options_.shared.commit_every;
  return status;
}

absl::Status HistoryKeeper::CommitStateIfDue() {
  const bool due = options_.monotonic() >= next_commit_ ||
                   (shipper_ != nullptr && shipper_->kept_bytes() > options_.shared.commit_bytes);
  return due ? CommitState(false) : absl::OkStatus();
}

void HistoryKeeper::StartShipping(uint64_t after, std::function<void(uint64_t)> on_shipped,
                                  std::function<void(const absl::Status&)> on_ended) {
  TACHO_CHECK(options_.claimed.has_value() && shipper_ == nullptr);
  const Database& database = *options_.database;
  shipper_ = std::make_unique<LogShipper>(LogShipperOptions{
      .db = database.db.get(),
      .families = {.journal = database.journal,
                   .index = database.index,
                   .state = database.state,
                   .events = database.events},
      .log = log_.get(),
      .after = after,
      .interval = options_.shared.interval,
      .on_shipped = std::move(on_shipped),
      .on_ended = [this, on_ended = std::move(on_ended)](const absl::Status& why) {
        if (absl::IsAborted(why)) fenced_ = true;
        on_ended(why);
      }});
}

void HistoryKeeper::StopShipping() {
  if (shipper_ != nullptr) shipper_->Stop();
}

absl::Status HistoryKeeper::AwaitShipped(absl::Duration patience) {
  // The first copy has all there is.
  if (shipper_ == nullptr) return absl::OkStatus();
  return shipper_->AwaitShipped(options_.database->db->GetLatestSequenceNumber(), patience);
}

HistoryKeeper::SharedFigures HistoryKeeper::shared() const {
  return {.epoch = log_ == nullptr ? 0 : log_->epoch(),
          .fenced = fenced_,
          .commits = commits_,
          .failed_commits = failed_commits_};
}

}  // namespace tacho::storage
