// Reads RocksDB's own log, as it grows: so no write can be forgotten, wherever it is made.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/shipping/shipped_batch.h"

namespace rocksdb {
class DB;
class TransactionLogIterator;
}  // namespace rocksdb

namespace tacho::storage {

// One thread. The database must keep its old logs (DatabaseOptions::keep_logs), and every write
// must go through its log: a sequence that is in no log is taken for a log that is missing.
class LogTail {
 public:
  // Begins behind the write with the sequence `after`. `db` is not owned.
  LogTail(rocksdb::DB* db, const ShippedFamilies& families, uint64_t after);
  ~LogTail();

  struct Record {
    std::string bytes;
    uint64_t last = 0;           // The last sequence of the write.
    uint64_t last_position = 0;  // Of the journal's entries in it; 0: there is none.
  };
  struct Piece {
    std::vector<Record> records;  // What is to be shipped.
    uint64_t through = 0;         // Everything up to this sequence has been read.
    bool more = false;            // There was no room for all that is there.
  };
  // Reads on, up to about `max_bytes` of records.
  //   DATA_LOSS    the log does not go on where it was: it is missing, or damaged.
  //   UNAVAILABLE  the disk refused to be read.
  absl::StatusOr<Piece> Read(size_t max_bytes);

  // Deletes the old logs of which everything is at or below this sequence.
  absl::Status DeleteLogsThrough(uint64_t sequence);

 private:
  // Moves to the next write. False: there is none yet.
  absl::StatusOr<bool> Advance();

  rocksdb::DB* const db_;
  const ShippedFamilies families_;
  uint64_t through_;
  std::unique_ptr<rocksdb::TransactionLogIterator> iterator_;
  bool taken_ = false;  // The write at which the iterator stands was read.
};

}  // namespace tacho::storage
