// A file system in memory whose writes can be made to fail.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "rocksdb/env.h"

namespace tacho::testing {

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

 private:
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
      if (fault.torn) real_->Append({data.data(), data.size() / 2}).PermitUncheckedError();
      return fault.append;
    }
    rocksdb::Status Sync() override {
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

  const std::unique_ptr<rocksdb::Env> memory_;
  mutable absl::Mutex mutex_;
  Fault fault_ ABSL_GUARDED_BY(mutex_);
  int failures_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tacho::testing
