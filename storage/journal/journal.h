// Accepted messages in the order in which they came, each under its position. It is what makes an
// acknowledgement true and what rebuilds the head after a crash; the agent's spool is one too.
//
// A journal is one column family of a RocksDB database: the collector keeps it in the database that
// holds its columns, so that sealing columns and trimming the journal are one atomic write.
//
//   key    position, 8 bytes big-endian, from 1
//   value  CRC-32C of the entry, 4 bytes little-endian, then the entry
//
// and the trim mark, which is what keeps positions from being used twice when everything has been
// trimmed, and what lets a reader seek past the tombstones of trimmed entries:
//
//   key    8 zero bytes
//   value  CRC-32C of what follows, 4 bytes little-endian, then the position of the oldest entry
//          kept, 8 bytes little-endian. Rewritten by every trim; absent before the first.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/journal/entry_sizes.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
class WriteBatch;
}  // namespace rocksdb

namespace tacho::storage {

// All but Read() is for one thread at a time; Read() may run beside it.
class Journal {
 public:
  // Both not owned; they must outlive the journal.
  Journal(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family);

  // Called for an entry; an error ends the reading and is returned.
  using Visit = std::function<absl::Status(uint64_t position, absl::string_view entry)>;

  // Finds the oldest and the newest position, reading every entry once and, if `visit` is not null,
  // handing it on. Call once, first; or again after a write was refused: then what was staged for
  // it is forgotten. After an error the positions are those from before: with half of them, the
  // next Stage() would replace an entry that was acknowledged.
  //   DATA_LOSS    the trim mark is damaged, or an entry is missing; with `visit`, one does not
  //                match its checksum.
  //   UNAVAILABLE  the disk refused to be read.
  absl::Status Recover(const Visit& visit = nullptr);

  // Positions of the oldest entry kept and of the entry that the next Stage() makes. Equal: empty.
  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_; }
  // Bytes of the entries in [begin, end), as written; of very many, nearly (entry_sizes.h).
  uint64_t bytes() const { return sizes_.total(); }

  // Adds the entry to a write that the caller makes, and returns its position (from 1). Writes must
  // be made in the order in which they were staged.
  uint64_t Stage(absl::string_view entry, rocksdb::WriteBatch* write);
  // Adds to a write that the entry at `position`, of those in [begin, end), becomes another. For
  // bytes() it keeps its size until the next Recover().
  void StageReplace(uint64_t position, absl::string_view entry, rocksdb::WriteBatch* write);
  // Adds to a write the removal of all entries before `position` (none past end() exist).
  void StageTrim(uint64_t position, rocksdb::WriteBatch* write);
  // Adds to a write the mark that all entries before `position` are gone, for a column family that
  // is being made. Nobody has a Journal on it yet.
  static void StageMark(rocksdb::ColumnFamilyHandle* column_family, uint64_t position,
                        rocksdb::WriteBatch* write);
  // Adds to a write the removal of all entries from `position` on, so that their positions are used
  // again: only for entries that were never acknowledged.
  void StageRollback(uint64_t position, rocksdb::WriteBatch* write);

  // Removes files that hold only entries before `position`. The trim mark must say that these are
  // gone, and must be durable.
  absl::Status DeleteTrimmedFiles(uint64_t position) const;

  // Calls `visit` for each entry from `position` (or the oldest kept, if that is later) on, oldest
  // first, until it returns an error, which is returned.
  //   DATA_LOSS    an entry does not match its checksum, or one is missing; the text names it.
  //   UNAVAILABLE  the disk refused to be read.
  absl::Status Read(uint64_t position, const Visit& visit) const;

 private:
  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const column_family_;
  uint64_t begin_ = 1;
  uint64_t end_ = 1;
  EntrySizes sizes_;  // Sizes of the entries in [begin_, end_), as written.
};

}  // namespace tacho::storage
