// A journal with a database of its own: what the agent spools to.
//
// The database has two column families: "journal" (storage/journal/journal.h) and the default one:
//
//   key "format"      value  the format version as decimal digits
//   key "generation"  value  the generation as 16 lower-case hexadecimal digits
//   key "note/" KEY   value  the note's value, as it is
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace rocksdb {
class Env;
class WriteBatch;
}  // namespace rocksdb

namespace tacho::storage {

struct SpoolJournalOptions {
  std::string path;             // Directory; created if missing, with its parents.
  rocksdb::Env* env = nullptr;  // Not owned; must outlive the journal. nullptr: the real one.
  // After the disk refused, the database is reopened at most this often.
  absl::Duration reopen_interval = absl::Seconds(1);
};

// Thread-safe. Positions count from 1 and are never reused within a generation, but for one case: a
// crash of the machine that takes entries after the last Sync() takes their positions as well. So
// show others only positions that were synced.
class SpoolJournal {
 public:
  //   DATA_LOSS            the database is damaged. The caller may move the directory away and open
  //                        anew.
  //   FAILED_PRECONDITION  the directory has another format version; the text says which.
  //   UNAVAILABLE          the disk refused, or another process has the directory open.
  static absl::StatusOr<std::unique_ptr<SpoolJournal>> Open(SpoolJournalOptions options);
  ~SpoolJournal();

  // Removes the files of a spool that nobody has open, the one without which it is none first, so
  // that half of it is never taken for a damaged one. Other files stay.
  //   UNAVAILABLE  the disk refused, or another process has the directory open.
  static absl::Status Remove(const std::string& path);

  // Drawn at random when the directory was created. Not 0.
  uint64_t generation() const { return generation_; }
  uint64_t begin() const ABSL_LOCKS_EXCLUDED(mutex_);  // Oldest position kept.
  uint64_t end() const ABSL_LOCKS_EXCLUDED(mutex_);    // Position of the next entry.
  uint64_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);  // Size of the entries kept, as written.

  // A note that lives beside the entries, by key, until it is replaced: how far a source has read,
  // a layout that entries refer to. An empty value removes it.
  struct Note {
    std::string key;
    std::string value;

    friend bool operator==(const Note&, const Note&) = default;
  };

  // All calls below may fail so:
  //   UNAVAILABLE  the disk refused (full?). Nothing has changed; later calls may succeed: after a
  //                refusal the database is closed, and opened again by a later call.

  // Appends one entry and its notes, all or nothing, and returns the entry's position. They survive
  // a crash of the process; a crash of the machine may take what came after the last Sync().
  absl::StatusOr<uint64_t> Append(absl::string_view entry, const std::vector<Note>& notes = {})
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The same for several entries at once; returns the position of the first. Not none. With
  // `trim_to`, all entries before that position are removed in the same write.
  //   UNAVAILABLE  as above, but with `trim_to` the refused write may turn out to have been made.
  //                If so, the first call after it that finds this out fails too, and begin() and
  //                end() have moved.
  absl::StatusOr<uint64_t> AppendAll(std::span<const std::string> entries,
                                     const std::vector<Note>& notes, uint64_t trim_to = 0)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Puts another entry in the place of one that is kept, also of a damaged one. As after Append(),
  // a crash of the machine may undo it until the next Sync(). With `trim_to`, which must not be
  // past it, all entries before that position are removed in the same write.
  //   OUT_OF_RANGE  no entry is kept there.
  absl::Status Replace(uint64_t position, absl::string_view entry, uint64_t trim_to = 0)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status WriteNotes(const std::vector<Note>& notes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes durable what was appended before the call. Appending goes on meanwhile.
  absl::Status Sync() ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether the disk has the room that reading, trimming and opening need: RocksDB writes out and
  // merges what it has. Entries that are appended while it has not may become unreadable.
  bool HasSpareRoom() const;
  // Gives the disk back what trimmed entries took, as far as whole files held nothing else. Left to
  // RocksDB, that would be done when so much has been appended again.
  absl::Status ReleaseRoom() ABSL_LOCKS_EXCLUDED(mutex_);

  // The notes whose key begins with `prefix`, by key.
  absl::StatusOr<std::vector<Note>> ReadNotes(absl::string_view prefix) ABSL_LOCKS_EXCLUDED(mutex_);

  // Removes all entries before `position`.
  absl::Status Trim(uint64_t position) ABSL_LOCKS_EXCLUDED(mutex_);

  struct Entry {
    uint64_t position = 0;
    std::string bytes;
  };
  // Entries from `position` on, at most `max_bytes` of them but at least one if there is one.
  //   DATA_LOSS  an entry does not match its checksum; the text names its position. Entries before
  //              it are returned first, by themselves.
  absl::StatusOr<std::vector<Entry>> Read(uint64_t position, uint64_t max_bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Database;

  explicit SpoolJournal(SpoolJournalOptions options);

  static absl::StatusOr<std::shared_ptr<Database>> OpenDatabase(const SpoolJournalOptions& options);

  // The open database, opening it again if a refusal closed it.
  absl::StatusOr<std::shared_ptr<Database>> Use() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::shared_ptr<Database>> UseLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Reopen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Write(const std::shared_ptr<Database>& database, rocksdb::WriteBatch* write)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Adopt(std::shared_ptr<Database> database) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NotePositions() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const SpoolJournalOptions options_;
  uint64_t generation_ = 0;
  mutable absl::Mutex mutex_;
  // Null after a refusal. Readers hold it on while they read, outside the lock.
  std::shared_ptr<Database> database_ ABSL_GUARDED_BY(mutex_);
  absl::Time last_reopen_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  // The journal's, kept here to be known while it is closed.
  uint64_t begin_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t end_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tacho::storage
