// A file system in memory whose reads and writes can be made to fail.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "rocksdb/env.h"

namespace tacho::storage {

// Thread-safe. Must outlive every database opened on it.
class FaultyEnv : public rocksdb::EnvWrapper {
 public:
  FaultyEnv() : EnvWrapper(rocksdb::NewMemEnv(rocksdb::Env::Default())), memory_(target()) {}
  const char* Name() const override { return "FaultyEnv"; }

  // What goes wrong from now on, with files whose name contains `match`.
  struct Fault {
    std::string match;
    rocksdb::Status append;  // OK: works.
    rocksdb::Status sync;
    int spare = 0;      // So many more work before it goes wrong.
    bool torn = false;  // An append that fails writes half of its bytes.
    bool late = false;  // An append that fails writes all of its bytes.
  };
  void Set(Fault fault) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    fault_ = std::move(fault);
  }
  void Clear() { Set({}); }

  // From now on the disk is full, or has room again.
  void RefuseWrites(bool refuse) {
    Set({.append = refuse ? rocksdb::Status::NoSpace("injected") : rocksdb::Status()});
  }
  // As RefuseWrites(true), but so many more appends to files work.
  void RefuseAfter(int appends) {
    Set({.append = rocksdb::Status::NoSpace("injected"), .spare = appends});
  }
  void RefuseSyncs(bool refuse) {
    Set({.sync = refuse ? rocksdb::Status::IOError("injected") : rocksdb::Status()});
  }
  // From now on a sync of a table takes this long.
  void SlowTables(absl::Duration sync) { table_sync_ns_ = absl::ToInt64Nanoseconds(sync); }
  // Calls `hook` before each read from a table from now on, on the reader's thread; null calls
  // nothing. RocksDB reads in the background as well, so this returns only when no call of the hook
  // before it is under way: what that one refers to may go then.
  void OnRead(std::function<void()> hook) ABSL_LOCKS_EXCLUDED(hook_mutex_) {
    absl::WriterMutexLock lock(&hook_mutex_);
    on_read_ = std::move(hook);
  }
  // From now on every read from a table brings wrong bytes, or the right ones again.
  // Returns whether it damaged reads so far.
  bool DamageReads(bool damage) { return damage_reads_.exchange(damage); }
  // How often something has gone wrong.
  int failures() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return failures_;
  }

  rocksdb::Status NewWritableFile(const std::string& name,
                                  std::unique_ptr<rocksdb::WritableFile>* file,
                                  const rocksdb::EnvOptions& options) override {
    std::unique_ptr<rocksdb::WritableFile> real;
    rocksdb::Status status = target()->NewWritableFile(name, &real, options);
    if (status.ok()) *file = std::make_unique<File>(name, std::move(real), this);
    return status;
  }

  rocksdb::Status NewRandomAccessFile(const std::string& name,
                                      std::unique_ptr<rocksdb::RandomAccessFile>* file,
                                      const rocksdb::EnvOptions& options) override {
    std::unique_ptr<rocksdb::RandomAccessFile> real;
    rocksdb::Status status = target()->NewRandomAccessFile(name, &real, options);
    if (status.ok()) *file = std::make_unique<ReadFile>(std::move(real), this);
    return status;
  }

 private:
  class ReadFile : public rocksdb::RandomAccessFile {
   public:
    ReadFile(std::unique_ptr<rocksdb::RandomAccessFile> real, const FaultyEnv* env)
        : real_(std::move(real)), env_(env) {}
    rocksdb::Status Read(uint64_t offset, size_t size, rocksdb::Slice* result,
                         char* scratch) const override {
      env_->CallOnRead();
      rocksdb::Status status = real_->Read(offset, size, result, scratch);
      if (!status.ok() || result->empty() || !env_->damage_reads_) return status;
      std::string damaged = result->ToString();
      damaged.front() = static_cast<char>(damaged.front() ^ 1);
      damaged.copy(scratch, damaged.size());
      *result = rocksdb::Slice(scratch, damaged.size());
      return status;
    }

   private:
    const std::unique_ptr<rocksdb::RandomAccessFile> real_;
    const FaultyEnv* const env_;
  };
  class File : public rocksdb::WritableFileWrapper {
   public:
    File(std::string name, std::unique_ptr<rocksdb::WritableFile> real, FaultyEnv* env)
        : WritableFileWrapper(real.get()),
          name_(std::move(name)),
          real_(std::move(real)),
          env_(env) {}
    using rocksdb::WritableFileWrapper::Append;
    rocksdb::Status Append(const rocksdb::Slice& data) override {
      const Fault fault = env_->FaultOf(name_, &Fault::append);
      if (fault.append.ok()) return real_->Append(data);
      if (fault.late) real_->Append(data).PermitUncheckedError();
      if (fault.torn) real_->Append({data.data(), data.size() / 2}).PermitUncheckedError();
      return fault.append;
    }
    rocksdb::Status Sync() override {
      if (absl::EndsWith(name_, ".sst"))
        absl::SleepFor(absl::Nanoseconds(env_->table_sync_ns_.load()));
      const Fault fault = env_->FaultOf(name_, &Fault::sync);
      return fault.sync.ok() ? real_->Sync() : fault.sync;
    }

   private:
    const std::string name_;
    const std::unique_ptr<rocksdb::WritableFile> real_;
    FaultyEnv* const env_;
  };

  Fault FaultOf(const std::string& name, rocksdb::Status Fault::*of) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if ((fault_.*of).ok() || !absl::StrContains(name, fault_.match)) return {};
    if (fault_.spare-- > 0) return {};
    ++failures_;
    return fault_;
  }

  void CallOnRead() const ABSL_LOCKS_EXCLUDED(hook_mutex_) {
    absl::ReaderMutexLock lock(&hook_mutex_);
    if (on_read_ != nullptr) on_read_();
  }

  const std::unique_ptr<rocksdb::Env> memory_;
  std::atomic<bool> damage_reads_ = false;
  std::atomic<int64_t> table_sync_ns_ = 0;
  mutable absl::Mutex hook_mutex_;
  std::function<void()> on_read_ ABSL_GUARDED_BY(hook_mutex_);
  mutable absl::Mutex mutex_;
  Fault fault_ ABSL_GUARDED_BY(mutex_);
  int failures_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tacho::storage
