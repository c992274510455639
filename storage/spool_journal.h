// A journal with a database of its own: what the agent spools to.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "storage/journal.h"

namespace rocksdb {
class DB;
class Env;
}  // namespace rocksdb

namespace tacho::storage {

struct SpoolJournalOptions {
  std::string path;             // Directory; created if missing.
  rocksdb::Env* env = nullptr;  // Not owned; must outlive the journal. nullptr: the real one.
};

// Thread-safe. Positions count from 1 and are never reused within a generation.
class SpoolJournal {
 public:
  //   DATA_LOSS    the database is damaged. The caller may move the directory away and open anew.
  //   UNAVAILABLE  the disk refused, or another process has the directory open.
  static absl::StatusOr<std::unique_ptr<SpoolJournal>> Open(SpoolJournalOptions options);
  ~SpoolJournal();

  // Drawn at random when the directory was created. Not 0.
  uint64_t generation() const { return generation_; }
  uint64_t begin() const ABSL_LOCKS_EXCLUDED(mutex_);  // Oldest position kept.
  uint64_t end() const ABSL_LOCKS_EXCLUDED(mutex_);    // Position of the next entry.
  uint64_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);  // Of the entries kept, as written.

  // A note that lives beside the entries, by key, until it is replaced: how far a source has read, a
  // layout that entries refer to. An empty value removes it.
  struct Note {
    std::string key;
    std::string value;
  };

  // Appends one entry and its notes, all or nothing, and returns the entry's position. They survive a
  // crash of the process; a crash of the machine may take what came after the last Sync().
  //   UNAVAILABLE  the disk refused (full?). Nothing was appended; later calls may succeed.
  absl::StatusOr<uint64_t> Append(absl::string_view entry, const std::vector<Note>& notes = {})
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status WriteNotes(const std::vector<Note>& notes);
  absl::Status Sync();

  // The notes whose key begins with `prefix`, by key.
  absl::StatusOr<std::vector<Note>> ReadNotes(absl::string_view prefix) const;

  // Removes all entries before `position`.
  absl::Status Trim(uint64_t position) ABSL_LOCKS_EXCLUDED(mutex_);

  struct Entry {
    uint64_t position = 0;
    std::string bytes;
  };
  // Entries from `position` on, at most `max_bytes` of them but at least one if there is one.
  //   DATA_LOSS  an entry does not match its checksum; the text names its position.
  absl::StatusOr<std::vector<Entry>> Read(uint64_t position, uint64_t max_bytes) const;

 private:
  SpoolJournal();

  uint64_t generation_ = 0;
  std::unique_ptr<rocksdb::DB> db_;
  mutable absl::Mutex mutex_;
  std::unique_ptr<Journal> journal_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::storage
