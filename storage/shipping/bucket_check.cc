// Each fault is noted, and the check goes on. An object that is missing is a fault only if the
// manifest that is there by then names it.
#include "storage/shipping/bucket_check.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "rocksdb/env.h"
#include "rocksdb/iterator.h"
#include "rocksdb/options.h"
#include "rocksdb/sst_file_reader.h"
#include "storage/codec/frame.h"
#include "storage/codec/keys.h"
#include "storage/db/rocksdb_status.h"
#include "storage/db/table_check.h"
#include "storage/shard/bucket_keys.h"
#include "storage/shard/garbage.h"
#include "storage/shard/manifest_object.h"
#include "storage/shipping/shipped_batch.h"
#include "storage/shipping/state_export.h"
#include "storage/shipping/state_restore.h"

namespace tacho::storage {
namespace {

constexpr absl::Duration kProgressPause = absl::Seconds(5);
// A manifest that changes each time is read so often; then its owner is far too quick for a check.
constexpr int kMaxBegins = 5;

// A table in memory, to be read once.
class TableInMemory {
 public:
  TableInMemory() : env_(rocksdb::NewMemEnv(rocksdb::Env::Default())) {}

  // Gives each key and value to `visit`.
  absl::Status Read(
      const std::string& body,
      const std::function<absl::Status(absl::string_view, absl::string_view)>& visit) {
    constexpr char kPath[] = "/table.sst";
    TACHO_RETURN_IF_ERROR(
        FromRocksDb(rocksdb::WriteStringToFile(env_.get(), body, kPath), "keep a table in memory"));
    TACHO_RETURN_IF_ERROR(CheckTable(env_.get(), kPath));
    rocksdb::Options options;
    options.env = env_.get();
    rocksdb::SstFileReader reader(options);
    TACHO_RETURN_IF_ERROR(FromRocksDb(reader.Open(kPath), "open the table"));
    TACHO_RETURN_IF_ERROR(FromRocksDb(reader.VerifyChecksum(), "verify the table"));
    const std::unique_ptr<rocksdb::Iterator> it(reader.NewIterator(rocksdb::ReadOptions()));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      TACHO_RETURN_IF_ERROR(visit(View(it->key()), View(it->value())));
    }
    return FromRocksDb(it->status(), "read the table");
  }

 private:
  const std::unique_ptr<rocksdb::Env> env_;
};

absl::Status CheckColumn(int64_t day, absl::string_view key, absl::string_view value) {
  if (absl::StartsWith(key, "T")) return DecodeTimeColumn(value).status();
  const auto column = ValueColumnKey::Decode(key);
  if (!column.has_value()) return absl::DataLossError("a key is no column's");
  if (DayOf(column->first_time_ns) != day) {
    return absl::DataLossError("it has a column of another day");
  }
  return DecodeValueColumnHeader(column->first_time_ns, value).status();
}

class BucketCheck {
 public:
  explicit BucketCheck(const BucketCheckOptions& options)
      : options_(options),
        object_({.bucket = options.bucket,
                 .shard = options.shard,
                 .random = [] { return uint64_t{0}; },  // For writes; there are none.
                 .before_retry = options.before_retry}) {}

  absl::StatusOr<BucketChecked> Run() {
    for (int begins = 1;; ++begins) {
      const absl::Status checked = CheckOnce();
      if (checked.ok()) return std::move(found_);
      // The log was committed and trimmed under our hands.
      if (!absl::IsAborted(checked) || begins == kMaxBegins) return checked;
    }
  }

 private:
  void Progress(absl::string_view where) {
    if (options_.log == nullptr || MonotonicNow() < next_report_) return;
    next_report_ = MonotonicNow() + kProgressPause;
    options_.log(absl::StrCat("checking ", where));
  }

  absl::Status CheckOnce() {
    found_ = BucketChecked();
    TACHO_ASSIGN_OR_RETURN(ReadManifest read, object_.ReadExisting());
    manifest_ = std::move(read.manifest);
    found_.owner = manifest_.owner;
    found_.epoch = manifest_.epoch;
    found_.version = manifest_.version;
    found_.has_copy = !manifest_.positions.empty();
    if (found_.has_copy) TACHO_RETURN_IF_ERROR(CheckLogs());
    for (const StateFile& file : manifest_.state) TACHO_RETURN_IF_ERROR(CheckState(file));
    for (const auto& [day, blocks] : manifest_.open_days) {
      TACHO_RETURN_IF_ERROR(CheckBlocks(day, blocks));
    }
    for (const auto& [day, list] : manifest_.closed_days) {
      TACHO_RETURN_IF_ERROR(CheckDay(day, list));
    }
    return absl::OkStatus();
  }

  void Note(absl::string_view key, absl::string_view what) {
    const bool named = absl::StrContains(what, key);
    found_.faults.push_back(
        {std::string(key), named ? std::string(what) : absl::StrCat(key, ": ", what)});
  }

  // Of a file that was not in the bucket. A day's list or its blocks are named while its list is.
  absl::Status NoteMissing(absl::string_view key, std::optional<int64_t> day) {
    TACHO_ASSIGN_OR_RETURN(const ReadManifest now, object_.Read());
    const std::set<std::string> files = FilesOf(now.manifest);
    bool is_named = files.contains(std::string(key));
    if (day.has_value()) {
      const auto list = manifest_.closed_days.find(*day);
      is_named =
          is_named || (list != manifest_.closed_days.end() && files.contains(list->second.key));
    }
    if (is_named) Note(key, MissingFile(key).message());
    return absl::OkStatus();
  }

  // The body, if it is there and as it should be. Else the fault is noted, and there is no value.
  absl::StatusOr<std::optional<std::string>> ReadWhole(const StoredFile& file,
                                                       std::optional<int64_t> day) {
    found_.bytes += file.bytes;
    auto body = GetNamedFile(*options_.bucket, file, options_.before_retry);
    if (body.ok()) return *std::move(body);
    if (absl::IsNotFound(body.status())) {
      TACHO_RETURN_IF_ERROR(NoteMissing(file.key, day));
      return std::nullopt;
    }
    if (!absl::IsDataLoss(body.status())) return body.status();
    Note(file.key, body.status().message());
    return std::nullopt;
  }

  // --- The log -----------------------------------------------------------------------------------

  absl::Status CheckLogs() {
    const auto unsealed_from = DecodePositions(manifest_.positions);
    if (!unsealed_from.ok()) Note(ManifestKey(options_.shard), unsealed_from.status().message());
    uint64_t first_position = 0;
    const auto visit = [&](const Segment& segment) {
      ++found_.segments;
      const std::string key =
          SegmentKey(segment.place.shard, segment.place.epoch, segment.place.number);
      Progress(key);
      for (const std::string& record : segment.records) {
        const auto position = CheckRecord(record);
        if (!position.ok()) {
          Note(key, position.status().message());
          break;
        }
        if (first_position == 0) first_position = *position;
      }
      return absl::OkStatus();
    };
    const auto note = [&](absl::string_view key, const absl::Status& what) {
      Note(key, what.message());
      return absl::OkStatus();
    };
    TACHO_ASSIGN_OR_RETURN(found_.logs, ReadLogs(object_, manifest_, visit, note));
    // Of a log with a fault it is not known where it begins.
    if (found_.faults.empty() && first_position > *unsealed_from) {
      Note(ManifestKey(options_.shard),
           absl::StrCat("the log in the bucket begins at position ", first_position,
                        " of the journal, and is needed from ", *unsealed_from, " on"));
    }
    return absl::OkStatus();
  }

  // --- Files -------------------------------------------------------------------------------------

  absl::Status CheckState(const StateFile& file) {
    ++found_.state_files;
    Progress(file.file.key);
    TACHO_ASSIGN_OR_RETURN(const auto body, ReadWhole(file.file, std::nullopt));
    const auto table = DecodeStateMetadata(file.metadata);
    if (!table.ok()) {
      Note(file.file.key, table.status().message());
      return absl::OkStatus();
    }
    if (table->bytes != file.file.bytes) {
      Note(file.file.key, "its metadata is that of a table of another size");
    }
    if (!body.has_value() || !options_.deep) return absl::OkStatus();
    const absl::Status readable =
        table_.Read(*body, [](absl::string_view, absl::string_view) { return absl::OkStatus(); });
    if (!readable.ok()) Note(file.file.key, readable.message());
    return absl::OkStatus();
  }

  absl::Status CheckDay(int64_t day, const StoredFile& list) {
    ++found_.days;
    TACHO_ASSIGN_OR_RETURN(const auto body, ReadWhole(list, day));
    if (!body.has_value()) return absl::OkStatus();
    const auto blocks = DecodeBlockList(*body);
    if (blocks.ok()) return CheckBlocks(day, *blocks);
    Note(list.key, blocks.status().message());
    return absl::OkStatus();
  }

  absl::Status CheckBlocks(int64_t day, const std::vector<Block>& blocks) {
    for (const Block& block : blocks) {
      ++found_.blocks;
      Progress(block.file.key);
      TACHO_RETURN_IF_ERROR(options_.deep ? CheckContent(day, block) : CheckSize(day, block));
    }
    return absl::OkStatus();
  }

  // By its last byte, and that there is none behind it: no listing has to be believed.
  absl::Status CheckSize(int64_t day, const Block& block) {
    const StoredFile& file = block.file;
    found_.bytes += file.bytes;
    const uint64_t last = file.bytes == 0 ? 0 : file.bytes - 1;
    absl::StatusOr<std::string> end;
    for (int tries = 1;; ++tries) {
      end = options_.bucket->GetRange(file.key, last, 2);
      if (!absl::IsUnavailable(end.status())) break;
      TACHO_RETURN_IF_ERROR(options_.before_retry(tries));
    }
    if (absl::IsNotFound(end.status())) return NoteMissing(file.key, day);
    if (!end.ok()) return end.status();
    if (last + end->size() != file.bytes) {
      Note(file.key, absl::StrCat("it has ", end->size() < 2 ? "fewer" : "more", " than the ",
                                  file.bytes, " bytes that its list says"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckContent(int64_t day, const Block& block) {
    TACHO_ASSIGN_OR_RETURN(const auto body, ReadWhole(block.file, day));
    if (!body.has_value()) return absl::OkStatus();
    std::string first;
    std::string last;
    absl::Status readable =
        table_.Read(*body, [&](absl::string_view key, absl::string_view value) -> absl::Status {
          if (last.empty()) first = std::string(key);
          last = std::string(key);
          return CheckColumn(day, key, value);
        });
    if (readable.ok() && (first != block.first_key || last != block.last_key)) {
      readable = absl::DataLossError("it begins or ends with another key than its list says");
    }
    if (!readable.ok()) Note(block.file.key, readable.message());
    return absl::OkStatus();
  }

  const BucketCheckOptions& options_;
  const ManifestObject object_;
  Manifest manifest_;
  BucketChecked found_;
  TableInMemory table_;
  absl::Time next_report_ = absl::InfinitePast();
};

}  // namespace

absl::StatusOr<BucketChecked> CheckBucket(const BucketCheckOptions& options) {
  TACHO_CHECK(options.bucket != nullptr && options.before_retry != nullptr);
  return BucketCheck(options).Run();
}

}  // namespace tacho::storage
