// Listens to RocksDB's errors, decides which of them can heal, and tries to resume writing. It
// looks for room itself first, because RocksDB would try without looking.
#include "storage/db/disk_watch.h"

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/listener.h"

namespace tacho::storage {
namespace {

// Written and removed again to see whether there is room; RocksDB leaves files of other names
// alone.
constexpr char kProbeName[] = "/room.probe.";
constexpr size_t kProbePiece = 1 << 20;
// Besides what is in memory: a log, a manifest, the first rows.
constexpr uint64_t kSpareBytes = 2 << 20;

// In the default column family, written without the log; it means nothing and may be lost.
constexpr char kMarkerKey[] = "resumable";

const char* Reason(rocksdb::BackgroundErrorReason reason) {
  switch (reason) {
    case rocksdb::BackgroundErrorReason::kFlush:
    case rocksdb::BackgroundErrorReason::kFlushNoWAL:
      return "writing out memory";
    case rocksdb::BackgroundErrorReason::kCompaction:
      return "compacting";
    case rocksdb::BackgroundErrorReason::kManifestWrite:
    case rocksdb::BackgroundErrorReason::kManifestWriteNoWAL:
      return "writing the manifest";
    default:
      return "writing the log";
  }
}

}  // namespace

struct DiskWatch::State {
  absl::Mutex mutex;
  absl::Status trouble ABSL_GUARDED_BY(mutex);
  rocksdb::Status::Severity severity ABSL_GUARDED_BY(mutex) = rocksdb::Status::kNoError;
  bool log_torn ABSL_GUARDED_BY(mutex) = false;  // A write to it was refused.

  void Add(const char* doing, const rocksdb::Status& status, rocksdb::Status::Severity how_bad) {
    absl::MutexLock lock(&mutex);
    if (!trouble.ok() && how_bad <= severity) return;
    severity = std::max(severity, how_bad);
    trouble = absl::UnavailableError(absl::StrCat(doing, ": ", status.ToString()));
  }
};

class DiskWatch::Listener : public rocksdb::EventListener {
 public:
  explicit Listener(std::shared_ptr<State> state) : state_(std::move(state)) {}

  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) override {
    if (error->IsShutdownInProgress()) return;
    state_->Add(Reason(reason), *error, error->severity());
    if (reason != rocksdb::BackgroundErrorReason::kWriteCallback) return;
    absl::MutexLock lock(&state_->mutex);
    state_->log_torn = true;
  }
  // RocksDB would poll for room on a thread of its own and go on behind our back: without looking
  // whether there is enough, and while others write to the log that it has not left yet.
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason /*reason*/, rocksdb::Status /*error*/,
                            bool* auto_recovery) override {
    *auto_recovery = false;
  }

 private:
  const std::shared_ptr<State> state_;
};

DiskWatch::DiskWatch(std::string path, rocksdb::Env* env)
    : path_(std::move(path)),
      env_(env == nullptr ? rocksdb::Env::Default() : env),
      state_(std::make_shared<State>()) {}

DiskWatch::~DiskWatch() = default;

std::shared_ptr<rocksdb::EventListener> DiskWatch::listener() const {
  return std::make_shared<Listener>(state_);
}

absl::Status DiskWatch::trouble() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->trouble;
}

bool DiskWatch::blocks_writes() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->severity >= rocksdb::Status::kHardError;
}

void DiskWatch::Note(const rocksdb::Status& status) {
  // RocksDB has reported to the listener how bad it is; if not, writing may be tried again.
  state_->Add("writing the journal", status,
              std::max(status.severity(), rocksdb::Status::kHardError));
}

void DiskWatch::GiveUp(const rocksdb::Status& status) {
  state_->Add("changing the manifest", status, rocksdb::Status::kFatalError);
}

bool DiskWatch::HasSpareRoom() const { return HasRoom(kSpareBytes); }

bool DiskWatch::HasRoom(uint64_t needed) const {
  uint64_t unused = 0;
  if (env_->GetFreeSpace(path_, &unused).ok() && unused < needed) return false;
  const std::string name = absl::StrCat(path_, kProbeName, probes_++);
  std::unique_ptr<rocksdb::WritableFile> file;
  rocksdb::Status status = env_->NewWritableFile(name, &file, rocksdb::EnvOptions());
  const std::string piece(kProbePiece, '\x5a');
  for (uint64_t written = 0; status.ok() && written < needed; written += piece.size()) {
    status = file->Append(piece);
  }
  if (status.ok()) status = file->Sync();
  if (file != nullptr) file->Close().PermitUncheckedError();
  file.reset();
  env_->DeleteFile(name).PermitUncheckedError();
  return status.ok();
}

DiskWatch::Outcome DiskWatch::TryResume(rocksdb::DB* db) {
  {
    absl::MutexLock lock(&state_->mutex);
    if (state_->severity >= rocksdb::Status::kFatalError) return Outcome::kNever;
  }
  // RocksDB repeats the write that was refused, into the log that it is about to leave. Where that
  // has room but the tables do not, the log would be left with half a record before a whole one,
  // and could not be read after a crash.
  uint64_t needed = 0;
  db->GetAggregatedIntProperty(rocksdb::DB::Properties::kCurSizeAllMemTables, &needed);
  if (!HasRoom(needed + kSpareBytes)) return Outcome::kNotYet;
  bool log_torn = false;
  {
    absl::MutexLock lock(&state_->mutex);
    log_torn = state_->log_torn;
  }
  uint64_t marked = 0;
  db->GetIntProperty(rocksdb::DB::Properties::kNumEntriesActiveMemTable, &marked);
  if (log_torn && marked == 0 && !left_log_) {
    // It would clear its error and go on with the torn log.
    GiveUp(rocksdb::Status::IOError("nothing is in memory with which the log could be left"));
    return Outcome::kNever;
  }
  left_log_ = true;  // Also if what follows fails: memory has then been put aside with the log.
  const rocksdb::Status status = db->Resume();
  absl::MutexLock lock(&state_->mutex);
  if (status.ok()) {
    state_->trouble = absl::OkStatus();
    state_->severity = rocksdb::Status::kNoError;
    left_log_ = state_->log_torn = false;
    return Outcome::kResumed;
  }
  if (status.IsBusy() || status.IsNoSpace()) return Outcome::kNotYet;
  state_->trouble = absl::UnavailableError(absl::StrCat("going on: ", status.ToString()));
  return Outcome::kNever;
}

void DiskWatch::KeepResumable(rocksdb::DB* db) {
  uint64_t entries = 0;
  if (!db->GetIntProperty(rocksdb::DB::Properties::kNumEntriesActiveMemTable, &entries) ||
      entries > 0) {
    return;
  }
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  db->Put(unlogged, kMarkerKey, "").PermitUncheckedError();
}

}  // namespace tacho::storage
