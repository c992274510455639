#include "storage/sealer.h"

#include <pthread.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "storage/bytes.h"
#include "storage/frame.h"
#include "storage/keys.h"
#include "storage/rocksdb_status.h"

namespace tacho::storage {
namespace {

// Values encoded into one write: 8 MB of doubles.
constexpr size_t kValuesPerWrite = 1 << 20;
// How often ages are looked at.
constexpr absl::Duration kRound = absl::Seconds(1);

}  // namespace

Sealer::Sealer(const Database* database, Head* head, const JobTable* jobs, Options options)
    : database_(database), head_(head), jobs_(jobs), options_(std::move(options)) {}

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
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      const auto due = [this]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return woken_ || stopping_; };
      mutex_.AwaitWithTimeout(absl::Condition(&due), kRound);
      if (stopping_) return;
      woken_ = false;
    }
    const absl::Status status = SealDue(options_.seal_rows, options_.seal_age);
    if (!status.ok() && options_.log != nullptr) {
      options_.log(absl::StrCat("sealing failed, rows stay in the journal: ", status.ToString()));
    }
    options_.after_round();
  }
}

absl::Status Sealer::SealDue(size_t min_rows, absl::Duration age) {
  absl::MutexLock lock(&sealing_);
  const absl::Time opened_before = options_.now() - age;
  for (;;) {
    const auto taken = head_->TakeForSealing(min_rows, opened_before, kValuesPerWrite);
    if (taken.empty()) return absl::OkStatus();
    Reach(options_.at_point, crash_point::kSealBegin);
    if (absl::Status status = Write(taken); !status.ok()) {
      head_->ReturnFromSealing(taken);
      return status;
    }
    Reach(options_.at_point, crash_point::kSealWritten);
    head_->FinishSealing(taken);
  }
}

absl::Status Sealer::Write(const std::vector<Head::Sealing>& taken) {
  rocksdb::WriteBatch write;
  std::vector<PartitionPtr> held;  // A partition that is dropped meanwhile stays writable.
  absl::Status failure;
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
  for (const Head::Sealing& sealing : taken) {
    const Layout& layout = *sealing.layout;
    EncodeFrames(layout, *sealing.rows, sealing.position, put);
    if (!failure.ok()) return failure;
    std::string position;
    PutVarint(sealing.position, &position);
    write.Put(database_->state, SealedKey(layout.series.front()->job_id, layout.id), position);
    jobs_->StageExtents(layout, &write);
    rows += sealing.rows->size();
  }
  Reach(options_.at_point, crash_point::kSealEncoded);
  // Not synced: until a later sync covers it, the journal still has the rows, for it is only
  // trimmed by a write behind this one.
  const rocksdb::Status status = database_->db->Write(rocksdb::WriteOptions(), &write);
  if (!status.ok()) return FromRocksDb(status, "write columns");
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
