// Reads one piece of one event file and says how it ended. Damage and strange content are outcomes
// and not errors, because files that are still written look like both.
#include "agent/sources/tfevents/tfevents_chunk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>

#include "client/tfevents/proto_wire.h"
#include "client/tfevents/record.h"

namespace tacho::agent {
namespace {

using Outcome = TfeventsChunk::Outcome;

constexpr uint64_t kCrcBytes = 4;

// An open regular file.
class File {
 public:
  File(BeneathDirectory* root, const std::string& relative)
      // Not to wait for a writer should it be a pipe.
      : fd_(root->Open(relative, O_RDONLY | O_NONBLOCK)) {
    struct stat info = {};
    if (fd_ < 0 && errno == EXDEV) {
      error_ = "a link that leads out of the log directory, which is not followed";
    } else if (fd_ < 0 || ::fstat(fd_, &info) != 0) {
      error_ = std::generic_category().message(errno);
    } else if (!S_ISREG(info.st_mode)) {
      error_ = "not a regular file";
    } else {
      size_ = static_cast<uint64_t>(info.st_size);
    }
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }

  const std::string& error() const { return error_; }
  uint64_t size() const { return size_; }

  // Up to `count` bytes from `offset`; fewer at the end of the file or after an error.
  std::string Read(uint64_t offset, uint64_t count) {
    if (offset >= size_) return std::string();
    std::string bytes(std::min(count, size_ - offset), '\0');
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t got =
          ::pread(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) error_ = std::generic_category().message(errno);
      if (got <= 0) break;
      done += static_cast<size_t>(got);
    }
    bytes.resize(done);
    return bytes;
  }

  std::optional<uint32_t> ReadCrc(uint64_t offset) {
    const std::string bytes = Read(offset, kCrcBytes);
    absl::string_view view = bytes;
    uint64_t crc = 0;
    if (!client::ConsumeFixed(&view, kCrcBytes, &crc)) return std::nullopt;
    return static_cast<uint32_t>(crc);
  }

 private:
  const int fd_;
  uint64_t size_ = 0;
  std::string error_;
};

// The stored checksum of the first record, if it is whole.
std::optional<uint32_t> FirstCrc(File& file) {
  const std::string head = file.Read(0, client::kRecordHeaderBytes);
  if (head.size() < client::kRecordHeaderBytes) return std::nullopt;
  // With a limit of 0 only the header is looked at, but for an empty record.
  const client::RecordView record = client::ReadRecord(head, 0);
  if (record.kind == client::RecordView::Kind::kCorrupt || record.bytes > file.size())
    return std::nullopt;
  return file.ReadCrc(record.bytes - kCrcBytes);
}

// kMore if the file goes on from the position.
Outcome CompareIdentity(File& file, const client::TfeventsPosition& position) {
  if (position.offset == 0) return Outcome::kMore;
  if (file.size() >= position.offset) {
    const std::optional<uint32_t> crc = file.ReadCrc(position.offset - kCrcBytes);
    if (!crc.has_value()) return Outcome::kUnreadable;
    if (*crc == position.last_crc) return Outcome::kMore;
    return FirstCrc(file) == position.first_crc ? Outcome::kDiffers : Outcome::kReplaced;
  }
  const std::optional<uint32_t> first = FirstCrc(file);
  // Too short to know, or the same beginning: a writer may be writing it anew and be no further
  // yet.
  return !first.has_value() || *first == position.first_crc ? Outcome::kShrunk : Outcome::kReplaced;
}

class ChunkReader {
 public:
  ChunkReader(File& file, const client::TfeventsPosition& position,
              const TfeventsChunkLimits& limits,
              absl::FunctionRef<const char*(absl::string_view)> visit)
      : file_(file), limits_(limits), visit_(visit), stop_(position.chunk_end) {
    chunk_.end = position.offset;
    chunk_.first_crc = position.first_crc;
    chunk_.last_crc = position.last_crc;
  }

  TfeventsChunk Run() {
    // Again exactly what was read when the chunk was begun.
    uint64_t wanted = stop_ > chunk_.end ? stop_ - chunk_.end : limits_.chunk_bytes;
    while (true) {
      const std::string buffer = file_.Read(chunk_.end, wanted);
      const uint64_t needed = Consume(buffer);
      if (needed == 0) return chunk_;
      if (!file_.error().empty()) return Unreadable();
      if (needed <= wanted) {  // The file has just become shorter than it was when it was opened.
        Finish(Outcome::kAtEnd);
        return chunk_;
      }
      // The first record of the chunk is longer than the buffer: once more, with room for it.
      wanted = needed;
    }
  }

 private:
  // Takes records off the buffer, which begins at chunk_.end. Returns 0 when the chunk is complete,
  // else how many bytes the next record needs, all of which the file has.
  uint64_t Consume(absl::string_view buffer) {
    bool first = true;
    while (true) {
      const client::RecordView record = client::ReadRecord(buffer, limits_.max_payload_bytes);
      const bool whole = record.bytes <= file_.size() - chunk_.end;
      switch (record.kind) {
        case client::RecordView::Kind::kCorrupt:
          return Finish(Outcome::kCorrupt, record.defect);
        case client::RecordView::Kind::kNeedMore:
          if (whole && first) return record.bytes;
          return Finish(whole ? Outcome::kMore : Outcome::kAtEnd);
        case client::RecordView::Kind::kTooLarge:
          if (!whole) return Finish(Outcome::kAtEnd);
          // It gets a chunk of its own, so that no chunk is much longer than what is read at once.
          return first ? Skip(record.bytes) : Finish(Outcome::kMore);
        case client::RecordView::Kind::kRecord:
          break;
      }
      if (const char* defect = visit_(record.payload)) return Finish(Outcome::kCorrupt, defect);
      Advance(record.bytes, record.crc);
      if (chunk_.end == stop_) return Finish(Outcome::kMore);
      buffer.remove_prefix(record.bytes);
      first = false;
    }
  }

  uint64_t Skip(uint64_t bytes) {
    const std::optional<uint32_t> crc = file_.ReadCrc(chunk_.end + bytes - kCrcBytes);
    if (!crc.has_value()) return Finish(Outcome::kAtEnd);
    Advance(bytes, *crc);
    ++chunk_.skipped_records;
    return Finish(Outcome::kMore);
  }

  void Advance(uint64_t bytes, uint32_t crc) {
    if (chunk_.end == 0) chunk_.first_crc = crc;
    chunk_.last_crc = crc;
    chunk_.end += bytes;
  }

  uint64_t Finish(Outcome outcome, const char* text = "") {
    chunk_.outcome = outcome;
    chunk_.text = text;
    return 0;
  }

  TfeventsChunk Unreadable() {
    chunk_.outcome = Outcome::kUnreadable;
    chunk_.text = file_.error();
    return chunk_;
  }

  File& file_;
  const TfeventsChunkLimits& limits_;
  const absl::FunctionRef<const char*(absl::string_view)> visit_;
  const uint64_t stop_;
  TfeventsChunk chunk_;
};

}  // namespace

TfeventsChunk ReadTfeventsChunk(BeneathDirectory* root, const std::string& relative,
                                const client::TfeventsPosition& position,
                                const TfeventsChunkLimits& limits,
                                absl::FunctionRef<const char*(absl::string_view payload)> visit) {
  TfeventsChunk chunk;
  File file(root, relative);
  chunk.outcome = Outcome::kUnreadable;
  if (file.error().empty()) chunk.outcome = CompareIdentity(file, position);
  chunk.text = file.error();
  if (chunk.outcome != Outcome::kMore) return chunk;
  if (position.dead) {
    chunk.outcome = Outcome::kAtEnd;
    return chunk;
  }
  return ChunkReader(file, position, limits, visit).Run();
}

}  // namespace tacho::agent
