#include "storage/shard/segment.h"

#include <zstd.h>

#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/crc32c.h"
#include "proto/base/status_macros.h"
#include "storage/codec/bytes.h"
#include "storage/shard/bucket_keys.h"

namespace tacho::storage {
namespace {

constexpr absl::string_view kSegmentMagic = "tachoseg";
constexpr absl::string_view kSealMagic = "tachosel";
constexpr size_t kMagicBytes = 8;
constexpr size_t kCheckedFrom = 16;  // Where the bytes under the checksum begin.
constexpr int kZstdLevel = 1;

uint32_t Crc(absl::string_view bytes) { return ExtendCrc32c(0, bytes.data(), bytes.size()); }

// The header has the checksum of what follows it.
std::string Frame(absl::string_view magic, absl::string_view checked) {
  std::string bytes(magic);
  bytes.reserve(kCheckedFrom + checked.size());
  PutLe32(kSegmentFormat, &bytes);
  PutLe32(Crc(checked), &bytes);
  bytes.append(checked.data(), checked.size());
  return bytes;
}

void PutPlace(const LogPlace& place, std::string* out) {
  PutLe32(place.shard, out);
  PutLe64(place.epoch, out);
  PutLe64(place.number, out);
}

LogPlace ReadPlace(ByteReader* in) {
  LogPlace place;
  place.shard = in->Le32();
  place.epoch = in->Le64();
  place.number = in->Le64();
  return place;
}

void AppendCompressed(const std::string& payload, std::string* out) {
  const size_t before = out->size();
  out->resize(before + ZSTD_compressBound(payload.size()));
  const size_t size = ZSTD_compress(out->data() + before, out->size() - before, payload.data(),
                                    payload.size(), kZstdLevel);
  TACHO_CHECK(!ZSTD_isError(size));  // There is room for anything.
  out->resize(before + size);
}

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("it is damaged: ", what));
}

absl::StatusOr<std::string> Decompress(absl::string_view frame, size_t bytes) {
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != bytes ||
      ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size()) {
    return Damaged("the payload is no zstd frame of the size that the header says");
  }
  std::string payload(bytes, '\0');
  if (ZSTD_decompress(payload.data(), bytes, frame.data(), frame.size()) != bytes) {
    return Damaged("zstd cannot decompress the payload");
  }
  return payload;
}

absl::StatusOr<LogObject> DecodeSegment(ByteReader in, const LogPlace& place) {
  Segment segment{.place = place};
  segment.nonce = in.Le64();
  segment.after = in.Le64();
  segment.last = in.Le64();
  const uint32_t count = in.Le32();
  const uint32_t bytes = in.Le32();
  if (!in.ok()) return Damaged("it ends within the header");
  if (bytes > kMaxSegmentPayload) return Damaged("the payload is larger than one may be");
  if (count > bytes) return Damaged("it cannot have so many records");
  TACHO_ASSIGN_OR_RETURN(const std::string payload, Decompress(in.rest(), bytes));
  ByteReader records(payload);
  segment.records.reserve(count);
  for (uint32_t i = 0; i < count; ++i) segment.records.emplace_back(records.String());
  if (!records.AtEnd()) return Damaged("the records do not fill the payload");
  return segment;
}

absl::StatusOr<LogObject> DecodeSeal(ByteReader in, const LogPlace& place) {
  Seal seal{.place = place};
  seal.sealed_by = in.Le64();
  if (!in.AtEnd()) return Damaged("a seal has 44 bytes");
  return seal;
}

absl::StatusOr<LogObject> Decode(absl::string_view bytes, const LogPlace& place) {
  const absl::string_view magic = bytes.substr(0, kMagicBytes);
  const bool is_seal = magic == kSealMagic;
  if (!is_seal && magic != kSegmentMagic) {
    return absl::DataLossError("it is neither a segment nor a seal");
  }
  ByteReader in(bytes.substr(kMagicBytes));
  const uint32_t format = in.Le32();
  const uint32_t crc = in.Le32();
  if (!in.ok()) return Damaged("it ends within the header");
  if (format != kSegmentFormat) {
    return absl::UnimplementedError(
        absl::StrCat("it has format ", format, ", and this version reads format ", kSegmentFormat,
                     " only. Run the version that wrote it, or a later one."));
  }
  if (crc != Crc(in.rest())) return Damaged("the checksum differs");
  const LogPlace found = ReadPlace(&in);
  if (!in.ok()) return Damaged("it ends within the header");
  if (found != place) {
    return absl::DataLossError(absl::StrCat("it belongs to number ", found.number, " of epoch ",
                                            found.epoch, " in shard ", found.shard));
  }
  return is_seal ? DecodeSeal(in, place) : DecodeSegment(in, place);
}

}  // namespace

size_t PayloadBytes(const std::vector<std::string>& records) {
  size_t bytes = 0;
  for (const std::string& record : records) {
    std::string length;
    PutVarint(record.size(), &length);
    bytes += length.size() + record.size();
  }
  return bytes;
}

std::string EncodeSegment(const Segment& segment) {
  std::string payload;
  for (const std::string& record : segment.records) PutString(record, &payload);
  TACHO_CHECK(payload.size() <= kMaxSegmentPayload);
  std::string checked;
  PutPlace(segment.place, &checked);
  PutLe64(segment.nonce, &checked);
  PutLe64(segment.after, &checked);
  PutLe64(segment.last, &checked);
  PutLe32(static_cast<uint32_t>(segment.records.size()), &checked);
  PutLe32(static_cast<uint32_t>(payload.size()), &checked);
  AppendCompressed(payload, &checked);
  return Frame(kSegmentMagic, checked);
}

std::string EncodeSeal(const Seal& seal) {
  std::string checked;
  PutPlace(seal.place, &checked);
  PutLe64(seal.sealed_by, &checked);
  return Frame(kSealMagic, checked);
}

absl::StatusOr<LogObject> DecodeLogObject(absl::string_view bytes, const LogPlace& place) {
  absl::StatusOr<LogObject> object = Decode(bytes, place);
  if (object.ok()) return object;
  return absl::Status(object.status().code(),
                      absl::StrCat(SegmentKey(place.shard, place.epoch, place.number), ": ",
                                   object.status().message()));
}

bool LooksLikeSegment(absl::string_view bytes) { return absl::StartsWith(bytes, kSegmentMagic); }

}  // namespace tacho::storage
