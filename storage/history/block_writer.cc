// A block grows in memory, because it is sent as one body.
#include "storage/history/block_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/crc32c.h"
#include "proto/base/status_macros.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table.h"
#include "storage/db/rocksdb_status.h"

namespace tacho::storage {
namespace {

// As a day on the disk, but with larger blocks, for a read from the bucket fetches a megabyte
// anyway, and without filters: a time column is looked for only where it is known to be.
rocksdb::Options TableOptions(rocksdb::Env* env) {
  rocksdb::BlockBasedTableOptions table;
  table.format_version = 5;
  table.checksum = rocksdb::kCRC32c;
  table.block_size = 64 << 10;
  table.block_restart_interval = 64;
  rocksdb::Options options;
  options.env = env;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.compression = rocksdb::kZSTD;
  return options;
}

constexpr char kFileName[] = "block";

}  // namespace

// A file system with one file, which is written.
class BlockWriter::Memory final : public rocksdb::FileSystemWrapper {
 public:
  Memory()
      : rocksdb::FileSystemWrapper(rocksdb::FileSystem::Default()),
        bytes_(std::make_shared<std::string>()) {}

  const char* Name() const override { return "BlockInMemory"; }
  rocksdb::IOStatus NewWritableFile(const std::string& /*name*/,
                                    const rocksdb::FileOptions& /*options*/,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* /*debug*/) override {
    *file = std::make_unique<File>(bytes_);
    return rocksdb::IOStatus::OK();
  }
  const std::string& bytes() const { return *bytes_; }

 private:
  class File final : public rocksdb::FSWritableFile {
   public:
    explicit File(std::shared_ptr<std::string> bytes) : bytes_(std::move(bytes)) {}

    using rocksdb::FSWritableFile::Append;
    rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& /*options*/,
                             rocksdb::IODebugContext* /*debug*/) override {
      bytes_->append(data.data(), data.size());
      return rocksdb::IOStatus::OK();
    }
    rocksdb::IOStatus Close(const rocksdb::IOOptions& /*options*/,
                            rocksdb::IODebugContext* /*debug*/) override {
      return rocksdb::IOStatus::OK();
    }
    rocksdb::IOStatus Flush(const rocksdb::IOOptions& /*options*/,
                            rocksdb::IODebugContext* /*debug*/) override {
      return rocksdb::IOStatus::OK();
    }
    rocksdb::IOStatus Sync(const rocksdb::IOOptions& /*options*/,
                           rocksdb::IODebugContext* /*debug*/) override {
      return rocksdb::IOStatus::OK();
    }
    uint64_t GetFileSize(const rocksdb::IOOptions& /*options*/,
                         rocksdb::IODebugContext* /*debug*/) override {
      return bytes_->size();
    }

   private:
    const std::shared_ptr<std::string> bytes_;
  };

  const std::shared_ptr<std::string> bytes_;
};

BlockWriter::BlockWriter(Options options) : options_(std::move(options)) {
  TACHO_CHECK(options_.bucket != nullptr && options_.next_key && options_.before_retry);
}

BlockWriter::~BlockWriter() = default;

// Each block has a writer of its own: RocksDB then gives it an identity of its own, which its
// caches go by.
void BlockWriter::Begin() {
  memory_ = std::make_shared<Memory>();
  const std::shared_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(memory_);
  writer_.reset(new rocksdb::SstFileWriter(rocksdb::EnvOptions(), TableOptions(env.get())));
  env_ = env;
}

absl::Status BlockWriter::Add(absl::string_view key, absl::string_view value) {
  if (writer_ != nullptr && filled_ + key.size() + value.size() > options_.max_bytes / 64 * 63) {
    TACHO_RETURN_IF_ERROR(Upload());
  }
  if (!last_key_.empty() && key <= last_key_) {
    return absl::InvalidArgumentError("the keys of a block must ascend");
  }
  if (writer_ == nullptr) {
    Begin();
    TACHO_RETURN_IF_ERROR(FromRocksDb(writer_->Open(kFileName), "begin a block"));
    first_key_ = std::string(key);
    filled_ = 0;
  }
  filled_ += key.size() + value.size();
  last_key_ = std::string(key);
  return FromRocksDb(writer_->Put(rocksdb::Slice(key.data(), key.size()),
                                  rocksdb::Slice(value.data(), value.size())),
                     "write a block");
}

absl::Status BlockWriter::Upload() {
  TACHO_RETURN_IF_ERROR(FromRocksDb(writer_->Finish(), "finish a block"));
  writer_ = nullptr;
  const std::string& body = memory_->bytes();
  Block block;
  block.file = {.key = options_.next_key(),
                .bytes = body.size(),
                .crc32c = ExtendCrc32c(0, body.data(), body.size())};
  block.first_key = first_key_;
  block.last_key = last_key_;
  TACHO_RETURN_IF_ERROR(PutObject(*options_.bucket, block.file.key, body, options_.before_retry));
  blocks_.push_back(std::move(block));
  memory_ = nullptr;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Block>> BlockWriter::Finish() {
  if (writer_ != nullptr) TACHO_RETURN_IF_ERROR(Upload());
  return std::move(blocks_);
}

absl::Status PutObject(Bucket& bucket, absl::string_view key, absl::string_view body,
                       const BeforeRetry& before_retry) {
  for (int tries = 1;; ++tries) {
    const absl::StatusOr<std::string> put = bucket.Put(key, body);
    if (put.ok()) return absl::OkStatus();
    if (!absl::IsUnavailable(put.status())) return put.status();
    TACHO_RETURN_IF_ERROR(before_retry(tries));
  }
}

}  // namespace tacho::storage
