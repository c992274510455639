// Which part of a write goes into the bucket, and how it is applied again.
//
// A record of a segment is a write batch of RocksDB. Its column families have numbers of their own,
// because the numbers of a database differ from those of its copy:
//
//   1 journal   2 index   3 state   4 events
//
// Three things are left out. Columns ("day.N") and the sealed positions (`P` in "state") go with
// the manifest: a `P` that came by the log without its columns would drop rows. The journal's trims
// are a matter of the disk: a copy has its own. What the database remembers of the bucket
// ("default") is its own, too.
//
// Format: docs/bucket_format.md, "The log".
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rocksdb {
class ColumnFamilyHandle;
class WriteBatch;
}  // namespace rocksdb

namespace tacho::storage {

// The column families of a database that go into the log. Not owned.
struct ShippedFamilies {
  rocksdb::ColumnFamilyHandle* journal = nullptr;
  rocksdb::ColumnFamilyHandle* index = nullptr;
  rocksdb::ColumnFamilyHandle* state = nullptr;
  rocksdb::ColumnFamilyHandle* events = nullptr;
};

struct ShippedBatch {
  std::string record;  // Empty: nothing of the write goes into the log.
  // Positions of the journal's entries in it; 0: there is none.
  uint64_t first_position = 0;
  uint64_t last_position = 0;
};

//   INTERNAL  the write has a kind of change that the store never makes.
absl::StatusOr<ShippedBatch> FilterBatch(const rocksdb::WriteBatch& batch,
                                         const ShippedFamilies& families);

// Adds the changes of a record, which may be any bytes, to `write`. Returns the position of the
// first entry of the journal in it; 0: there is none.
//   DATA_LOSS  it is no record, or has what FilterBatch() leaves out. `write` may have a part of
//   it.
absl::StatusOr<uint64_t> ApplyRecord(absl::string_view record, const ShippedFamilies& families,
                                     rocksdb::WriteBatch* write);

// The same, applied to nothing.
absl::StatusOr<uint64_t> CheckRecord(absl::string_view record);

}  // namespace tacho::storage
