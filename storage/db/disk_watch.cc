// Listens to RocksDB's errors, decides which of them can heal, and tries to resume writing. It
// looks for room itself first, because RocksDB would try without looking.
#include "storage/db/disk_watch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/listener.h"
#include "rocksdb/transaction_log.h"
#include "storage/db/memory_overlay.h"
#include "storage/db/resume.h"

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
  bool must_stay_open ABSL_GUARDED_BY(mutex) = false;
  bool stopped ABSL_GUARDED_BY(mutex) = false;  // RocksDB has reported an error.
  std::atomic<uint64_t> errors = 0;             // How many it has ever reported.

  void Add(const char* doing, const rocksdb::Status& status, rocksdb::Status::Severity how_bad)
      ABSL_LOCKS_EXCLUDED(mutex) {
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
    ++state_->errors;
    if (error->IsShutdownInProgress()) return;
    // If another log cannot be begun, RocksDB fears for what it has not given to the file system of
    // the one in use; that is the refused write alone.
    if (error->IsNoSpace() && error->severity() > rocksdb::Status::kHardError) {
      *error = rocksdb::Status(*error, rocksdb::Status::kHardError);
    }
    // RocksDB tries by itself to compact again, and need not be resumed for that. While it
    // remembers such an error, version 7.8 fails each atomic flush that ends and never takes up
    // that memory again: a later Resume() would wait for it without end.
    if (reason == rocksdb::BackgroundErrorReason::kCompaction && error->IsNoSpace() &&
        error->severity() < rocksdb::Status::kHardError) {
      state_->Add(Reason(reason), *error, error->severity());
      *error = rocksdb::Status::OK();
      return;
    }
    {
      absl::MutexLock lock(&state_->mutex);
      state_->stopped = true;
      // A write that comes later is refused before it reaches the log, and reported all the same.
      if (reason == rocksdb::BackgroundErrorReason::kWriteCallback &&
          state_->severity < rocksdb::Status::kHardError) {
        state_->log_torn = true;
      }
      if (reason == rocksdb::BackgroundErrorReason::kMemTable) state_->must_stay_open = true;
    }
    state_->Add(Reason(reason), *error, error->severity());
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

namespace {

Ballast::Options OnRealDisk(Ballast::Options options) {
  if (options.env == nullptr) options.env = rocksdb::Env::Default();
  return options;
}

}  // namespace

DiskWatch::DiskWatch(Ballast::Options options)
    : path_(options.path),
      env_(options.env == nullptr ? rocksdb::Env::Default() : options.env),
      ballast_(OnRealDisk(std::move(options))),
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

bool DiskWatch::must_stay_open() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->must_stay_open;
}

void DiskWatch::Note(const rocksdb::Status& status) {
  // RocksDB has reported to the listener how bad it is; if not, writing may be tried again.
  state_->Add("writing the journal", status,
              std::max(status.severity(), rocksdb::Status::kHardError));
}

void DiskWatch::NoteManifest(const rocksdb::Status& status) {
  state_->Add("changing the manifest", status,
              status.IsNoSpace() ? rocksdb::Status::kHardError : rocksdb::Status::kFatalError);
}

bool DiskWatch::MakeRoomToOpen() {
  // The logs become tables of about their size.
  uint64_t needed = kSpareBytes;
  std::vector<rocksdb::Env::FileAttributes> files;
  env_->GetChildrenFileAttributes(path_, &files).PermitUncheckedError();
  for (const auto& file : files) {
    if (absl::EndsWith(file.name, ".log")) needed += file.size_bytes;
  }
  const auto has_room = [&] {
    uint64_t unused = 0;
    return !env_->GetFreeSpace(path_, &unused).ok() || unused >= needed;
  };
  if (has_room()) return true;
  // The ballast may be that of another process.
  rocksdb::FileLock* lock = nullptr;
  if (ballast_.held() == 0 || !env_->LockFile(absl::StrCat(path_, "/LOCK"), &lock).ok()) {
    return false;
  }
  ballast_.GiveUp();
  env_->UnlockFile(lock).PermitUncheckedError();
  return has_room();
}

void DiskWatch::OpenedInMemory(MemoryOverlay* overlay, absl::Status why,
                               std::function<absl::Status()> on_landed) {
  overlay_ = overlay;
  on_landed_ = std::move(on_landed);
  absl::MutexLock lock(&state_->mutex);
  state_->trouble = std::move(why);
  state_->severity = rocksdb::Status::kHardError;
}

bool DiskWatch::is_in_memory() const { return overlay_ != nullptr && !overlay_->landed(); }

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

bool DiskWatch::Land() {
  if (is_in_memory()) {
    if (!HasRoom(overlay_->bytes() + kSpareBytes)) return false;
    absl::MutexLock lock(&log_mutex_);
    if (!overlay_->Land().ok()) return false;
  }
  if (on_landed_ != nullptr && !on_landed_().ok()) return false;
  on_landed_ = nullptr;
  return true;
}

uint64_t DiskWatch::CurrentLog(rocksdb::DB* db) {
  std::unique_ptr<rocksdb::LogFile> log;
  return db->GetCurrentWalFile(&log).ok() && log != nullptr ? log->LogNumber() : 0;
}

DiskWatch::Outcome DiskWatch::TryResume(rocksdb::DB* db) {
  bool log_torn = false;
  bool stopped = false;
  bool refused = false;
  {
    absl::MutexLock lock(&state_->mutex);
    if (state_->severity >= rocksdb::Status::kFatalError) return Outcome::kNever;
    refused = state_->severity >= rocksdb::Status::kHardError;
    log_torn = state_->log_torn;
    stopped = state_->stopped;
    if (log_is_shipped_ && (refused || log_torn)) return Outcome::kNever;
  }
  if (refused) ballast_.GiveUp();
  // While writes are refused no other log is begun: but a try may have left the torn one and then
  // have found no room for tables.
  if (log_torn && torn_log_ == 0) torn_log_ = CurrentLog(db);
  if (!Land()) return Outcome::kNotYet;
  // RocksDB repeats the write that was refused, into the log that it is about to leave. Where that
  // has room but the tables do not, the log would be left with half a record before a whole one,
  // and could not be read after a crash.
  uint64_t needed = 0;
  db->GetAggregatedIntProperty(rocksdb::DB::Properties::kCurSizeAllMemTables, &needed);
  if (!HasRoom(needed + kSpareBytes)) return Outcome::kNotYet;
  absl::MutexLock writing(&log_mutex_);
  uint64_t in_memory = 0;
  db->GetAggregatedIntProperty(rocksdb::DB::Properties::kNumEntriesActiveMemTable, &in_memory);
  if (log_torn && in_memory == 0 && CurrentLog(db) == torn_log_) {
    // It would clear its error and go on with the torn log.
    NoteManifest(rocksdb::Status::IOError("nothing is in memory with which the log could be left"));
    return Outcome::kNever;
  }
  const rocksdb::Status status = ResumeWriting(db, stopped, request_flush_, state_->errors);
  absl::MutexLock lock(&state_->mutex);
  if (status.ok()) {
    state_->trouble = absl::OkStatus();
    state_->severity = rocksdb::Status::kNoError;
    state_->log_torn = state_->stopped = false;
    torn_log_ = 0;
    return Outcome::kResumed;
  }
  if (status.IsBusy() || status.IsNoSpace()) return Outcome::kNotYet;
  state_->trouble = absl::UnavailableError(absl::StrCat("going on: ", status.ToString()));
  return Outcome::kNever;
}

void DiskWatch::PutMarker(rocksdb::DB* db) {
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  db->Put(unlogged, kMarkerKey, "").PermitUncheckedError();
}

}  // namespace tacho::storage
