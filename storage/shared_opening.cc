// The nonces of claims are in a file of their own, not in the database: until it is decided what
// the directory is worth, nothing may be written into the database. How far its log goes is what
// decides.
#include "storage/shared_opening.h"

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "proto/base/timed_wait.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "storage/db/commit_mark.h"
#include "storage/db/directory_check.h"
#include "storage/db/rocksdb_status.h"
#include "storage/history_record.h"
#include "storage/shard/bucket_keys.h"
#include "storage/shard/manifest_object.h"
#include "storage/shard/shard_count.h"
#include "storage/shipping/state_restore.h"

namespace tacho::storage {
namespace {

constexpr char kClaimsFile[] = "bucket-claims";
constexpr size_t kMaxClaims = 64;
constexpr int kMaxOpeningTries = 6;
constexpr absl::Duration kFirstOpeningWait = absl::Seconds(1);

// The nonces of the manifests by which this directory has claimed the shard, and built on its own
// content.
class Claims {
 public:
  Claims(rocksdb::Env* env, const std::string& directory)
      : env_(env), path_(absl::StrCat(directory, "/", kClaimsFile)) {
    std::string text;
    if (!rocksdb::ReadFileToString(env_, path_, &text).ok()) return;
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      uint64_t nonce = 0;
      if (absl::SimpleHexAtoi(line, &nonce)) nonces_.push_back(nonce);
    }
  }

  bool Has(uint64_t nonce) const {
    return std::find(nonces_.begin(), nonces_.end(), nonce) != nonces_.end();
  }

  // Synced before it returns.
  absl::Status Add(uint64_t nonce) {
    nonces_.push_back(nonce);
    if (nonces_.size() > kMaxClaims) nonces_.erase(nonces_.begin());
    const std::string text = absl::StrJoin(nonces_, "\n", [](std::string* out, uint64_t one) {
      absl::StrAppend(out, absl::Hex(one, absl::kZeroPad16));
    });
    const std::string next = absl::StrCat(path_, ".new");
    rocksdb::Status status = rocksdb::WriteStringToFile(env_, text + "\n", next, true);
    if (status.ok()) status = env_->RenameFile(next, path_);
    return FromRocksDb(status, absl::StrCat("write ", path_));
  }

 private:
  rocksdb::Env* const env_;
  const std::string path_;
  std::vector<uint64_t> nonces_;
};

// Whether it belongs to a database, or says something about one.
bool IsDatabaseFile(absl::string_view name) {
  for (const char* whole :
       {"CURRENT", "LOCK", "IDENTITY", "archive", "ballast", kClaimsFile, CommitMark::kFileName}) {
    if (name == whole) return true;
  }
  return absl::EndsWith(name, ".sst") || absl::EndsWith(name, ".log") ||
         absl::EndsWith(name, ".dbtmp") || absl::StartsWith(name, "MANIFEST-") ||
         absl::StartsWith(name, "OPTIONS-");
}

// One attempt to open. Each step leaves the directory and the bucket so that another attempt, by
// anybody, finds its way.
class Opener {
 public:
  Opener(const StoreOptions& options, DatabaseOptions database)
      : options_(options),
        database_options_(std::move(database)),
        env_(options.env == nullptr ? rocksdb::Env::Default() : options.env),
        claims_(env_, options.path),
        object_({.bucket = options.history.bucket,
                 .shard = options.history.shard,
                 .random = [this] { return nonce_; },
                 .before_retry = [this](int tries) { return Wait(tries); }}) {}

  absl::StatusOr<SharedOpening> Open() {
    TACHO_RETURN_IF_ERROR(
        CheckShardCount(*options_.history.bucket, options_.history.shards, object_.before_retry()));
    TACHO_RETURN_IF_ERROR(OpenLocal());
    Reach(options_.at_point, crash_point::kSharedOpened);
    for (;;) {
      const absl::Status claimed = Claim();
      if (absl::IsAborted(claimed)) continue;  // Somebody was faster; look who.
      TACHO_RETURN_IF_ERROR(claimed);
      break;
    }
    Reach(options_.at_point, crash_point::kSharedClaimed);
    uint64_t shipped = 0;
    TACHO_ASSIGN_OR_RETURN(opening_.sealed,
                           SealOlderLogs(object_, opening_.claimed, [&](const Segment& segment) {
                             // Older ones count the sequences of a database before this one.
                             if (segment.place.epoch >= restored_at_) shipped = segment.last;
                             return absl::OkStatus();
                           }));
    Reach(options_.at_point, crash_point::kSharedSealed);
    const bool has_copy = !opening_.claimed.positions.empty();
    if (!has_copy || (mine_ && sequence_ >= shipped)) {
      if (opening_.database == nullptr) TACHO_RETURN_IF_ERROR(OpenDatabase());
      return std::move(opening_);
    }
    if (opening_.database != nullptr) {
      Log(absl::StrCat("the bucket is ahead of ", options_.path, ": ",
                       mine_ ? "the end of its log is missing"
                             : absl::StrCat("its owner was another store since (now epoch ",
                                            opening_.claimed.epoch, ")")));
    }
    TACHO_RETURN_IF_ERROR(Restore());
    return std::move(opening_);
  }

 private:
  void Log(absl::string_view line) const {
    if (options_.log != nullptr) options_.log(line);
  }

  absl::Status Wait(int tries) {
    if (!options_.background || tries >= kMaxOpeningTries) {
      return absl::UnavailableError(
          "the bucket does not answer, and without it nobody knows "
          "whether this store is the newest: see bucket.url");
    }
    absl::Mutex mutex;
    absl::MutexLock lock(&mutex);
    const bool never = false;
    AwaitFor(&mutex, absl::Condition(&never), kFirstOpeningWait * (1 << (tries - 1)));
    return absl::OkStatus();
  }

  absl::Status OpenDatabase() {
    TACHO_ASSIGN_OR_RETURN(opening_.database, Database::Open(database_options_));
    if (opening_.database->overlay == nullptr) return absl::OkStatus();
    opening_.database.reset();
    return absl::UnavailableError(
        absl::StrCat("the disk of ", options_.path,
                     " is full: with ack: shared a store is opened only if it can be written"));
  }

  absl::Status OpenLocal() {
    if (IsHalfRestored(env_, options_.path)) return absl::OkStatus();
    if (!env_->FileExists(absl::StrCat(options_.path, "/CURRENT")).ok()) return absl::OkStatus();
    TACHO_RETURN_IF_ERROR(OpenDatabase());
    sequence_ = opening_.database->db->GetLatestSequenceNumber();
    std::string restored_at;
    const rocksdb::Status read =
        opening_.database->db->Get(rocksdb::ReadOptions(), kRestoredAtKey, &restored_at);
    if (!read.ok() && !read.IsNotFound()) return FromRocksDb(read, "read the epoch of the restore");
    if (read.ok() && !absl::SimpleAtoi(restored_at, &restored_at_)) {
      return absl::DataLossError("the epoch of the restore is damaged");
    }
    record_.emplace(opening_.database.get());
    return record_->Load();
  }

  // ABORTED: the manifest has changed meanwhile.
  absl::Status Claim() {
    const absl::StatusOr<ReadManifest> old = object_.Read();
    if (!old.ok() && !absl::IsNotFound(old.status())) return old.status();
    mine_ = old.ok() && record_.has_value() &&
            (record_->IsMine(old->manifest.nonce) || claims_.Has(old->manifest.nonce));
    TACHO_RETURN_IF_ERROR(CheckOwner(old.ok() ? &old->manifest : nullptr));
    Manifest next = old.ok() ? old->manifest : Manifest{.shard = options_.history.shard};
    ++next.epoch;
    next.owner = options_.history.owner;
    next.logs.push_back({.epoch = next.epoch, .first = 1});
    std::random_device device;
    nonce_ = (uint64_t{device()} << 32) | device();
    // Only of a claim that goes on from what is in the directory. After another claim, a crash must
    // not leave the directory looking like the newest.
    if (mine_) TACHO_RETURN_IF_ERROR(claims_.Add(nonce_));
    const auto written =
        old.ok() ? object_.Replace(*old, std::move(next)) : object_.Create(std::move(next));
    if (!written.ok()) return written.status();
    opening_.claimed = written->manifest;
    return absl::OkStatus();
  }

  absl::Status CheckOwner(const Manifest* manifest) const {
    if (manifest == nullptr) {
      if (!record_.has_value() || !record_->known()) return absl::OkStatus();
      return absl::FailedPreconditionError(absl::StrCat(
          "the manifest ", ManifestKey(options_.history.shard),
          " is not in the bucket any more, and days of this store are there: restore it, or undo "
          "the change of bucket.url"));
    }
    if (mine_) return absl::OkStatus();
    if (manifest->positions.empty() && !manifest->closed_days.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the bucket has the days of another store (last written by ",
                       manifest->owner, "), without its index: set another bucket.url"));
    }
    // A crash right after a restore leaves a store that knows no manifest, but says what it is.
    const bool is_own = record_.has_value() && !record_->known() && restored_at_ == 0;
    if (!manifest->positions.empty() && is_own) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the bucket has a whole store (last written by ", manifest->owner, "), and ",
          options_.path, " has another: set another bucket.url, or empty the directory"));
    }
    return absl::OkStatus();
  }

  absl::Status Restore() {
    const absl::Time begun = MonotonicNow();
    record_.reset();
    opening_.database.reset();
    std::vector<std::string> names;
    std::vector<std::string> kept;
    env_->CreateDirIfMissing(options_.path).PermitUncheckedError();
    env_->GetChildren(options_.path, &names).PermitUncheckedError();
    bool moves = false;
    for (const std::string& name : names) {
      if (IsDatabaseFile(name)) {
        moves = true;
      } else {
        kept.push_back(name);
      }
    }
    if (moves && !IsHalfRestored(env_, options_.path)) {
      TACHO_ASSIGN_OR_RETURN(const std::string aside, MoveAside(env_, options_.path, kept));
      Log(absl::StrCat("what was in ", options_.path, " is now in ", aside,
                       "; delete it if nobody needs it"));
    }
    Log("restoring the store from the bucket");
    TACHO_ASSIGN_OR_RETURN(
        const auto restorer,
        StateRestorer::Begin({.env = env_,
                              .path = options_.path,
                              .bucket = options_.history.bucket,
                              .before_retry = [this](int tries) { return Wait(tries); },
                              .format = absl::StrCat(kFormatVersion),
                              .epoch = opening_.claimed.epoch},
                             opening_.claimed));
    // They are sealed: this reads them once more.
    TACHO_RETURN_IF_ERROR(SealOlderLogs(object_, opening_.claimed, [&](const Segment& segment) {
                            return restorer->Apply(segment);
                          }).status());
    TACHO_RETURN_IF_ERROR(restorer->Finish());
    Reach(options_.at_point, crash_point::kSharedRestored);
    TACHO_RETURN_IF_ERROR(OpenDatabase());
    opening_.restored = true;
    opening_.took = MonotonicNow() - begun;
    Log(absl::StrCat("the store is restored, in ",
                     absl::FormatDuration(absl::Trunc(opening_.took, absl::Milliseconds(1)))));
    return absl::OkStatus();
  }

  const StoreOptions& options_;
  const DatabaseOptions database_options_;
  rocksdb::Env* const env_;
  Claims claims_;
  uint64_t nonce_ = 0;  // Of the next claim.
  const ManifestObject object_;
  SharedOpening opening_;
  std::optional<HistoryRecord> record_;
  uint64_t sequence_ = 0;     // Of the directory's database.
  uint64_t restored_at_ = 0;  // The epoch in which the directory was made of the bucket.
  bool mine_ = false;         // The manifest was written by the directory's store.
};

}  // namespace

absl::StatusOr<SharedOpening> OpenShared(const StoreOptions& options, DatabaseOptions database) {
  return Opener(options, std::move(database)).Open();
}

}  // namespace tacho::storage
