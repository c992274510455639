// Reads a ring while its writer may be overwriting it: each block is copied, and counts only if the
// writer had not announced to overwrite it by then. The file's contents are checked and, where they
// are wrong, skipped or answered with a status; the checks here are about the reader's own
// arithmetic.
#include "client/ring/ring_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/ring/ring_batch_builder.h"
#include "client/ring/ring_file.h"
#include "client/ring/ring_records.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"

namespace tacho::client {
namespace {

// The cursors are read while the writer moves them, and a copy need not be atomic: nonsense is
// believed only when it stays.
constexpr int kCursorAttempts = 16;
// The same for the bytes of a block.
constexpr int kBlockAttempts = 3;
// No writer gets there; sums of positions stay far from overflow.
constexpr uint64_t kMaxPosition = uint64_t{1} << 62;
// One call must come back soon even if a large ring is all damage.
constexpr uint64_t kMaxBlocksPerRead = 256;

absl::Status ErrnoToOpenStatus(int error, const std::string& path) {
  const std::string what = absl::StrCat("open ", path);
  if (error == ENOENT) return absl::NotFoundError(what);
  if (error == EACCES) return absl::PermissionDeniedError(what);
  if (error == ELOOP) return absl::DataLossError(absl::StrCat(path, " is a symbolic link"));
  return absl::UnavailableError(absl::ErrnoToStatus(error, what).message());
}

uint64_t BlockEnd(uint64_t position) { return (position / kBlockBytes + 1) * kBlockBytes; }

class FileCloser {
 public:
  explicit FileCloser(int fd) : fd_(fd) {}
  FileCloser(const FileCloser&) = delete;
  FileCloser& operator=(const FileCloser&) = delete;
  ~FileCloser() {
    if (fd_ >= 0) close(fd_);
  }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RingReader>> RingReader::Open(const std::string& path) {
  // Neither a link nor a pipe that somebody put there may lead or hold us anywhere.
  const int fd = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ErrnoToOpenStatus(errno, path);
  FileCloser closer(fd);
  struct stat facts = {};
  if (fstat(fd, &facts) != 0) return absl::UnavailableError(absl::StrCat("stat ", path));
  if (!S_ISREG(facts.st_mode)) return absl::DataLossError(absl::StrCat(path, " is no file"));

  char bytes[sizeof(RingHeader)];
  const ssize_t got = pread(fd, bytes, sizeof(bytes), 0);
  if (got < 0) return absl::UnavailableError(absl::StrCat("read ", path));
  auto header = ParseRingHeader({bytes, static_cast<size_t>(got)},
                                static_cast<uint64_t>(std::max<off_t>(facts.st_size, 0)));
  if (!header.ok()) {
    return absl::Status(header.status().code(),
                        absl::StrCat(path, ": ", header.status().message()));
  }
  std::unique_ptr<RingReader> reader(
      new RingReader(closer.Release(), std::move(header->info), header->flags, header->version));
  TACHO_ASSIGN_OR_RETURN(auto cursors, reader->ReadCursors());
  TACHO_RETURN_IF_ERROR(reader->ReadDefinitions(cursors.definitions));
  return reader;
}

RingReader::RingReader(int fd, RingInfo info, uint32_t flags, uint32_t version)
    : fd_(fd), info_(std::move(info)), flags_(flags), version_(version), block_(kBlockBytes) {
  TACHO_CHECK(fd_ >= 0);
  TACHO_CHECK(std::has_single_bit(info_.record_bytes));
}

RingReader::~RingReader() { close(fd_); }

absl::Status RingReader::ReadAt(uint64_t offset, void* out, size_t size) const {
  const ssize_t got = pread(fd_, out, size, static_cast<off_t>(offset));
  if (got < 0) return absl::UnavailableError("the ring cannot be read");
  if (static_cast<size_t>(got) != size) return absl::DataLossError("the ring's file has shrunk");
  return absl::OkStatus();
}

bool RingReader::Plausible(const RingCursors& c) const {
  // `reserved` may have been copied before the writer moved both, so it may be behind, but it is
  // ahead of `committed` by no more than padding and one record.
  return c.committed % 8 == 0 && c.committed < kMaxPosition && c.committed >= committed_ &&
         c.reserved < c.committed + uint64_t{2} * kBlockBytes && c.definitions % 8 == 0 &&
         c.definitions <= kDefinitionBytes && c.definitions >= definitions_read_ && c.closed <= 1;
}

absl::StatusOr<RingCursors> RingReader::ReadCursors() const {
  for (int attempt = 0; attempt < kCursorAttempts; ++attempt) {
    RingCursors first;
    RingCursors second;
    absl::Status status = ReadAt(kRingCursorsOffset, &first, sizeof(first));
    if (status.ok()) status = ReadAt(kRingCursorsOffset, &second, sizeof(second));
    if (!status.ok()) return status;
    // A cursor copied while it was being stored shows as one that falls again.
    if (Plausible(first) && Plausible(second) && first.committed <= second.committed &&
        first.reserved <= second.reserved && first.definitions <= second.definitions) {
      first.reserved = second.reserved;  // The cautious end of each.
      return first;
    }
  }
  return absl::DataLossError("the ring's cursors make no sense");
}

absl::Status RingReader::ReadDefinitions(uint64_t end) {
  if (end == definitions_read_ || definitions_damaged_) return absl::OkStatus();
  TACHO_CHECK(end > definitions_read_ && end <= kDefinitionBytes);
  std::vector<char> bytes(end - definitions_read_);
  absl::Status status = ReadAt(kRingHeaderBytes + definitions_read_, bytes.data(), bytes.size());
  if (!status.ok()) return status;
  const size_t taken = ParseDefinitions({bytes.data(), bytes.size()});
  TACHO_CHECK(taken <= bytes.size());
  definitions_read_ += taken;
  if (taken < bytes.size()) {
    // Where the next one begins is unknown, so the rest stays unread, and rows that need it are
    // lost.
    definitions_damaged_ = true;
    ++corruptions_;
  }
  return absl::OkStatus();
}

bool RingReader::NameIsFree(absl::string_view name) const {
  const auto named = [name](const auto& definition) { return definition.name == name; };
  return std::none_of(metrics_.begin(), metrics_.end(), named) &&
         std::none_of(histograms_.begin(), histograms_.end(), named);
}

bool RingReader::TakeMetric(RingMetric metric) {
  if (metrics_.size() == kMaxMetrics || !NameIsFree(metric.name)) return false;
  metrics_.push_back(std::move(metric));
  return true;
}

bool RingReader::TakeHistogram(RingHistogram histogram) {
  if (histograms_.size() == kMaxHistograms || !NameIsFree(histogram.name)) return false;
  histograms_.push_back(std::move(histogram));
  return true;
}

size_t RingReader::ParseDefinitions(absl::string_view bytes) {
  size_t taken = 0;
  while (taken < bytes.size()) {
    auto definition = ParseDefinition(bytes.substr(taken), definitions_read_ + taken, version_);
    if (!definition.has_value()) break;
    bool good = true;
    if (auto* metric = std::get_if<RingMetric>(&definition->content)) {
      good = TakeMetric(std::move(*metric));
    } else if (auto* histogram = std::get_if<RingHistogram>(&definition->content)) {
      good = TakeHistogram(std::move(*histogram));
    } else {
      attributes_.push_back(std::get<RingAttribute>(std::move(definition->content)));
    }
    if (!good) break;
    TACHO_CHECK(definition->size > 0 && definition->size <= bytes.size() - taken);
    taken += definition->size;
  }
  return taken;
}

uint64_t RingReader::OldestPosition(const RingCursors& cursors) const {
  const uint64_t written = std::max(cursors.reserved, cursors.committed);
  return written > info_.record_bytes ? written - info_.record_bytes : 0;
}

void RingReader::Rewind() {
  position_ = 0;
  last_ = {};
  synced_ = true;
}

void RingReader::SkipToBlock(uint64_t position) {
  TACHO_CHECK(position >= position_);
  position_ = (position + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  synced_ = false;
}

absl::StatusOr<absl::string_view> RingReader::FetchBlock(uint64_t end) {
  end = std::min(end, BlockEnd(position_));
  TACHO_CHECK(position_ < end && end - position_ <= block_.size());
  const uint64_t offset = kRingHeaderBytes + kDefinitionBytes + position_ % info_.record_bytes;
  absl::Status status = ReadAt(offset, block_.data(), end - position_);
  if (!status.ok()) return status;
  // The writer announces what it overwrites before it does, so what it has not announced by now was
  // whole while it was copied.
  TACHO_ASSIGN_OR_RETURN(auto cursors, ReadCursors());
  const uint64_t oldest = OldestPosition(cursors);
  if (position_ < oldest) {
    SkipToBlock(oldest);
    return absl::string_view();
  }
  return absl::string_view(block_.data(), end - position_);
}

// In the middle of what was read, records must be numbered without a gap. After a jump their
// numbers may only rise, and by no more than the bytes that were written can hold.
bool RingReader::Follows(const RingRecord& record) const {
  const RecordHeader& h = record.header;
  if (synced_) return h.number == last_.record && h.row == last_.row;
  return h.number >= last_.record && h.row >= last_.row &&
         h.row - last_.row <= h.number - last_.record &&
         h.number <= position_ / sizeof(RecordHeader);
}

bool RingReader::TakeRecord(const RingRecord& record, RingBatchBuilder* out) {
  if (record.IsHistogramState()) {
    const uint32_t histogram = ParseHistogramState(record).histogram;
    const bool known = histogram < histograms_.size();
    if (known && histograms_[histogram].bounds.size() + 1 != record.header.count) return false;
    // One whose definition could not be read is left out.
    if (known) out->AddHistogramState(record);
    last_ = {record.header.number, record.header.row};
    return true;
  }
  if (!out->Add(record, metrics_.size())) return false;
  last_ = {record.header.number + 1, record.header.row + (record.IsRow() ? 1 : 0)};
  return true;
}

bool RingReader::ParseRecords(absl::string_view bytes, RingBatchBuilder* out) {
  while (!bytes.empty() && !out->full() && !out->contradicted()) {
    const uint64_t room = BlockEnd(position_) - position_;
    TACHO_CHECK(bytes.size() <= room);
    if (room < sizeof(RecordHeader)) {
      position_ += room;
      return true;
    }
    const auto record = ParseRecord(bytes, position_, version_);
    if (!record.has_value() || !Follows(*record)) return false;
    if (record->IsPadding()) {
      if (record->header.size != room) return false;
    } else {
      if (!TakeRecord(*record, out)) return false;
      synced_ = true;
    }
    TACHO_CHECK(record->header.size > 0 && record->header.size <= bytes.size());
    position_ += record->header.size;
    bytes.remove_prefix(record->header.size);
  }
  return true;
}

absl::Status RingReader::ReadBlock(uint64_t end, RingBatchBuilder* out) {
  for (int attempt = 0; attempt < kBlockAttempts; ++attempt) {
    TACHO_ASSIGN_OR_RETURN(auto bytes, FetchBlock(end));
    if (bytes.empty() || ParseRecords(bytes, out)) return absl::OkStatus();
  }
  ++corruptions_;
  SkipToBlock(position_ + 1);
  return absl::OkStatus();
}

absl::StatusOr<RingBatch> RingReader::Read(const RingCursor& from, const RingReadLimits& limits) {
  TACHO_ASSIGN_OR_RETURN(auto cursors, ReadCursors());
  TACHO_CHECK(cursors.committed >= committed_);
  committed_ = cursors.committed;
  closed_ = cursors.closed != 0;
  refused_ = cursors.refused;
  TACHO_RETURN_IF_ERROR(ReadDefinitions(cursors.definitions));
  const bool rewound = from != resume_;
  if (rewound) Rewind();
  if (position_ < OldestPosition(cursors)) SkipToBlock(OldestPosition(cursors));
  RingBatchBuilder builder(from, limits);
  for (uint64_t blocks = 0; position_ < committed_ && !builder.full() && !builder.contradicted() &&
                            blocks < kMaxBlocksPerRead;
       ++blocks) {
    if (absl::Status status = ReadBlock(committed_, &builder); !status.ok()) return status;
  }
  const bool at_end = position_ >= committed_;
  if (builder.contradicted() || (at_end && synced_ && last_.record < from.record)) {
    resume_ = {UINT64_MAX, 0};  // Whatever is asked next is looked for from the beginning.
    return absl::OutOfRangeError("the cursor belongs to another ring");
  }
  RingBatch batch = std::move(builder).Build(at_end);
  resume_ = batch.end;
  return batch;
}

bool RingReader::WriterAlive() const {
  if ((flags_ & kFlagLocked) != 0) {
    struct flock lock = {};
    lock.l_type = F_RDLCK;
    lock.l_whence = SEEK_SET;
    // Works across pid namespaces, and knows a zombie for dead.
    if (fcntl(fd_, F_OFD_GETLK, &lock) == 0) return lock.l_type != F_UNLCK;
  }
  const uint64_t ticks = ProcessStartTicks(absl::StrCat("/proc/", info_.pid, "/stat"));
  return ticks != 0 && ticks == info_.process_start_ticks;
}

}  // namespace tacho::client
