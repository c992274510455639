// Takes a ring's header, definitions and records from untrusted bytes: a size is compared with what
// is there before anything is read by it, and a checksum covers the position as well, so that bytes
// of an earlier lap never pass for a record.
#include "client/ring/ring_records.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/ring/ring_text.h"
#include "proto/base/check.h"
#include "proto/base/crc32c.h"

namespace tacho::client {
namespace {

bool Clean(absl::string_view text) {
  return IsCleanText(std::string_view(text.data(), text.size()));
}

bool CleanName(absl::string_view name, size_t max_bytes) {
  return !name.empty() && name.size() <= max_bytes && Clean(name);
}

bool CleanUpTo(absl::string_view text, size_t max_bytes) {
  return text.size() <= max_bytes && Clean(text);
}

// Cuts off the next `size` bytes of `rest`, which has them.
absl::string_view Take(absl::string_view* rest, size_t size) {
  TACHO_CHECK(size <= rest->size());
  const absl::string_view taken = rest->substr(0, size);
  rest->remove_prefix(size);
  return taken;
}

uint32_t TakeLength(absl::string_view* rest) {
  uint32_t length;
  std::memcpy(&length, Take(rest, sizeof(length)).data(), sizeof(length));
  return length;
}

// The checksum of `bytes`, whose first four are the checksum itself.
uint32_t CrcAt(uint64_t position, absl::string_view bytes) {
  TACHO_CHECK(bytes.size() >= sizeof(uint32_t));
  const uint32_t crc = ExtendCrc32c(0, &position, sizeof(position));
  return ExtendCrc32c(crc, bytes.data() + sizeof(crc), bytes.size() - sizeof(crc));
}

// nullopt if they are not the bounds of a histogram. `bytes` are a whole number of doubles.
std::optional<std::vector<double>> ParseBounds(absl::string_view bytes) {
  TACHO_CHECK(bytes.size() % sizeof(double) == 0);
  std::vector<double> bounds(bytes.size() / sizeof(double));
  if (bounds.empty() || bounds.size() > kMaxHistogramBounds) return std::nullopt;
  std::memcpy(bounds.data(), bytes.data(), bytes.size());
  for (size_t i = 0; i < bounds.size(); ++i) {
    if (!std::isfinite(bounds[i]) || (i > 0 && bounds[i] <= bounds[i - 1])) return std::nullopt;
  }
  return bounds;
}

bool GeometryIsRight(const RingHeader& header, uint64_t file_bytes) {
  return header.header_bytes == kRingHeaderBytes && header.definition_bytes == kDefinitionBytes &&
         header.block_bytes == kBlockBytes && std::has_single_bit(header.record_bytes) &&
         header.record_bytes >= kMinRecordBytes && header.record_bytes <= kMaxRecordBytes &&
         file_bytes == kRingHeaderBytes + kDefinitionBytes + header.record_bytes;
}

}  // namespace

absl::StatusOr<ParsedHeader> ParseRingHeader(absl::string_view bytes, uint64_t file_bytes) {
  RingHeader header;
  if (bytes.size() < sizeof(header)) return absl::DataLossError("too short for a ring");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (std::memcmp(header.magic, kRingMagic, sizeof(kRingMagic)) != 0) {
    return absl::DataLossError("not a ring");
  }
  if (header.version < kOldestRingVersion || header.version > kRingVersion) {
    return absl::FailedPreconditionError(absl::StrCat("ring of version ", header.version,
                                                      "; this program reads versions ",
                                                      kOldestRingVersion, " to ", kRingVersion));
  }
  if (header.crc != ExtendCrc32c(0, bytes.data(), kHeaderCrcOffset)) {
    return absl::DataLossError("the ring's header is damaged");
  }
  if (!GeometryIsRight(header, file_bytes)) {
    return absl::DataLossError(absl::StrCat("a ring of impossible size, ", file_bytes, " bytes"));
  }
  if (header.job_bytes > kMaxJobBytes ||
      !CleanName(absl::string_view(header.job, header.job_bytes), kMaxJobBytes)) {
    return absl::DataLossError("the ring's job has no proper name");
  }
  ParsedHeader parsed;
  parsed.flags = header.flags;
  parsed.version = header.version;
  parsed.info.job.assign(header.job, header.job_bytes);
  parsed.info.task = header.task;
  parsed.info.attempt = header.attempt;
  parsed.info.pid = header.pid;
  parsed.info.process_start_ticks = header.process_start_ticks;
  parsed.info.created_unix_ns = header.created_unix_ns;
  parsed.info.record_bytes = header.record_bytes;
  return parsed;
}

std::optional<RingDefinition> ParseDefinition(absl::string_view bytes, uint64_t position,
                                              uint32_t version) {
  DefinitionHeader header;
  if (bytes.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const uint64_t texts =
      AlignUp8(uint64_t{header.name_bytes} + header.unit_bytes + header.text_bytes);
  const uint64_t bounds = sizeof(double) * uint64_t{header.bounds};
  if (header.size > bytes.size() || header.size != sizeof(header) + texts + bounds) {
    return std::nullopt;
  }
  if (header.crc != CrcAt(position, bytes.substr(0, header.size))) return std::nullopt;
  absl::string_view rest = bytes.substr(sizeof(header));
  const std::string name(Take(&rest, header.name_bytes));
  const std::string unit(Take(&rest, header.unit_bytes));
  const std::string text(Take(&rest, header.text_bytes));

  if (header.kind == static_cast<uint32_t>(DefinitionKind::kHistogram)) {
    if (version < kHistogramsSinceVersion || !CleanName(name, kMaxMetricNameBytes) ||
        !CleanUpTo(unit, kMaxUnitBytes) || !CleanUpTo(text, kMaxHelpBytes)) {
      return std::nullopt;
    }
    std::optional<std::vector<double>> ascending =
        ParseBounds(bytes.substr(sizeof(header) + texts, bounds));
    if (!ascending) return std::nullopt;
    return RingDefinition{header.size, RingHistogram{name, unit, text, *std::move(ascending)}};
  }
  if (header.bounds != 0) return std::nullopt;
  if (header.kind == static_cast<uint32_t>(DefinitionKind::kAttribute)) {
    if (!CleanName(name, kMaxAttributeKeyBytes) || !unit.empty() ||
        !CleanUpTo(text, kMaxAttributeValueBytes)) {
      return std::nullopt;
    }
    return RingDefinition{header.size, RingAttribute{name, text}};
  }
  if (header.kind != static_cast<uint32_t>(DefinitionKind::kMetric)) return std::nullopt;
  const auto type = static_cast<MetricType>(header.type);
  if ((type != MetricType::kGauge && type != MetricType::kCounter) ||
      !CleanName(name, kMaxMetricNameBytes) || !CleanUpTo(unit, kMaxUnitBytes) ||
      !CleanUpTo(text, kMaxHelpBytes)) {
    return std::nullopt;
  }
  return RingDefinition{header.size, RingMetric{name, type, unit, text}};
}

std::optional<RingRecord> ParseRecord(absl::string_view bytes, uint64_t position,
                                      uint32_t version) {
  RingRecord record;
  RecordHeader& header = record.header;
  if (bytes.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.size < sizeof(header) || header.size > bytes.size() || header.size % 8 != 0) {
    return std::nullopt;
  }
  const size_t covered = record.IsPadding() ? sizeof(header) : header.size;
  if (header.crc != CrcAt(position, bytes.substr(0, covered))) return std::nullopt;
  record.payload = bytes.substr(sizeof(header), header.size - sizeof(header));
  switch (static_cast<RecordKind>(header.kind)) {
    case RecordKind::kRow:
      if (header.count == 0 || header.count > kMaxMetrics || header.time_unix_ns < 0 ||
          record.payload.size() != header.count * sizeof(double)) {
        return std::nullopt;
      }
      return record;
    case RecordKind::kEvent:
      if (header.count > kMaxEventFields || header.time_unix_ns < 0) return std::nullopt;
      return record;
    case RecordKind::kHistogramState:
      if (version < kHistogramsSinceVersion || header.count < 2 ||
          header.count > kMaxHistogramBounds + 1 || header.time_unix_ns < 0 ||
          record.payload.size() != sizeof(HistogramStateHeader) + header.count * sizeof(uint64_t)) {
        return std::nullopt;
      }
      return record;
    case RecordKind::kPadding:
      return record;
  }
  return std::nullopt;
}

RingHistogramState ParseHistogramState(const RingRecord& record) {
  HistogramStateHeader header;
  TACHO_CHECK(record.IsHistogramState());
  TACHO_CHECK(record.payload.size() == sizeof(header) + record.header.count * sizeof(uint64_t));
  std::memcpy(&header, record.payload.data(), sizeof(header));
  RingHistogramState state;
  state.histogram = header.histogram;
  state.time_unix_ns = record.header.time_unix_ns;
  if (record.HasStep()) state.step = record.header.step;
  state.sum = header.sum;
  state.counts.resize(record.header.count);
  std::memcpy(state.counts.data(), record.payload.data() + sizeof(header),
              state.counts.size() * sizeof(uint64_t));
  return state;
}

std::optional<RingEvent> ParseEvent(const RingRecord& record) {
  TACHO_CHECK(record.header.kind == static_cast<uint16_t>(RecordKind::kEvent));
  const size_t texts = 2 + 2 * size_t{record.header.count};
  absl::string_view lengths = record.payload;
  if (lengths.size() < texts * sizeof(uint32_t)) return std::nullopt;
  absl::string_view rest = lengths.substr(texts * sizeof(uint32_t));
  std::vector<std::string> read;
  for (size_t i = 0; i < texts; ++i) {
    const uint32_t length = TakeLength(&lengths);
    if (length > rest.size()) return std::nullopt;
    read.emplace_back(Take(&rest, length));
  }
  if (!CleanName(read[0], kMaxEventKindBytes) || !CleanUpTo(read[1], kMaxEventMessageBytes)) {
    return std::nullopt;
  }
  RingEvent event;
  event.time_unix_ns = record.header.time_unix_ns;
  if (record.HasStep()) event.step = record.header.step;
  event.kind = std::move(read[0]);
  event.message = std::move(read[1]);
  for (size_t i = 2; i < texts; i += 2) {
    if (!CleanName(read[i], kMaxEventFieldNameBytes) ||
        !CleanUpTo(read[i + 1], kMaxEventFieldValueBytes)) {
      return std::nullopt;
    }
    event.fields.emplace_back(std::move(read[i]), std::move(read[i + 1]));
  }
  return event;
}

}  // namespace tacho::client
