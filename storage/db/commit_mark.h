// How far the commits have gone, in a file beside the database, so that a log whose end is missing
// is noticed.
//
// RocksDB takes a log that was cut for one whose last write a crash has torn, and a log that was
// removed for one that was never there: it knows the sizes of the logs that it has closed, but not
// of the one being written. So each commit counts itself in the database, in the same write, and
// once it is durable the file says the same. At the opening the database must have what the file
// says.
//
//   The file is never ahead of the database. It is written after a commit is synced and before
//   anybody hears of the commit, but synced only once a second: another sync in each commit would
//   double what a commit costs, and the plain write takes microseconds. So the file is exact after
//   the process was killed. After a power cut it may lag, by a second of commits; what a log lost
//   of these is not noticed.
//
// The file, COMMIT_MARK, has two slots, at bytes 0 and 512. They are written in turn, each within
// one sector, so that one of them is whole at any moment:
//
//   8 bytes "TACHOMRK" | le64 number of this write, from 1 | le64 commits | le64 messages
//   | le64 rows | le64 time of the last commit, ns since 1970 | le32 CRC-32C of all before
//
// The slot with the higher number counts. A copy of the store is made without the file, and a store
// without it is opened without complaint.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
class Env;
class RandomRWFile;
class Status;
}  // namespace rocksdb

namespace tacho::storage {

// Since the store was made.
struct CommitCount {
  uint64_t commits = 0;
  uint64_t messages = 0;  // Acknowledged as new: batches, events, attributes, gaps.
  uint64_t rows = 0;      // In them.
  int64_t time_ns = 0;    // When the last commit was made.

  // The record that each commit writes under CommitCountKey() (keys.h): varint commits, varint
  // messages, varint rows, zigzag time.
  std::string Encode() const;
  static std::optional<CommitCount> Decode(absl::string_view bytes);

  friend bool operator==(const CommitCount&, const CommitCount&) = default;
};

// What the database has of it; nothing if no commit has counted itself yet.
//   DATA_LOSS    the record is damaged.
//   UNAVAILABLE  the disk refused to be read.
absl::StatusOr<CommitCount> ReadCommitCount(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* state);

// What `marked` has more than `found`; its time is that of `marked`.
CommitCount MissingOf(const CommitCount& found, const CommitCount& marked);
// The same in words: how much, of which time, and what to do.
std::string DescribeMissing(absl::string_view path, const CommitCount& found,
                            const CommitCount& marked);

// For one thread at a time.
class CommitMark {
 public:
  static constexpr char kFileName[] = "COMMIT_MARK";

  // `env` is not owned; nullptr is the real file system. `log` takes one line; may be null.
  CommitMark(rocksdb::Env* env, const std::string& directory,
             std::function<void(absl::string_view)> log);
  ~CommitMark();

  // What the file says; nullopt if there is none.
  //   DATA_LOSS    neither slot matches its checksum.
  //   UNAVAILABLE  it cannot be read.
  absl::StatusOr<std::optional<CommitCount>> Read() const;

  // From now on the file says `count`, whatever it said before: it is made anew, at once, synced.
  // If the disk refuses, this is logged, the old file stays, and SyncIfDue() tries again.
  void Restart(const CommitCount& count);
  // A commit is durable. Never fails: what the disk refuses is logged and made good later.
  void Write(const CommitCount& count);
  // Syncs what was written, at most once a second.
  void SyncIfDue(absl::Time monotonic_now);
  // The same at once.
  void Sync();

 private:
  rocksdb::Status MakeFile();
  void Note(const rocksdb::Status& status, absl::string_view doing);

  rocksdb::Env* const env_;
  const std::string directory_;
  const std::string path_;
  const std::function<void(absl::string_view)> log_;
  std::unique_ptr<rocksdb::RandomRWFile> file_;  // Null: to be made.
  CommitCount count_;
  uint64_t number_ = 0;  // The number of the last write.
  bool synced_ = true;
  bool troubled_ = false;  // The disk refused, and the log says so.
  absl::Time next_sync_ = absl::InfinitePast();
};

}  // namespace tacho::storage
