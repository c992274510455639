#include "storage/check_store.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "storage/codec/keys.h"
#include "storage/db/commit_mark.h"
#include "storage/db/database.h"
#include "storage/db/directory_check.h"
#include "storage/db/rocksdb_status.h"
#include "storage/index/job_table.h"
#include "storage/index/series_index.h"
#include "storage/journal/journal.h"
#include "storage/journal/rows_entry.h"

namespace tacho::storage {
namespace {

// The families by name; closes them and the database.
struct OpenToRead {
  ~OpenToRead() {
    for (auto* handle : handles) db->DestroyColumnFamilyHandle(handle);
  }
  rocksdb::ColumnFamilyHandle* Find(const std::string& name) const {
    for (auto* handle : handles) {
      if (handle->GetName() == name) return handle;
    }
    return nullptr;
  }

  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
};

absl::Status Open(const std::string& path, OpenToRead* open) {
  rocksdb::DBOptions options;
  options.info_log = std::make_shared<SilentLogger>();
  options.paranoid_checks = true;
  options.track_and_verify_wals_in_manifest = true;
  options.max_open_files = 512;
  std::vector<std::string> names;
  const rocksdb::Status listed = rocksdb::DB::ListColumnFamilies(options, path, &names);
  TACHO_RETURN_IF_ERROR(CheckDirectory(nullptr, path, names));
  if (listed.IsPathNotFound() || listed.IsNotFound() || listed.IsIOError()) {
    return absl::NotFoundError(absl::StrCat(path, ": no database: ", listed.ToString()));
  }
  if (!listed.ok()) return FromRocksDb(listed, absl::StrCat("open ", path));
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  families.reserve(names.size());
  for (const std::string& name : names) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
  rocksdb::DB* db = nullptr;
  const rocksdb::Status opened =
      rocksdb::DB::OpenForReadOnly(options, path, families, &open->handles, &db);
  open->db.reset(db);
  return FromRocksDb(opened, absl::StrCat("open ", path));
}

absl::Status CheckFormatVersion(const OpenToRead& open) {
  std::string text;
  const rocksdb::Status read = open.db->Get(rocksdb::ReadOptions(), "format", &text);
  if (!read.ok() && !read.IsNotFound()) return FromRocksDb(read, "read the format version");
  int version = 0;
  if (read.ok() && absl::SimpleAtoi(text, &version) && version == kFormatVersion) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      read.IsNotFound() ? "the directory holds a RocksDB database that is not Tachograph's"
                        : absl::StrCat("the database has format version \"", text,
                                       "\"; this program reads version ", kFormatVersion, " only"));
}

void NoteTime(int64_t time_ns, StoreContents* contents) {
  contents->newest_ns = std::max(contents->newest_ns.value_or(time_ns), time_ns);
}

// Each entry has a checksum of its own.
absl::Status ReadJournal(const OpenToRead& open, StoreContents* contents) {
  Journal journal(open.db.get(), open.Find(kJournalFamily));
  return journal.Recover([contents](uint64_t position, absl::string_view bytes) {
    ++contents->journal_entries;
    const auto entry = DecodeRowsEntry(bytes);
    if (!entry) return absl::DataLossError(absl::StrCat("journal entry ", position, " is damaged"));
    for (size_t row = 0; row < entry->rows; ++row) NoteTime(entry->Time(row), contents);
    return absl::OkStatus();
  });
}

// A copy has no mark, and nothing to compare.
absl::Status CompareWithMark(const std::string& path, const OpenToRead& open,
                             const std::optional<CommitCount>& marked) {
  TACHO_ASSIGN_OR_RETURN(const auto found, ReadCommitCount(open.db.get(), open.Find("state")));
  if (!marked || marked->commits <= found.commits) return absl::OkStatus();
  return absl::DataLossError(DescribeMissing(path, found, *marked));
}

}  // namespace

absl::StatusOr<StoreContents> CheckStore(const std::string& path) {
  // First: a collector that works on the directory meanwhile may get further, but not back.
  TACHO_ASSIGN_OR_RETURN(const auto marked, CommitMark(nullptr, path, nullptr).Read());
  OpenToRead open;
  TACHO_RETURN_IF_ERROR(Open(path, &open));
  TACHO_RETURN_IF_ERROR(CheckFormatVersion(open));
  for (const char* name : {kJournalFamily, "index", "state", "events"}) {
    if (open.Find(name) != nullptr) continue;
    return absl::DataLossError(absl::StrCat(path, ": the column family ", name, " is missing"));
  }
  if (const rocksdb::Status verified = open.db->VerifyChecksum(); !verified.ok()) {
    return FromRocksDb(verified, absl::StrCat("read ", path));
  }
  TACHO_RETURN_IF_ERROR(CompareWithMark(path, open, marked));
  StoreContents contents;
  SeriesIndex index(open.db.get(), open.Find("index"), {});
  TACHO_RETURN_IF_ERROR(index.Load());
  contents.jobs = index.counts().jobs;
  contents.series = index.counts().series;
  JobTable jobs(open.db.get(), open.Find("state"));
  TACHO_RETURN_IF_ERROR(jobs.Load());
  for (const int64_t last_ns : jobs.LastTimes()) NoteTime(last_ns, &contents);
  TACHO_RETURN_IF_ERROR(ReadJournal(open, &contents));
  for (auto* handle : open.handles) {
    if (ParsePartitionName(handle->GetName())) ++contents.days;
    uint64_t bytes = 0;
    open.db->GetIntProperty(handle, rocksdb::DB::Properties::kLiveSstFilesSize, &bytes);
    contents.table_bytes += bytes;
  }
  return contents;
}

}  // namespace tacho::storage
