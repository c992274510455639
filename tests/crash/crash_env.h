// The real file system, with a moment before each effect on it that a test can end the process at.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "rocksdb/env.h"

namespace tacho::crash {

inline constexpr absl::string_view kIoPoints[] = {"io.append", "io.sync",   "io.create",
                                                  "io.rename", "io.delete", "io.sync_directory"};

// Thread-safe.
class CrashEnv : public rocksdb::EnvWrapper {
 public:
  explicit CrashEnv(std::function<void(absl::string_view)> at)
      : EnvWrapper(rocksdb::Env::Default()), at_(std::move(at)) {}
  const char* Name() const override { return "CrashEnv"; }

  // The disk is full, or has room again. Of a write that is refused half is there.
  void SetFull(bool full) { full_ = full; }

  rocksdb::Status NewWritableFile(const std::string& name,
                                  std::unique_ptr<rocksdb::WritableFile>* file,
                                  const rocksdb::EnvOptions& options) override {
    at_("io.create");
    std::unique_ptr<rocksdb::WritableFile> real;
    rocksdb::Status status = target()->NewWritableFile(name, &real, options);
    if (status.ok()) *file = std::make_unique<File>(std::move(real), this);
    return status;
  }
  rocksdb::Status NewRandomRWFile(const std::string& name,
                                  std::unique_ptr<rocksdb::RandomRWFile>* file,
                                  const rocksdb::EnvOptions& options) override {
    std::unique_ptr<rocksdb::RandomRWFile> real;
    rocksdb::Status status = target()->NewRandomRWFile(name, &real, options);
    if (status.ok()) *file = std::make_unique<InPlace>(std::move(real), this);
    return status;
  }
  rocksdb::Status RenameFile(const std::string& from, const std::string& to) override {
    at_("io.rename");
    return target()->RenameFile(from, to);
  }
  rocksdb::Status DeleteFile(const std::string& name) override {
    at_("io.delete");
    return target()->DeleteFile(name);
  }
  rocksdb::Status NewDirectory(const std::string& name,
                               std::unique_ptr<rocksdb::Directory>* directory) override {
    std::unique_ptr<rocksdb::Directory> real;
    rocksdb::Status status = target()->NewDirectory(name, &real);
    if (status.ok()) *directory = std::make_unique<Folder>(std::move(real), this);
    return status;
  }

 private:
  class File : public rocksdb::WritableFileWrapper {
   public:
    File(std::unique_ptr<rocksdb::WritableFile> real, const CrashEnv* env)
        : WritableFileWrapper(real.get()), real_(std::move(real)), env_(env) {}
    using rocksdb::WritableFileWrapper::Append;
    rocksdb::Status Append(const rocksdb::Slice& data) override {
      env_->at_("io.append");
      if (env_->full_) {
        real_->Append({data.data(), data.size() / 2}).PermitUncheckedError();
        return rocksdb::Status::NoSpace("injected");
      }
      return real_->Append(data);
    }
    rocksdb::Status Sync() override {
      env_->at_("io.sync");
      return real_->Sync();
    }

   private:
    const std::unique_ptr<rocksdb::WritableFile> real_;
    const CrashEnv* const env_;
  };
  class InPlace : public rocksdb::RandomRWFileWrapper {
   public:
    InPlace(std::unique_ptr<rocksdb::RandomRWFile> real, const CrashEnv* env)
        : RandomRWFileWrapper(real.get()), real_(std::move(real)), env_(env) {}
    rocksdb::Status Write(uint64_t offset, const rocksdb::Slice& data) override {
      env_->at_("io.append");
      if (env_->full_) return rocksdb::Status::NoSpace("injected");
      return real_->Write(offset, data);
    }
    rocksdb::Status Sync() override {
      env_->at_("io.sync");
      return real_->Sync();
    }

   private:
    const std::unique_ptr<rocksdb::RandomRWFile> real_;
    const CrashEnv* const env_;
  };
  class Folder : public rocksdb::Directory {
   public:
    Folder(std::unique_ptr<rocksdb::Directory> real, const CrashEnv* env)
        : real_(std::move(real)), env_(env) {}
    rocksdb::Status Fsync() override {
      env_->at_("io.sync_directory");
      return real_->Fsync();
    }
    size_t GetUniqueId(char* id, size_t size) const override {
      return real_->GetUniqueId(id, size);
    }

   private:
    const std::unique_ptr<rocksdb::Directory> real_;
    const CrashEnv* const env_;
  };

  const std::function<void(absl::string_view)> at_;
  std::atomic<bool> full_ = false;
};

}  // namespace tacho::crash
