#include "storage/shipping/log_tail.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "rocksdb/transaction_log.h"
#include "rocksdb/write_batch.h"
#include "storage/db/rocksdb_status.h"

namespace tacho::storage {
namespace {

absl::Status Missing(uint64_t sequence, absl::string_view why) {
  return absl::DataLossError(
      absl::StrCat("RocksDB's log does not go on at sequence ", sequence, ": ", why));
}

}  // namespace

LogTail::LogTail(rocksdb::DB* db, const ShippedFamilies& families, uint64_t after)
    : db_(db), families_(families), through_(after) {}

LogTail::~LogTail() = default;

absl::StatusOr<bool> LogTail::Advance() {
  const uint64_t latest = db_->GetLatestSequenceNumber();
  if (through_ >= latest) return false;
  // The iterator knows the files that were there when it was made. At the end of the last one it
  // goes on as the file grows. Behind a newer file a new iterator is needed.
  for (int made = 0;; ++made) {
    if (iterator_ != nullptr) {
      if (taken_) iterator_->Next();
      taken_ = false;
      if (iterator_->Valid()) return true;
      const rocksdb::Status status = iterator_->status();
      if (!status.ok() && !status.IsTryAgain()) return Missing(through_ + 1, status.ToString());
      if (made == 2) return Missing(through_ + 1, absl::StrCat("it should reach ", latest));
    }
    iterator_.reset();
    const rocksdb::Status status = db_->GetUpdatesSince(through_ + 1, &iterator_);
    if (!status.ok()) return Missing(through_ + 1, status.ToString());
  }
}

absl::StatusOr<LogTail::Piece> LogTail::Read(size_t max_bytes) {
  Piece piece;
  size_t bytes = 0;
  for (;;) {
    if (bytes >= max_bytes) {
      piece.more = true;
      break;
    }
    TACHO_ASSIGN_OR_RETURN(const bool there, Advance());
    if (!there) break;
    const rocksdb::BatchResult batch = iterator_->GetBatch();
    taken_ = true;
    if (batch.sequence != through_ + 1) {
      return Missing(through_ + 1, absl::StrCat("the next write has ", batch.sequence));
    }
    TACHO_ASSIGN_OR_RETURN(ShippedBatch shipped, FilterBatch(*batch.writeBatchPtr, families_));
    through_ += batch.writeBatchPtr->Count();
    if (shipped.record.empty()) continue;
    bytes += shipped.record.size();
    piece.records.push_back({.bytes = std::move(shipped.record),
                             .last = through_,
                             .last_position = shipped.last_position});
  }
  piece.through = through_;
  return piece;
}

absl::Status LogTail::DeleteLogsThrough(uint64_t sequence) {
  rocksdb::VectorLogPtr logs;
  TACHO_RETURN_IF_ERROR(FromRocksDb(db_->GetSortedWalFiles(logs), "list the log"));
  for (size_t i = 0; i + 1 < logs.size(); ++i) {
    if (logs[i]->Type() != rocksdb::kArchivedLogFile) break;
    if (logs[i + 1]->StartSequence() > sequence + 1) break;
    TACHO_RETURN_IF_ERROR(
        FromRocksDb(db_->DeleteFile(logs[i]->PathName()), "delete a log that is in the bucket"));
  }
  return absl::OkStatus();
}

}  // namespace tacho::storage
