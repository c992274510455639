// Everything that a shard reads from a bucket, over any bytes: refused or decoded, never a crash,
// and what is decoded is encoded to something that decodes the same. The checksum of segments and
// seals is mended first, half of the time: else nothing would come past it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <variant>

#include "absl/strings/string_view.h"
#include "proto/base/crc32c.h"
#include "storage/codec/bytes.h"
#include "storage/shard/bucket_keys.h"
#include "storage/shard/manifest.h"
#include "storage/shard/segment.h"
#include "storage/shard/shard_count.h"

namespace tacho::storage {
namespace {

constexpr size_t kChecked = 16;  // Where the bytes under the checksum begin.
constexpr size_t kPlaceEnd = 36;

void Expect(bool holds) {
  if (!holds) std::abort();
}

std::string Mended(std::string bytes) {
  if (bytes.size() < kChecked) return bytes;
  std::string crc;
  PutLe32(ExtendCrc32c(0, bytes.data() + kChecked, bytes.size() - kChecked), &crc);
  return bytes.replace(kChecked - crc.size(), crc.size(), crc);
}

// The place that the bytes say, so that they are read further.
LogPlace PlaceIn(absl::string_view bytes) {
  if (bytes.size() < kPlaceEnd) return {};
  ByteReader in(bytes.substr(kChecked));
  LogPlace place;
  place.shard = in.Le32() % (kMaxShard + 1);
  place.epoch = in.Le64() % (kMaxKeyNumber + 1);
  place.number = in.Le64() % (kMaxKeyNumber + 1);
  return place;
}

void FuzzLogObject(const std::string& bytes) {
  const LogPlace place = PlaceIn(bytes);
  const auto object = DecodeLogObject(bytes, place);
  if (!object.ok()) return;
  if (const auto* seal = std::get_if<Seal>(&*object)) {
    Expect(EncodeSeal(*seal) == bytes && !LooksLikeSegment(bytes));
    return;
  }
  const Segment& segment = std::get<Segment>(*object);
  Expect(LooksLikeSegment(bytes) && PayloadBytes(segment.records) <= kMaxSegmentPayload);
  const auto again = DecodeLogObject(EncodeSegment(segment), place);
  Expect(again.ok() && std::get<Segment>(*again) == segment);
}

}  // namespace
}  // namespace tacho::storage

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tacho::storage;
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  FuzzLogObject(data[0] % 2 == 0 ? bytes : Mended(bytes));
  if (const auto manifest = DecodeManifest(bytes); manifest.ok()) {
    const auto again = DecodeManifest(EncodeManifest(*manifest));
    Expect(again.ok() && *again == *manifest);
  }
  if (const auto blocks = DecodeBlockList(bytes); blocks.ok()) {
    const auto again = DecodeBlockList(EncodeBlockList(*blocks));
    Expect(again.ok() && *again == *blocks);
  }
  static_cast<void>(ParseObjectKey(bytes));
  if (const auto shards = DecodeShardCount(bytes); shards.ok()) {
    const auto again = DecodeShardCount(EncodeShardCount(*shards));
    Expect(again.ok() && *again == *shards);
  }
  return 0;
}
