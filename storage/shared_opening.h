// Opens the database of a store whose truth is in a bucket: becomes the shard's owner, then decides
// what the directory is worth.
//
//   the bucket's manifest            the directory                          what is opened
//   has no copy of a store           anything, or nothing                   the directory
//   was written last by this store   has all that was shipped               the directory
//                                    lacks something (a torn log)           a copy of the bucket
//   was written last by another      an older copy, or a fenced owner's     a copy of the bucket
//   has a store                      nothing                                a copy of the bucket
//   has a store                      a store that was never there           FAILED_PRECONDITION
//
// What is not opened is moved into `.fenced-N` in the directory, and never deleted.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/db/database.h"
#include "storage/options.h"
#include "storage/shard/manifest.h"
#include "storage/shard/takeover.h"

namespace tacho::storage {

struct SharedOpening {
  std::unique_ptr<Database> database;
  Manifest claimed;  // As this owner has written it.
  std::vector<SealedLog> sealed;
  bool restored = false;  // The database was made of the bucket, just now.
  absl::Duration took;    // The restore.
};

// REQUIRES: options.history.bucket. Asks the bucket, and repeats that for about half a minute.
//   FAILED_PRECONDITION  bucket and directory belong to different stores, or the bucket to another
//                        number of collectors; the message says what to do. Nothing was changed.
//   UNAVAILABLE          the bucket does not answer, or the disk refuses, or is full. Try again.
//   others               as Database::Open(), SealOlderLogs() and StateRestorer.
absl::StatusOr<SharedOpening> OpenShared(const StoreOptions& options, DatabaseOptions database);

}  // namespace tacho::storage
