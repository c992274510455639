// Feeds the ring reader whole files: a sound header, and cursors, definitions and records from the
// input. Checksums are repaired on most inputs, or nothing behind them would ever be reached.
//
// Input: a mode byte, a length of the definitions (2 bytes), 40 bytes of cursors (if the mode says
// so), definitions, records.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"
#include "client/ring/ring_reader.h"
#include "client/ring/ring_records.h"
#include "proto/base/crc32c.h"

namespace {

using tacho::ExtendCrc32c;

constexpr uint8_t kRawChecksums = 1;
constexpr uint8_t kCursorsFromInput = 2;
constexpr uint8_t kAlsoParseHeader = 4;
constexpr uint8_t kOldestVersion = 8;

tacho::client::RingHeader SoundHeader(bool oldest_version) {
  tacho::client::RingHeader header = {};
  std::memcpy(header.magic, tacho::client::kRingMagic, sizeof(header.magic));
  header.version = oldest_version ? tacho::client::kOldestRingVersion : tacho::client::kRingVersion;
  header.header_bytes = tacho::client::kRingHeaderBytes;
  header.definition_bytes = tacho::client::kDefinitionBytes;
  header.block_bytes = tacho::client::kBlockBytes;
  header.record_bytes = tacho::client::kMinRecordBytes;
  header.job_bytes = 1;
  header.job[0] = 'j';
  header.crc = ExtendCrc32c(0, &header, tacho::client::kHeaderCrcOffset);
  return header;
}

// Walks along the sizes and makes each checksum right, as far as they lead.
template <typename Header>
void Repair(std::string* bytes) {
  for (uint64_t at = 0; at + sizeof(Header) <= bytes->size();) {
    Header header;
    std::memcpy(&header, &(*bytes)[at], sizeof(header));
    if (header.size < sizeof(header) || header.size > bytes->size() - at || header.size % 8 != 0) {
      return;
    }
    const uint32_t crc = ExtendCrc32c(0, &at, sizeof(at));
    header.crc = ExtendCrc32c(crc, &(*bytes)[at + 4], header.size - 4);
    std::memcpy(&(*bytes)[at], &header.crc, sizeof(header.crc));
    at += header.size;
  }
}

std::string Take(absl::string_view* input, size_t size) {
  const std::string taken(input->substr(0, size));
  input->remove_prefix(taken.size());
  return taken;
}

// One file for all inputs, emptied each time.
int TestFile(std::string* path) {
  static std::string name;
  static const int fd = [] {
    const char* directory = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe)
    name = std::string(directory == nullptr ? "/tmp" : directory) + "/ring_fuzz_XXXXXX";
    return mkstemp(name.data());
  }();
  static const int registered = std::atexit([] { unlink(name.c_str()); });
  *path = name;
  return registered == 0 ? fd : -1;
}

void Check(bool holds) {
  if (!holds) std::abort();
}

void CheckPiece(const tacho::client::RingReader& reader, const tacho::client::RingPiece& piece) {
  if (const auto* state = std::get_if<tacho::client::RingHistogramState>(&piece.content)) {
    Check(state->histogram < reader.histograms().size());
    Check(state->counts.size() == reader.histograms()[state->histogram].bounds.size() + 1);
  }
  if (const auto* rows = std::get_if<tacho::client::RingRows>(&piece.content)) {
    Check(rows->metric_count >= 1 && rows->metric_count <= reader.metrics().size());
    Check(rows->values.size() == rows->times_unix_ns.size() * rows->metric_count);
  }
}

void ReadEverything(const std::string& path) {
  auto reader = tacho::client::RingReader::Open(path);
  if (!reader.ok()) return;
  tacho::client::RingCursor cursor;
  for (int turn = 0; turn < 1000; ++turn) {
    auto batch = (*reader)->Read(cursor, {.max_rows_per_piece = 3, .max_rows = 5});
    if (!batch.ok()) return;
    Check(batch->end.record >= cursor.record && batch->end.row >= cursor.row);
    for (const auto& piece : batch->pieces) CheckPiece(**reader, piece);
    cursor = batch->end;
    if (batch->at_end) return;
  }
}

void Put(int fd, const void* bytes, size_t size, uint64_t offset) {
  Check(pwrite(fd, bytes, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tacho::client;
  absl::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.size() < 3) return 0;
  const auto mode = static_cast<uint8_t>(input[0]);
  uint16_t definition_bytes;
  std::memcpy(&definition_bytes, &input[1], sizeof(definition_bytes));
  input.remove_prefix(3);
  if ((mode & kAlsoParseHeader) != 0) {
    (void)ParseRingHeader(input, kRingHeaderBytes + kDefinitionBytes + kMinRecordBytes);
  }

  RingCursors cursors = {};
  if ((mode & kCursorsFromInput) != 0 && input.size() >= sizeof(cursors)) {
    std::memcpy(&cursors, Take(&input, sizeof(cursors)).data(), sizeof(cursors));
  }
  std::string definitions = Take(&input, definition_bytes / 8 * 8);
  std::string records = Take(&input, kMinRecordBytes);
  if ((mode & kRawChecksums) == 0) {
    Repair<DefinitionHeader>(&definitions);
    Repair<RecordHeader>(&records);
  }
  if ((mode & kCursorsFromInput) == 0) {
    cursors.definitions = definitions.size() / 8 * 8;
    cursors.committed = cursors.reserved = records.size() / 8 * 8;
  }

  std::string path;
  const int fd = TestFile(&path);
  Check(fd >= 0 && ftruncate(fd, 0) == 0);
  Check(ftruncate(fd, kRingHeaderBytes + kDefinitionBytes + kMinRecordBytes) == 0);
  const RingHeader header = SoundHeader((mode & kOldestVersion) != 0);
  Put(fd, &header, sizeof(header), 0);
  Put(fd, &cursors, sizeof(cursors), kRingCursorsOffset);
  Put(fd, definitions.data(), definitions.size(), kRingHeaderBytes);
  Put(fd, records.data(), records.size(), kRingHeaderBytes + kDefinitionBytes);
  ReadEverything(path);
  return 0;
}
