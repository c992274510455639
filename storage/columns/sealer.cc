// Turns open rows into columns when they are old or many, or when memory or the journal is full. A
// round that fails returns its rows to the head: nothing is lost, because the journal still has
// them.
#include "storage/columns/sealer.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"
#include "proto/base/timed_wait.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "storage/codec/bytes.h"
#include "storage/codec/frame.h"
#include "storage/codec/keys.h"
#include "storage/db/rocksdb_status.h"

namespace tacho::storage {
namespace {

// Values encoded into one write: 8 MB of doubles.
constexpr size_t kValuesPerWrite = 1 << 20;
// How often ages are looked at.
constexpr absl::Duration kSealRound = absl::Seconds(1);

}  // namespace

Sealer::Sealer(const Database* database, ColumnCache* columns, Head* head, JobTable* jobs,
               Options options)
    : database_(database),
      columns_(columns),
      head_(head),
      jobs_(jobs),
      options_(std::move(options)) {}

Sealer::~Sealer() { Stop(); }

void Sealer::Start() { thread_ = std::thread(&Sealer::Run, this); }

void Sealer::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void Sealer::Wake() {
  absl::MutexLock lock(&mutex_);
  woken_ = true;
}

void Sealer::Run() {
  pthread_setname_np(pthread_self(), "sealer");
  bool failed = false;
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      const auto due = [this, failed]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return (woken_ && !failed) || stopping_;
      };
      AwaitFor(&mutex_, absl::Condition(&due), kSealRound);
      if (stopping_) return;
      woken_ = false;
    }
    const absl::Status status = SealDue();
    // Once, though a full disk stays full for hours.
    if (!status.ok() && !failed && options_.log != nullptr) {
      options_.log(absl::StrCat("sealing failed, rows stay in the journal: ", status.ToString()));
    }
    failed = !status.ok();
    options_.after_round();
  }
}

absl::Status Sealer::SealAll() {
  absl::MutexLock lock(&sealing_);
  return Seal({.min_rows = 1});
}

void Sealer::BetweenRounds(absl::FunctionRef<void()> work) {
  absl::MutexLock lock(&sealing_);
  work();
}

absl::Status Sealer::SealDue() {
  absl::MutexLock lock(&sealing_);
  // Rather than encode in vain each second.
  if (database_->disk->blocks_writes()) return database_->disk->trouble();
  TACHO_RETURN_IF_ERROR(Relieve());
  const absl::Time now = options_.now();
  return Seal({.min_rows = options_.seal_rows,
               .opened_before = now - options_.seal_age,
               .opened_after = now + options_.seal_age,
               .positions_before = options_.positions_before(),
               .spread = options_.seal_age / 2});
}

absl::Status Sealer::RelieveMemory() {
  absl::MutexLock lock(&sealing_);
  if (database_->disk->blocks_writes()) {  // Nothing can be sealed.
    if (head_->total().bytes() > options_.open_bytes) {
      head_->Compress(options_.open_bytes / 4 * 3, options_.open_raw_bytes);
    }
    return absl::OkStatus();
  }
  return Relieve();
}

absl::Status Sealer::Relieve() {
  const uint64_t limit = options_.open_bytes;
  if (head_->total().bytes() <= limit) return absl::OkStatus();
  // Layouts that are long already are sealed: a value is encoded once for that, twice if it is
  // compressed in memory first.
  const uint64_t relaxed = limit / 4 * 3;
  TACHO_RETURN_IF_ERROR(SealDownTo(relaxed, std::max<size_t>(options_.seal_rows / 2, 1)));
  head_->Compress(relaxed, options_.open_raw_bytes);
  if (head_->total().bytes() <= limit) return absl::OkStatus();
  // Seals as little as helps: the fewer are sealed, the longer they have become.
  return SealDownTo(limit / 16 * 15, 1);
}

absl::Status Sealer::SealDownTo(uint64_t bytes, size_t min_rows) {
  for (;;) {
    const uint64_t open = head_->total().bytes();
    if (open <= bytes) return absl::OkStatus();
    const auto more = SealSome({.excess_bytes = open - bytes, .excess_min_rows = min_rows});
    if (!more.ok()) return more.status();
    if (!*more) return absl::OkStatus();
  }
}

absl::Status Sealer::Seal(const Head::SealingNeed& need) {
  for (;;) {
    TACHO_ASSIGN_OR_RETURN(const auto more, SealSome(need));
    if (!more) return absl::OkStatus();
    if (absl::Status status = Relieve(); !status.ok()) return status;
  }
}

absl::StatusOr<bool> Sealer::SealSome(const Head::SealingNeed& need) {
  const auto some = head_->TakeForSealing(need, kValuesPerWrite);
  if (some.empty()) return false;
  Reach(options_.at_point, crash_point::kSealBegin);
  const absl::Status status = Write(some);
  if (status.ok()) Reach(options_.at_point, crash_point::kSealWritten);
  for (const Head::Sealing& sealing : some) {
    if (status.ok()) {
      sealing.frame->FinishSealing();
    } else {
      sealing.frame->ReturnFromSealing();
    }
  }
  if (!status.ok()) return status;
  return true;
}

absl::Status Sealer::Write(const std::vector<Head::Sealing>& taken) {
  TACHO_CHECK(!taken.empty());
  rocksdb::WriteBatch write;
  // So that the handles stay valid. A write to a day that is dropped meanwhile is refused: its rows
  // go back, and the next round makes the day anew.
  std::vector<PartitionPtr> held;
  absl::Status failure;
  std::vector<FrameRef> frames;
  uint64_t rows = 0;
  uint64_t columns = 0;
  uint64_t bytes = 0;
  const auto put = [&](int64_t day, absl::string_view key, absl::string_view value) {
    if (held.empty() || held.back()->day() != day) {
      auto partition = database_->partitions->FindOrCreate(day);
      if (!partition.ok()) {
        failure = partition.status();
        return;
      }
      held.push_back(*std::move(partition));
    }
    write.Put(held.back()->handle(), rocksdb::Slice(key.data(), key.size()),
              rocksdb::Slice(value.data(), value.size()));
    ++columns;
    bytes += key.size() + value.size();
  };
  std::vector<const Layout*> layouts;
  for (const Head::Sealing& sealing : taken) {
    const Layout& layout = *sealing.frame->layout();
    const auto sealed =
        EncodeFrames(layout, sealing.taken.Decode(layout), sealing.taken.position, put);
    frames.insert(frames.end(), sealed.begin(), sealed.end());
    if (!failure.ok()) return failure;
    std::string position;
    PutVarint(sealing.taken.position, &position);
    write.Put(database_->state, SealedKey(layout.series.front()->job_id, layout.id), position);
    layouts.push_back(&layout);
    rows += sealing.taken.rows;
  }
  Reach(options_.at_point, crash_point::kSealEncoded);
  jobs_->StageExtents(layouts, &write);
  ColumnWrite columns_change(columns_, ColumnWrite::Kind::kAdds);
  for (const Layout* layout : layouts) columns_change.AddSourceOf(*layout);
  for (const PartitionPtr& partition : held) partition->CountWrite();
  // Not synced: until a later sync covers it, the journal still has the rows, for it is only
  // trimmed by a write behind this one.
  TACHO_RETURN_IF_ERROR(database_->WriteUnsynced(&write, "write columns"));
  if (options_.on_sealed != nullptr) options_.on_sealed(frames);
  absl::MutexLock lock(&mutex_);
  rows_sealed_ += rows;
  columns_sealed_ += columns;
  column_bytes_sealed_ += bytes;
  return absl::OkStatus();
}

void Sealer::FillStats(StoreStats* stats) const {
  absl::MutexLock lock(&mutex_);
  stats->rows_sealed = rows_sealed_;
  stats->columns_sealed = columns_sealed_;
  stats->column_bytes_sealed = column_bytes_sealed_;
}

}  // namespace tacho::storage
