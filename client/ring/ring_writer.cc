// The writer of a ring, shaped like that of a sequence lock: it announces what it is about to
// overwrite, copies the record, and publishes its end with one store. So a reader in another
// process needs no lock, and a writer that dies half-way leaves nothing half-written in sight.
#include "client/ring/ring_writer.h"

#include <bit>
#include <cstring>
#include <utility>

#include "proto/base/check.h"
#include "proto/base/crc32c.h"

namespace tacho::client {
namespace {

// The checksum of a record or definition up to the end of its header, whose crc comes first.
template <typename Header>
uint32_t HeaderCrc(uint64_t position, const Header& header) {
  static_assert(offsetof(Header, size) == sizeof(header.crc));
  const uint32_t crc = ExtendCrc32c(0, &position, sizeof(position));
  return ExtendCrc32c(crc, &header.size, sizeof(header) - offsetof(Header, size));
}

char* Append(char* out, std::string_view text) {
  if (!text.empty()) std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

}  // namespace

RingWriter::RingWriter(std::unique_ptr<RingFile> file)
    : file_(std::move(file)),
      base_(file_->base()),
      records_(base_ + kRingHeaderBytes + kDefinitionBytes),
      mask_(file_->record_bytes() - 1) {
  TACHO_CHECK(base_ != nullptr);
  TACHO_CHECK(std::has_single_bit(mask_ + 1) && mask_ + 1 >= kMinRecordBytes);
}

void RingWriter::Store(size_t cursor_offset, uint64_t value, std::memory_order order) {
  TACHO_DCHECK(cursor_offset + sizeof(value) <= sizeof(RingCursors));
  auto* cursor = reinterpret_cast<uint64_t*>(base_ + kRingCursorsOffset + cursor_offset);
  std::atomic_ref<uint64_t>(*cursor).store(value, order);
}

bool RingWriter::AddMetric(MetricType type, std::string_view name, std::string_view unit,
                           std::string_view help) {
  DefinitionHeader header = {};
  header.kind = static_cast<uint32_t>(DefinitionKind::kMetric);
  header.type = static_cast<uint32_t>(type);
  return AddDefinition(header, name, unit, help);
}

bool RingWriter::AddHistogram(std::string_view name, std::string_view unit, std::string_view help,
                              std::span<const double> bounds) {
  DefinitionHeader header = {};
  header.kind = static_cast<uint32_t>(DefinitionKind::kHistogram);
  header.bounds = static_cast<uint32_t>(bounds.size());
  return AddDefinition(header, name, unit, help, bounds);
}

bool RingWriter::AddAttribute(std::string_view key, std::string_view value) {
  DefinitionHeader header = {};
  header.kind = static_cast<uint32_t>(DefinitionKind::kAttribute);
  const uint64_t size = AlignUp8(sizeof(header) + key.size() + value.size());
  if (attribute_bytes_ + size > kAttributeBytes) return false;
  if (!AddDefinition(header, key, "", value)) return false;
  attribute_bytes_ += size;
  return true;
}

bool RingWriter::AddDefinition(const DefinitionHeader& kind, std::string_view name,
                               std::string_view unit, std::string_view text,
                               std::span<const double> bounds) {
  const uint64_t texts = AlignUp8(name.size() + unit.size() + text.size());
  const uint64_t size = sizeof(kind) + texts + bounds.size_bytes();
  TACHO_DCHECK(!name.empty() && unit.size() <= kMaxUnitBytes);
  TACHO_DCHECK(bounds.size() <= kMaxHistogramBounds);
  if (definitions_ + size > kDefinitionBytes) return false;
  DefinitionHeader header = kind;
  header.size = static_cast<uint32_t>(size);
  header.name_bytes = static_cast<uint32_t>(name.size());
  header.unit_bytes = static_cast<uint32_t>(unit.size());
  header.text_bytes = static_cast<uint32_t>(text.size());

  // The area was zero and is written once, so the padding is zero already.
  char* const at = base_ + kRingHeaderBytes + definitions_;
  char* const payload = at + sizeof(header);
  Append(Append(Append(payload, name), unit), text);
  if (!bounds.empty()) std::memcpy(payload + texts, bounds.data(), bounds.size_bytes());
  header.crc = ExtendCrc32c(HeaderCrc(definitions_, header), payload, size - sizeof(header));
  std::memcpy(at, &header, sizeof(header));
  definitions_ += size;
  Store(offsetof(RingCursors, definitions), definitions_, std::memory_order_release);
  return true;
}

// Readers must see that bytes are about to change before any of them does.
void RingWriter::Announce(uint64_t end) {
#if defined(__SANITIZE_THREAD__)
  // The sanitizer knows no fences; this orders as much, at a higher price.
  auto* cursor = reinterpret_cast<uint64_t*>(base_ + kRingCursorsOffset);
  static_assert(offsetof(RingCursors, reserved) == 0);
  std::atomic_ref<uint64_t>(*cursor).exchange(end, std::memory_order_acq_rel);
#else
  // As the writer of a sequence lock begins.
  Store(offsetof(RingCursors, reserved), end, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
#endif
}

char* RingWriter::Reserve(size_t size) {
  // The records' area ends with a block, so what fits a block stays within the mapping.
  TACHO_CHECK(size <= kBlockBytes);
  TACHO_DCHECK(size % 8 == 0 && position_ % 8 == 0);
  const uint64_t room = kBlockBytes - position_ % kBlockBytes;
  const uint64_t padding = size <= room ? 0 : room;
  Announce(position_ + padding + size);
  if (padding != 0) PutPadding(padding);
  TACHO_DCHECK(position_ / kBlockBytes == (position_ + size - 1) / kBlockBytes);
  return records_ + (position_ & mask_);
}

void RingWriter::PutPadding(uint64_t size) {
  if (size >= sizeof(RecordHeader)) {
    RecordHeader header = {};
    header.size = static_cast<uint32_t>(size);
    header.kind = static_cast<uint16_t>(RecordKind::kPadding);
    header.number = records_written_;
    header.row = rows_written_;
    header.crc = HeaderCrc(position_, header);
    std::memcpy(records_ + (position_ & mask_), &header, sizeof(header));
  }
  position_ += size;
}

void RingWriter::Commit(size_t size) {
  position_ += size;
  Store(offsetof(RingCursors, committed), position_, std::memory_order_release);
}

RecordHeader RingWriter::HeaderOf(RecordKind kind, size_t size, size_t count, int64_t time_unix_ns,
                                  std::optional<int64_t> step) const {
  RecordHeader header = {};
  header.size = static_cast<uint32_t>(size);
  header.kind = static_cast<uint16_t>(kind);
  header.flags = step.has_value() ? kFlagStep : 0;
  header.count = static_cast<uint32_t>(count);
  header.number = records_written_;
  header.row = rows_written_;
  header.time_unix_ns = time_unix_ns;
  header.step = step.value_or(0);
  return header;
}

void RingWriter::AddRow(int64_t time_unix_ns, std::optional<int64_t> step,
                        std::span<const double> values) {
  TACHO_DCHECK(!values.empty() && values.size() <= kMaxMetrics && time_unix_ns >= 0);
  const size_t size = sizeof(RecordHeader) + values.size_bytes();
  RecordHeader header = HeaderOf(RecordKind::kRow, size, values.size(), time_unix_ns, step);
  char* const at = Reserve(size);
  header.crc = ExtendCrc32c(HeaderCrc(position_, header), values.data(), values.size_bytes());
  std::memcpy(at, &header, sizeof(header));
  std::memcpy(at + sizeof(header), values.data(), values.size_bytes());
  ++rows_written_;
  ++records_written_;
  Commit(size);
}

void RingWriter::AddHistogramState(uint32_t histogram, int64_t time_unix_ns,
                                   std::optional<int64_t> step, double sum,
                                   std::span<const uint64_t> counts) {
  TACHO_DCHECK(counts.size() >= 2 && counts.size() <= kMaxHistogramBounds + 1);
  const HistogramStateHeader state = {.histogram = histogram, .zero = 0, .sum = sum};
  const size_t size = sizeof(RecordHeader) + sizeof(state) + counts.size_bytes();
  RecordHeader header =
      HeaderOf(RecordKind::kHistogramState, size, counts.size(), time_unix_ns, step);
  char* const at = Reserve(size);
  header.crc = ExtendCrc32c(HeaderCrc(position_, header), &state, sizeof(state));
  header.crc = ExtendCrc32c(header.crc, counts.data(), counts.size_bytes());
  std::memcpy(at, &header, sizeof(header));
  std::memcpy(at + sizeof(header), &state, sizeof(state));
  std::memcpy(at + sizeof(header) + sizeof(state), counts.data(), counts.size_bytes());
  Commit(size);
}

void RingWriter::AddEvent(int64_t time_unix_ns, std::optional<int64_t> step, std::string_view kind,
                          std::string_view message, std::span<const Field> fields) {
  TACHO_DCHECK(!kind.empty() && fields.size() <= kMaxEventFields);
  size_t texts = kind.size() + message.size();
  for (const auto& [name, value] : fields) texts += name.size() + value.size();
  const size_t lengths = sizeof(uint32_t) * (2 + 2 * fields.size());
  const size_t size = AlignUp8(sizeof(RecordHeader) + lengths + texts);
  RecordHeader header = HeaderOf(RecordKind::kEvent, size, fields.size(), time_unix_ns, step);

  char* const at = Reserve(size);
  char* const payload = at + sizeof(header);
  std::memset(at + size - 8, 0, 8);
  char* length = payload;
  char* text = payload + lengths;
  const auto put = [&](std::string_view value) {
    const auto bytes = static_cast<uint32_t>(value.size());
    std::memcpy(length, &bytes, sizeof(bytes));
    length += sizeof(bytes);
    text = Append(text, value);
  };
  put(kind);
  put(message);
  for (const auto& [name, value] : fields) {
    put(name);
    put(value);
  }
  TACHO_DCHECK(length == payload + lengths && text <= at + size);
  header.crc = ExtendCrc32c(HeaderCrc(position_, header), payload, size - sizeof(header));
  std::memcpy(at, &header, sizeof(header));
  ++records_written_;
  Commit(size);
}

void RingWriter::SetRefused(uint64_t refused) {
  Store(offsetof(RingCursors, refused), refused, std::memory_order_relaxed);
}

void RingWriter::Close(const RecorderEnd& end) {
  // A ring that stays open shows the agent that its process failed.
  if (end.exit_code != 0 && !end.recorded) return;
  Store(offsetof(RingCursors, closed), 1, std::memory_order_release);
}

}  // namespace tacho::client
