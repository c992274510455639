// The side towards the disk: which day is due, and how it gets into blocks and off the disk.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/crc32c.h"
#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "storage/codec/keys.h"
#include "storage/db/rocksdb_status.h"
#include "storage/history/block_writer.h"
#include "storage/history_keeper.h"
#include "storage/shard/bucket_keys.h"

namespace tacho::storage {
namespace {

// A day that has more runs of blocks than this is written anew when rows come late once more: each
// run may cost a reader requests of its own.
constexpr size_t kMaxRuns = 4;

// A snapshot for as long as this lives.
class Snapshot {
 public:
  explicit Snapshot(rocksdb::DB* db) : db_(db), snapshot_(db->GetSnapshot()) {}
  ~Snapshot() { db_->ReleaseSnapshot(snapshot_); }
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  // Over a day. The caller reads all of it once, so nothing is kept in memory.
  std::unique_ptr<rocksdb::Iterator> NewIterator(const Partition& day) const {
    rocksdb::ReadOptions read;
    read.snapshot = snapshot_;
    read.fill_cache = false;
    read.readahead_size = 2 << 20;
    return std::unique_ptr<rocksdb::Iterator>(db_->NewIterator(read, day.handle()));
  }

 private:
  rocksdb::DB* const db_;
  const rocksdb::Snapshot* const snapshot_;
};

absl::Status AddAll(rocksdb::Iterator* it, DayDigest* digest, BlockWriter* writer) {
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    if (digest != nullptr) digest->Add(View(it->key()), View(it->value()));
    if (writer == nullptr) continue;
    TACHO_RETURN_IF_ERROR(writer->Add(View(it->key()), View(it->value())));
  }
  return FromRocksDb(it->status(), "read a day for the bucket");
}

}  // namespace

BucketDayPtr HistoryKeeper::FindClosed(int64_t day) const {
  for (const BucketDayPtr& closed : days_.picture()->days) {
    if (closed->day() == day) return closed;
  }
  return nullptr;
}

bool HistoryKeeper::HasTooManyBytes() const {
  return options_.local_bytes != 0 && options_.database->TableBytes() > options_.local_bytes;
}

bool HistoryKeeper::IsInBucket(int64_t day, const DayDigest& digest) const {
  if (digest.keys() == 0) return true;
  const SentDay* const sent = record_.FindSent(day);
  const auto& closed = record_.known()->closed_days;
  const auto list = closed.find(day);
  return sent != nullptr && list != closed.end() && list->second.key == sent->list &&
         sent->digest == digest;
}

absl::StatusOr<HistoryKeeper::Content> HistoryKeeper::Digest(const Partition& day) const {
  Content content;
  std::optional<Snapshot> snapshot;
  options_.sealer->BetweenRounds([&] {
    content.writes = day.writes();
    snapshot.emplace(options_.database->db.get());
  });
  const auto it = snapshot->NewIterator(day);
  TACHO_RETURN_IF_ERROR(AddAll(it.get(), &content.digest, nullptr));
  return content;
}

absl::Status HistoryKeeper::VisitDay(const PartitionPtr& day) {
  const absl::Time now = options_.now();
  const absl::Time end = absl::FromUnixNanos(day->day() * kDayNs) + absl::Hours(24);
  if (now < end + options_.history.close_after) return absl::OkStatus();
  if (!IsWhole(day->day())) return SendLate(day);
  if (FindClosed(day->day()) == nullptr) TACHO_RETURN_IF_ERROR(Send(day, nullptr, {}));
  const bool is_old = day->day() < DayOf(absl::ToUnixNanos(now - options_.history.local_retention));
  if (!is_old && !HasTooManyBytes()) return absl::OkStatus();
  TACHO_ASSIGN_OR_RETURN(const Content content, Digest(*day));
  if (IsInBucket(day->day(), content.digest)) return TakeOffDisk(day, content.writes);
  // Rows came late, or frames were merged, after the day was closed. It goes in a later round.
  return Send(day, nullptr, {});
}

absl::Status HistoryKeeper::SendLate(const PartitionPtr& day) {
  // Late rows often come for a while.
  const absl::Time now = options_.monotonic();
  const auto [since, is_new] = late_since_.try_emplace(day->day(), now);
  if (now - since->second < options_.history.late_after) return absl::OkStatus();
  late_since_.erase(since);
  TACHO_ASSIGN_OR_RETURN(const Content content, Digest(*day));
  if (IsInBucket(day->day(), content.digest)) return TakeOffDisk(day, content.writes);
  const BucketDayPtr closed = FindClosed(day->day());
  if (closed == nullptr) {
    TACHO_RETURN_IF_ERROR(Send(day, nullptr, {}));
  } else {
    TACHO_ASSIGN_OR_RETURN(const std::vector<BlockRun>* const runs,
                           closed->Runs(*options_.history.bucket));
    std::vector<Block> before;
    if (runs->size() < kMaxRuns) {
      for (const BlockRun& run : *runs) before.insert(before.end(), run.begin(), run.end());
    }
    TACHO_RETURN_IF_ERROR(Send(day, before.empty() ? closed : nullptr, std::move(before)));
  }
  TACHO_ASSIGN_OR_RETURN(const Content now_there, Digest(*day));
  if (!IsInBucket(day->day(), now_there.digest)) return absl::OkStatus();
  return TakeOffDisk(day, now_there.writes);
}

absl::Status HistoryKeeper::Send(const PartitionPtr& day, const BucketDayPtr& with_bucket,
                                 std::vector<Block> before) {
  const uint64_t epoch = log_->epoch();
  BlockWriter writer({.bucket = options_.history.bucket,
                      .next_key = [&] { return BlockKey(0, day->day(), epoch, next_object_++); },
                      .before_retry = [this](int tries) { return WaitBeforeRetry(tries); },
                      .max_bytes = options_.history.block_bytes});
  uint64_t writes = 0;
  std::optional<Snapshot> taken;
  options_.sealer->BetweenRounds([&] {
    writes = day->writes();
    taken.emplace(options_.database->db.get());
  });
  const Snapshot& snapshot = *taken;
  SentDay sent;
  if (with_bucket == nullptr) {
    TACHO_RETURN_IF_ERROR(AddAll(snapshot.NewIterator(*day).get(), &sent.digest, &writer));
  } else {
    TACHO_RETURN_IF_ERROR(AddAll(snapshot.NewIterator(*day).get(), &sent.digest, nullptr));
    TACHO_ASSIGN_OR_RETURN(
        const auto both,
        days_.NewIterator(*with_bucket, snapshot.NewIterator(*day), ReadAmount::kMuch));
    TACHO_RETURN_IF_ERROR(AddAll(both.get(), nullptr, &writer));
  }
  TACHO_ASSIGN_OR_RETURN(std::vector<Block> blocks, writer.Finish());
  if (blocks.empty()) return absl::OkStatus();  // Nothing is on the disk.
  blocks.insert(blocks.end(), before.begin(), before.end());
  sent.list = BlockListKey(0, day->day(), epoch, next_object_++);
  const std::string list = EncodeBlockList(blocks);
  TACHO_RETURN_IF_ERROR(PutObject(*options_.history.bucket, sent.list, list,
                                  [this](int tries) { return WaitBeforeRetry(tries); }));
  const StoredFile file = {
      .key = sent.list, .bytes = list.size(), .crc32c = ExtendCrc32c(0, list.data(), list.size())};
  Reach(options_.at_point, crash_point::kHistorySent);
  TACHO_RETURN_IF_ERROR(record_.SetSent(day->day(), std::move(sent)));
  TACHO_RETURN_IF_ERROR(
      Commit([&](Manifest* manifest) { manifest->closed_days[day->day()] = file; }));
  sent_writes_[day->day()] = writes;
  Log(absl::StrCat("history: day ", day->day(), " is in the bucket, in ", blocks.size(),
                   " blocks"));
  return absl::OkStatus();
}

absl::Status HistoryKeeper::TakeOffDisk(const PartitionPtr& day, uint64_t writes) {
  Reach(options_.at_point, crash_point::kHistoryCompared);
  absl::Status status;
  // So that nothing is sealed into the day meanwhile. What is sealed next makes it anew.
  options_.sealer->BetweenRounds([&] {
    if (day->writes() != writes) return;
    status = record_.SetWholeFrom(day->day() + 1);
    if (!status.ok()) return;
    // Before views can see the day in the bucket: its columns may be others than the disk has, and
    // what a view of one kind remembers must not serve one of the other.
    ColumnWrite change(options_.columns, ColumnWrite::Kind::kReplaces);
    change.AddEverySource();
    days_.Set(record_.known()->closed_days, record_.whole_from());
    Reach(options_.at_point, crash_point::kHistoryMarked);
    sent_writes_.erase(day->day());
    status = options_.database->partitions->Drop(day->day());
    options_.columns->Clear();
  });
  return status;
}

}  // namespace tacho::storage
