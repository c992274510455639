// Reads the end of a table of RocksDB as far as to that bit:
//
//   ... | properties | metaindex | footer
//   footer, 53 bytes: checksum's type (1), metaindex (varint64 offset, size), index, zeros;
//                     from byte 41 on the format version (le32), the magic number (le64)
//   metaindex:        "rocksdb.properties", then the properties' offset and size as varint64
#include "storage/db/table_check.h"

#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "rocksdb/env.h"
#include "storage/codec/bytes.h"

namespace tacho::storage {
namespace {

constexpr uint64_t kFooterBytes = 53;
constexpr uint64_t kMaxMetaindexBytes = 64 << 10;
constexpr char kPropertiesKey[] = "rocksdb.properties";

struct TablePart {
  uint64_t offset = 0;
  uint64_t size = 0;
};

// Empty if there are not so many bytes, or they cannot be read: RocksDB reports that.
std::string ReadPart(const rocksdb::RandomAccessFile& file, const TablePart& part) {
  std::string scratch(part.size, '\0');
  rocksdb::Slice read;
  const rocksdb::Status status = file.Read(part.offset, part.size, &read, scratch.data());
  return status.ok() && read.size() == part.size ? read.ToString() : "";
}

std::optional<TablePart> ParsePart(absl::string_view bytes, uint64_t file_bytes) {
  ByteReader in(bytes);
  TablePart part;
  part.offset = in.Varint();
  part.size = in.Varint();
  const bool fits = part.offset <= file_bytes && part.size <= file_bytes - part.offset;
  if (!in.ok() || !fits || part.size < sizeof(uint32_t)) return std::nullopt;
  return part;
}

}  // namespace

absl::Status CheckTable(rocksdb::Env* env, const std::string& path) {
  uint64_t bytes = 0;
  std::unique_ptr<rocksdb::RandomAccessFile> file;
  if (!env->GetFileSize(path, &bytes).ok() || bytes < kFooterBytes ||
      !env->NewRandomAccessFile(path, &file, rocksdb::EnvOptions()).ok()) {
    return absl::OkStatus();
  }
  const std::string footer = ReadPart(*file, {bytes - kFooterBytes, kFooterBytes});
  if (footer.empty()) return absl::OkStatus();
  const auto metaindex = ParsePart(absl::string_view(footer).substr(1), bytes);
  if (!metaindex.has_value() || metaindex->size > kMaxMetaindexBytes) return absl::OkStatus();
  const std::string entries = ReadPart(*file, *metaindex);
  const size_t key = entries.find(kPropertiesKey);
  if (key == std::string::npos) return absl::OkStatus();
  const auto properties =
      ParsePart(absl::string_view(entries).substr(key + sizeof(kPropertiesKey) - 1), bytes);
  if (!properties.has_value()) return absl::OkStatus();
  const std::string last = ReadPart(*file, {properties->offset + properties->size - 1, 1});
  if (last.empty() || (static_cast<unsigned char>(last[0]) & 0x80) == 0) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(path, ": the properties of this table are damaged: restore a copy of it"));
}

}  // namespace tacho::storage
