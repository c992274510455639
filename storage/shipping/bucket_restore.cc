// The lists of closed days are read first: then it is known how much comes, and what an owner who
// goes on writing may replace meanwhile is only noticed at the blocks themselves. Owners keep what
// they replace for an hour.
#include "storage/shipping/bucket_restore.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "rocksdb/env.h"
#include "storage/db/database.h"
#include "storage/db/directory_check.h"
#include "storage/db/rocksdb_status.h"
#include "storage/shard/bucket_keys.h"
#include "storage/shard/manifest_object.h"
#include "storage/shipping/state_restore.h"

namespace tacho::storage {
namespace {

// Between two lines of progress.
constexpr absl::Duration kReportPause = absl::Seconds(5);

std::string InMiB(uint64_t bytes) {
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

class BucketRestore {
 public:
  explicit BucketRestore(const BucketRestoreOptions& options)
      : options_(options),
        env_(options.env == nullptr ? rocksdb::Env::Default() : options.env),
        object_({.bucket = options.bucket,
                 .shard = options.shard,
                 .random = [] { return uint64_t{0}; },  // For writes; there are none.
                 .before_retry = options.before_retry}) {}

  absl::StatusOr<BucketRestored> Run() {
    TACHO_RETURN_IF_ERROR(CheckTarget());
    TACHO_RETURN_IF_ERROR(ReadShard());
    TACHO_RETURN_IF_ERROR(ReadLists());
    TACHO_RETURN_IF_ERROR(CheckRoom());
    TACHO_RETURN_IF_ERROR(ImportState());
    TACHO_RETURN_IF_ERROR(Replay());
    for (const auto& [day, blocks] : blocks_) TACHO_RETURN_IF_ERROR(BringDay(day, blocks));
    TACHO_RETURN_IF_ERROR(restorer_->Finish());
    return std::move(restored_);
  }

 private:
  void Log(absl::string_view line) const {
    if (options_.log != nullptr) options_.log(line);
  }
  void Progress(absl::string_view where) {
    if (MonotonicNow() < next_report_) return;
    next_report_ = MonotonicNow() + kReportPause;
    Log(absl::StrCat(InMiB(restored_.bytes), " of ", InMiB(expected_bytes_), ", and ",
                     InMiB(restored_.log_bytes), " of the log: ", where));
  }

  absl::Status CheckTarget() const {
    std::vector<std::string> names;
    if (!env_->GetChildren(options_.path, &names).ok()) return absl::OkStatus();
    std::erase_if(names, [](const std::string& name) { return name == "." || name == ".."; });
    if (names.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        options_.path, IsHalfRestored(env_, options_.path)
                           ? ": an earlier restore ended half way here: delete the directory first"
                           : " is not empty: name a directory that is empty or not there"));
  }

  absl::Status ReadShard() {
    TACHO_ASSIGN_OR_RETURN(ReadManifest read, object_.ReadExisting());
    manifest_ = std::move(read.manifest);
    restored_.owner = manifest_.owner;
    restored_.epoch = manifest_.epoch;
    restored_.version = manifest_.version;
    if (!manifest_.positions.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "the bucket has only old days of this store and no copy of it: a collector keeps one there "
        "with 'ack: shared'. Restore a snapshot of it.");
  }

  // Which blocks belong to which day.
  absl::Status ReadLists() {
    for (const StateFile& file : manifest_.state) expected_bytes_ += file.file.bytes;
    blocks_ = manifest_.open_days;
    for (const auto& [day, list] : manifest_.closed_days) {
      if (options_.closed_days_from.has_value() && day < *options_.closed_days_from) {
        restored_.left_out.push_back(day);
        continue;
      }
      const auto text = GetNamedFile(*options_.bucket, list, options_.before_retry);
      if (absl::IsNotFound(text.status())) {
        TACHO_RETURN_IF_ERROR(CheckExpired(day, list.key));
        restored_.left_out.push_back(day);
        continue;
      }
      if (!text.ok()) return text.status();
      auto blocks = DecodeBlockList(*text);
      if (!blocks.ok()) {
        return absl::Status(blocks.status().code(),
                            absl::StrCat(list.key, ": ", blocks.status().message()));
      }
      blocks_[day] = *std::move(blocks);
    }
    for (const auto& [day, blocks] : blocks_) {
      for (const Block& block : blocks) expected_bytes_ += block.file.bytes;
    }
    return absl::OkStatus();
  }

  absl::Status CheckRoom() const {
    uint64_t free = 0;
    std::string place = options_.path;
    // The directory may have to be made, in one that is there.
    if (!env_->FileExists(place).ok()) place.resize(place.find_last_of('/') + 1);
    if (place.empty()) place = ".";
    if (!env_->GetFreeSpace(place, &free).ok() || free >= expected_bytes_) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(options_.path, ": the restore takes at least ", InMiB(expected_bytes_),
                     ", and the disk has ", InMiB(free),
                     " left: free some room, name another directory, or leave old days out"));
  }

  absl::Status ImportState() {
    Log(absl::StrCat("reading ", InMiB(expected_bytes_), " of state and old days, written last by ",
                     manifest_.owner, " in epoch ", manifest_.epoch));
    auto restorer = StateRestorer::Begin({.env = env_,
                                          .path = options_.path,
                                          .bucket = options_.bucket,
                                          .before_retry = options_.before_retry,
                                          .format = absl::StrCat(kFormatVersion)},
                                         manifest_);
    if (absl::IsDataLoss(restorer.status())) TACHO_RETURN_IF_ERROR(CheckStateIsNamed());
    if (!restorer.ok()) return restorer.status();
    restorer_ = *std::move(restorer);
    for (const StateFile& file : manifest_.state) {
      restored_.bytes += file.file.bytes;
      ++restored_.state_files;
    }
    return absl::OkStatus();
  }

  // ABORTED: state files are not in the bucket any more because its owner has written others.
  absl::Status CheckStateIsNamed() const {
    TACHO_ASSIGN_OR_RETURN(const ReadManifest now, object_.Read());
    for (const StateFile& file : manifest_.state) {
      const auto& state = now.manifest.state;
      if (std::find(state.begin(), state.end(), file) != state.end()) continue;
      if (absl::IsNotFound(options_.bucket->Get(file.file.key).status())) {
        return Replaced(file.file.key);
      }
    }
    return absl::OkStatus();
  }

  static absl::Status Replaced(absl::string_view key) {
    return absl::AbortedError(absl::StrCat(
        "the owner of the bucket has replaced ", key,
        " meanwhile: delete the directory and begin again; if that happens again, leave old days "
        "out"));
  }

  absl::Status Replay() {
    const auto logs = ReadLogs(object_, manifest_, [&](const Segment& segment) {
      ++restored_.segments;
      restored_.records += segment.records.size();
      restored_.log_bytes += PayloadBytes(segment.records);
      Progress(absl::StrCat("segment ", segment.place.number, " of epoch ", segment.place.epoch));
      return restorer_->Apply(segment);
    });
    if (!logs.ok()) return logs.status();
    restored_.logs = *logs;
    return absl::OkStatus();
  }

  absl::Status BringDay(int64_t day, const std::vector<Block>& blocks) {
    for (const Block& block : blocks) {
      absl::Status added = restorer_->AddBlock(day, block.file);
      if (absl::IsDataLoss(added)) {
        const bool is_there = !absl::IsNotFound(options_.bucket->Get(block.file.key).status());
        if (is_there) return added;
        TACHO_RETURN_IF_ERROR(CheckExpired(day, block.file.key));
        restored_.left_out.push_back(day);
        return absl::OkStatus();
      }
      TACHO_RETURN_IF_ERROR(added);
      ++restored_.blocks;
      restored_.bytes += block.file.bytes;
      Progress(absl::StrCat("day ", day));
    }
    ++restored_.days;
    return absl::OkStatus();
  }

  // For an object of a day that is not in the bucket. OK: retention has removed the day since the
  // manifest was read. Else ABORTED, or DATA_LOSS if the manifest names the object still.
  absl::Status CheckExpired(int64_t day, const std::string& key) const {
    TACHO_ASSIGN_OR_RETURN(const ReadManifest now, object_.Read());
    if (const auto kept = now.manifest.kept_from_day; kept.has_value() && day < *kept) {
      return absl::OkStatus();
    }
    const auto list_of = [day](const Manifest& manifest) {
      const auto found = manifest.closed_days.find(day);
      return found == manifest.closed_days.end() ? StoredFile() : found->second;
    };
    const bool same = list_of(now.manifest) == list_of(manifest_) &&
                      now.manifest.open_days == manifest_.open_days;
    return same ? MissingFile(key) : Replaced(key);
  }

  const BucketRestoreOptions& options_;
  rocksdb::Env* const env_;
  const ManifestObject object_;
  Manifest manifest_;
  std::map<int64_t, std::vector<Block>> blocks_;
  std::unique_ptr<StateRestorer> restorer_;
  BucketRestored restored_;
  uint64_t expected_bytes_ = 0;
  absl::Time next_report_ = absl::InfinitePast();
};

}  // namespace

absl::StatusOr<BucketRestored> RestoreFromBucket(const BucketRestoreOptions& options) {
  TACHO_CHECK(options.bucket != nullptr && options.before_retry != nullptr);
  return BucketRestore(options).Run();
}

bool IsRestoreBegun(const std::string& path) {
  return IsHalfRestored(rocksdb::Env::Default(), path);
}

}  // namespace tacho::storage
