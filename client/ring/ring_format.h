// The bytes of a ring: the file through which a trainer hands what it records to the agent.
//
//    0          4096                      4096 + definition_bytes
//    +----------+-------------------------+-----------------------------------------------+
//    | header   | definitions             | records: a ring of blocks, oldest overwritten |
//    | 4 KiB    | metrics, histograms,    | | block | block | …                           |
//    |          | attributes; append-only | rows, events, states of histograms            |
//    +----------+-------------------------+-----------------------------------------------+
//
// docs/ring_format.md has every field, what a reader must check, and a worked example. All numbers
// are little-endian. A position counts record bytes ever written and never wraps; it lies at
// position % record_bytes of the record area. The layout is shared between programs of different
// versions: changing it needs a new kRingVersion and a note in the document.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "proto/base/stale_marker.h"

namespace tacho::client {

static_assert(std::endian::native == std::endian::little, "rings are mapped, little-endian");

inline constexpr char kRingMagic[8] = {'T', 'A', 'C', 'H', 'O', 'R', 'N', 'G'};
// Version 1 has no histograms and is version 2 otherwise. Readers read both.
inline constexpr uint32_t kRingVersion = 2;
inline constexpr uint32_t kOldestRingVersion = 1;
inline constexpr uint32_t kHistogramsSinceVersion = 2;

// One page, so that the areas behind it are page-aligned.
inline constexpr uint32_t kRingHeaderBytes = 4096;
// Room for about 2,000 metrics with an ordinary help text.
inline constexpr uint32_t kDefinitionBytes = 256 * 1024;
// Attributes may fill half of the definitions, so that a trainer that sets one at every step still
// has room for its metrics.
inline constexpr uint32_t kAttributeBytes = kDefinitionBytes / 2;
// A reader that was overtaken resumes at the beginning of a block. One block holds the largest
// record.
inline constexpr uint32_t kBlockBytes = 64 * 1024;
// With fewer than four blocks, a reader that is overtaken might find none.
inline constexpr uint64_t kMinRecordBytes = uint64_t{4} * kBlockBytes;
inline constexpr uint64_t kDefaultRecordBytes = uint64_t{4} * 1024 * 1024;
inline constexpr uint64_t kMaxRecordBytes = uint64_t{1024} * 1024 * 1024;

// Limits of what is recorded; where tacho.v1 has a limit, the same.
inline constexpr size_t kMaxJobBytes = 256;
inline constexpr size_t kMaxMetrics = 1024;  // A row of them is an eighth of a block.
inline constexpr size_t kMaxMetricNameBytes = 256;
// A histogram's memory is fixed when it is declared; with these limits a process needs 17 KiB for
// all.
inline constexpr size_t kMaxHistograms = 32;
inline constexpr size_t kMaxHistogramBounds = 64;
inline constexpr size_t kMaxUnitBytes = 63;
inline constexpr size_t kMaxHelpBytes = 1024;
inline constexpr size_t kMaxAttributeKeyBytes = 128;
inline constexpr size_t kMaxAttributeValueBytes = 4096;
inline constexpr size_t kMaxEventKindBytes = 128;
inline constexpr size_t kMaxEventMessageBytes = 1024;
inline constexpr size_t kMaxEventFields = 32;
inline constexpr size_t kMaxEventFieldNameBytes = 128;
inline constexpr size_t kMaxEventFieldValueBytes = 1024;

// Written once, before the file gets its name.
struct RingHeader {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint32_t definition_bytes;
  uint32_t block_bytes;
  uint64_t record_bytes;  // A power of two.
  uint32_t pid;           // As the writer sees itself; another in another pid namespace.
  uint32_t task;
  uint64_t process_start_ticks;  // Field 22 of /proc/<pid>/stat: clock ticks since boot; 0 unknown.
  int64_t created_unix_ns;
  uint32_t attempt;
  uint32_t flags;  // kFlagLocked
  uint32_t job_bytes;
  uint32_t reserved;
  char job[kMaxJobBytes];
  char zero[180];
  uint32_t crc;  // CRC-32C of all bytes before it.
};
inline constexpr size_t kHeaderCrcOffset = 508;
static_assert(sizeof(RingHeader) == 512 && offsetof(RingHeader, crc) == kHeaderCrcOffset);

// The writer holds an open-file-description lock on the whole file while it lives.
inline constexpr uint32_t kFlagLocked = 1;

// Follows RingHeader at kRingCursorsOffset. Changed by the writer with atomic 8-byte stores.
struct RingCursors {
  uint64_t reserved;     // Position up to which the writer may be writing at this moment.
  uint64_t committed;    // Position up to which records are complete. <= reserved.
  uint64_t definitions;  // Bytes of the definition area that are complete.
  uint64_t refused;      // Things that the trainer asked to record and the writer refused.
  uint64_t closed;       // 1 once the writer has ended properly, else 0.
};
inline constexpr size_t kRingCursorsOffset = 512;
static_assert(sizeof(RingCursors) == 40);

// Each definition and each record begins with a multiple of 8 and is a multiple of 8 long. `crc` is
// the CRC-32C of its position (8 bytes: offset in the area, or position in the ring) followed by
// its bytes from `size` to its end, so that bytes left from an earlier lap never pass for this
// one's.
struct DefinitionHeader {
  uint32_t crc;
  uint32_t size;  // The whole definition, padding included.
  uint32_t kind;  // DefinitionKind
  uint32_t type;  // MetricType of a metric, else 0.
  uint32_t name_bytes;
  uint32_t unit_bytes;  // 0 for an attribute.
  uint32_t text_bytes;  // Help of a metric or histogram, value of an attribute.
  uint32_t bounds;      // Number of a histogram's bounds, else 0.
  // Then name, unit and text without terminators, zeros up to a multiple of 8, and the bounds of a
  // histogram: finite doubles, ascending.
};
static_assert(sizeof(DefinitionHeader) == 32);

enum class DefinitionKind : uint32_t { kMetric = 1, kAttribute = 2, kHistogram = 3 };

// As in tacho.v1.MetricType.
enum class MetricType : uint32_t { kGauge = 1, kCounter = 2 };

struct RecordHeader {
  uint32_t crc;   // Padding: over the header alone.
  uint32_t size;  // The whole record, padding included.
  uint16_t kind;  // RecordKind
  uint16_t flags;
  // Values of a row: those of the first `count` metrics. Fields of an event. Buckets of a
  // histogram.
  uint32_t count;
  uint64_t number;  // Rows and events written before this one.
  uint64_t row;     // Rows written before this one.
  int64_t time_unix_ns;
  int64_t step;  // 0 without kFlagStep.
  // Then the payload.
  //   row              `count` doubles
  //   event            2 + 2 * count lengths (u32), of kind, message and each field's name and
  //                    value; then those texts, then zeros up to a multiple of 8
  //   histogram state  HistogramStateHeader, then `count` numbers of observations (u64) since the
  //                    declaration: one for each bucket and one for what is above the last bound
};
static_assert(sizeof(RecordHeader) == 48);

struct HistogramStateHeader {
  uint32_t histogram;  // Numbered from 0 in the order of their definitions.
  uint32_t zero;
  double sum;  // The sum of the finite observations.
};
static_assert(sizeof(HistogramStateHeader) == 16);

enum class RecordKind : uint16_t {
  kRow = 1,
  kEvent = 2,
  // Fills a block to its end when the next record does not fit. Where less than a RecordHeader is
  // left of a block, there is nothing: the next record begins with the next block.
  kPadding = 3,
  // Not numbered, as padding: each one says all that those before it said.
  kHistogramState = 4,
};

inline constexpr uint16_t kFlagStep = 1;  // `step` is set.

inline constexpr size_t kMaxRowBytes = sizeof(RecordHeader) + 8 * kMaxMetrics;
inline constexpr size_t kMaxHistogramStateBytes =
    sizeof(RecordHeader) + sizeof(HistogramStateHeader) + 8 * (kMaxHistogramBounds + 1);
inline constexpr size_t kMaxEventBytes =
    sizeof(RecordHeader) + 4 * (2 + 2 * kMaxEventFields) + kMaxEventKindBytes +
    kMaxEventMessageBytes + kMaxEventFields * (kMaxEventFieldNameBytes + kMaxEventFieldValueBytes) +
    8;
static_assert(kMaxRowBytes < kBlockBytes && kMaxEventBytes < kBlockBytes &&
              kMaxHistogramStateBytes < kBlockBytes);

constexpr uint64_t AlignUp8(uint64_t n) { return (n + 7) & ~uint64_t{7}; }

}  // namespace tacho::client
