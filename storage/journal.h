// Accepted messages in the order in which they came, each under its position. It is what makes an
// acknowledgement true and what rebuilds the head after a crash; the agent's spool is one too.
//
// A journal is one column family of a RocksDB database: the collector keeps it in the database that
// holds its columns, so that sealing columns and trimming the journal are one atomic write.
//
//   key    position, 8 bytes big-endian
//   value  CRC-32C of the entry, 4 bytes little-endian, then the entry
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
class WriteBatch;
}  // namespace rocksdb

namespace tacho::storage {

// Stage() and StageTrim() are for one thread at a time; Read() may run beside them.
class Journal {
 public:
  static constexpr char kColumnFamily[] = "journal";

  // Both not owned; they must outlive the journal.
  Journal(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family);

  // Finds the newest position. Call once, first.
  absl::Status Recover();

  // Positions of the oldest entry kept and of the entry that the next Stage() makes. Equal: empty.
  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_; }
  // Bytes of the entries in [begin, end), as written.
  uint64_t bytes() const { return bytes_; }

  // Adds the entry to a write that the caller makes, and returns its position (from 1).
  uint64_t Stage(absl::string_view entry, rocksdb::WriteBatch* write);
  // Adds to a write the removal of all entries before `position`.
  void StageTrim(uint64_t position, rocksdb::WriteBatch* write);

  // Calls `visit` for each entry from `position` on, oldest first, until it returns an error, which
  // is returned.
  //   DATA_LOSS  an entry does not match its checksum, or one is missing.
  using Visit = std::function<absl::Status(uint64_t position, absl::string_view entry)>;
  absl::Status Read(uint64_t position, const Visit& visit) const;

 private:
  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const column_family_;
  uint64_t begin_ = 1;
  uint64_t end_ = 1;
  uint64_t bytes_ = 0;
};

}  // namespace tacho::storage
