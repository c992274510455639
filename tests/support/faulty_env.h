// A file system in memory whose writes can be made to fail.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "rocksdb/env.h"

namespace tacho::testing {

// Thread-safe. Must outlive every database opened on it.
class FaultyEnv : public rocksdb::EnvWrapper {
 public:
  FaultyEnv() : EnvWrapper(rocksdb::NewMemEnv(rocksdb::Env::Default())), memory_(target()) {}
  const char* Name() const override { return "FaultyEnv"; }

  // From now on the disk is full, or has room again.
  void RefuseWrites(bool refuse) { refuse_writes_ = refuse; }
  void RefuseSyncs(bool refuse) { refuse_syncs_ = refuse; }

  rocksdb::Status NewWritableFile(const std::string& name,
                                  std::unique_ptr<rocksdb::WritableFile>* file,
                                  const rocksdb::EnvOptions& options) override {
    std::unique_ptr<rocksdb::WritableFile> real;
    rocksdb::Status status = target()->NewWritableFile(name, &real, options);
    if (status.ok()) *file = std::make_unique<File>(std::move(real), this);
    return status;
  }

 private:
  class File : public rocksdb::WritableFileWrapper {
   public:
    File(std::unique_ptr<rocksdb::WritableFile> real, const FaultyEnv* env)
        : WritableFileWrapper(real.get()), real_(std::move(real)), env_(env) {}
    using rocksdb::WritableFileWrapper::Append;
    rocksdb::Status Append(const rocksdb::Slice& data) override {
      if (env_->refuse_writes_) return rocksdb::Status::NoSpace("injected");
      return real_->Append(data);
    }
    rocksdb::Status Sync() override {
      if (env_->refuse_syncs_) return rocksdb::Status::IOError("injected");
      return real_->Sync();
    }

   private:
    const std::unique_ptr<rocksdb::WritableFile> real_;
    const FaultyEnv* const env_;
  };

  const std::unique_ptr<rocksdb::Env> memory_;
  std::atomic<bool> refuse_writes_ = false;
  std::atomic<bool> refuse_syncs_ = false;
};

}  // namespace tacho::testing
