#include "storage/shard/bucket_keys.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/base/check.h"

namespace tacho::storage {
namespace {

constexpr absl::string_view kRoot = "v1/shards/";
constexpr absl::string_view kTable = ".sst";
constexpr absl::string_view kList = ".list";
constexpr size_t kMaxFileName = 200;

std::string Digits(uint64_t number) {
  TACHO_CHECK(number <= kMaxKeyNumber);
  return absl::StrFormat("%016d", number);
}

std::string DayDigits(int64_t day) {
  TACHO_CHECK(day >= -kMaxKeyDay && day <= kMaxKeyDay);
  return absl::StrFormat("%s%05d", day < 0 ? "-" : "", std::abs(day));
}

bool IsFileName(absl::string_view file) {
  return !file.empty() && file.size() <= kMaxFileName &&
         std::all_of(file.begin(), file.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' ||
                  c == '-';
         });
}

std::string DayFileKey(uint32_t shard, int64_t day, uint64_t epoch, uint64_t number,
                       absl::string_view ending) {
  return absl::StrCat(DaysPrefix(shard), DayDigits(day), "/", Digits(epoch), "-", Digits(number),
                      ending);
}

// The parsers below read values within bounds. ParseObjectKey() builds the key again from what they
// have read and compares, so they need not refuse odd spellings.

bool ReadNumber(absl::string_view text, uint64_t* number) {
  return absl::SimpleAtoi(text, number) && *number <= kMaxKeyNumber;
}

bool ReadDay(absl::string_view text, int64_t* day) {
  return absl::SimpleAtoi(text, day) && *day >= -kMaxKeyDay && *day <= kMaxKeyDay;
}

std::optional<ObjectName> ReadDayFile(absl::string_view day, absl::string_view file,
                                      ObjectName name) {
  name.kind = absl::EndsWith(file, kList) ? ObjectKind::kBlockList : ObjectKind::kBlock;
  if (!absl::ConsumeSuffix(&file, kList) && !absl::ConsumeSuffix(&file, kTable))
    return std::nullopt;
  const std::vector<absl::string_view> parts = absl::StrSplit(file, absl::MaxSplits('-', 1));
  if (parts.size() != 2 || !ReadDay(day, &name.day) || !ReadNumber(parts[0], &name.epoch) ||
      !ReadNumber(parts[1], &name.number)) {
    return std::nullopt;
  }
  return name;
}

std::optional<ObjectName> ReadStateFile(absl::string_view file, ObjectName name) {
  name.kind = ObjectKind::kStateFile;
  if (!absl::ConsumeSuffix(&file, kTable)) return std::nullopt;
  const std::vector<absl::string_view> parts = absl::StrSplit(file, absl::MaxSplits('-', 1));
  if (parts.size() != 2 || !ReadNumber(parts[0], &name.epoch) || !IsFileName(parts[1])) {
    return std::nullopt;
  }
  name.file = std::string(parts[1]);
  return name;
}

std::optional<ObjectName> ReadName(absl::string_view key) {
  if (!absl::ConsumePrefix(&key, kRoot)) return std::nullopt;
  const std::vector<absl::string_view> parts = absl::StrSplit(key, '/');
  ObjectName name;
  if (!absl::SimpleAtoi(parts[0], &name.shard) || name.shard > kMaxShard) return std::nullopt;
  if (parts.size() == 2 && parts[1] == "manifest") return name;
  if (parts.size() == 3 && parts[1] == "saved") {
    name.kind = ObjectKind::kSavedManifest;
    return ReadDay(parts[2], &name.day) ? std::optional(name) : std::nullopt;
  }
  if (parts.size() == 3 && parts[1] == "state") return ReadStateFile(parts[2], name);
  if (parts.size() != 4) return std::nullopt;
  if (parts[1] == "days") return ReadDayFile(parts[2], parts[3], name);
  name.kind = ObjectKind::kSegment;
  if (parts[1] != "log" || !ReadNumber(parts[2], &name.epoch) ||
      !ReadNumber(parts[3], &name.number)) {
    return std::nullopt;
  }
  return name;
}

std::string KeyOf(const ObjectName& name) {
  switch (name.kind) {
    case ObjectKind::kManifest:
      return ManifestKey(name.shard);
    case ObjectKind::kSavedManifest:
      return SavedManifestKey(name.shard, name.day);
    case ObjectKind::kSegment:
      return SegmentKey(name.shard, name.epoch, name.number);
    case ObjectKind::kStateFile:
      return StateFileKey(name.shard, name.epoch, name.file);
    case ObjectKind::kBlock:
      return BlockKey(name.shard, name.day, name.epoch, name.number);
    case ObjectKind::kBlockList:
      return BlockListKey(name.shard, name.day, name.epoch, name.number);
  }
  std::abort();
}

}  // namespace

std::string ShardPrefix(uint32_t shard) {
  TACHO_CHECK(shard <= kMaxShard);
  return absl::StrCat(kRoot, absl::StrFormat("%04d", shard), "/");
}

std::string LogPrefix(uint32_t shard) { return ShardPrefix(shard) + "log/"; }
std::string StatePrefix(uint32_t shard) { return ShardPrefix(shard) + "state/"; }
std::string DaysPrefix(uint32_t shard) { return ShardPrefix(shard) + "days/"; }
std::string SavedPrefix(uint32_t shard) { return ShardPrefix(shard) + "saved/"; }

std::string ManifestKey(uint32_t shard) { return ShardPrefix(shard) + "manifest"; }

std::string SavedManifestKey(uint32_t shard, int64_t day) {
  return SavedPrefix(shard) + DayDigits(day);
}

std::string SegmentKey(uint32_t shard, uint64_t epoch, uint64_t number) {
  return absl::StrCat(LogPrefix(shard), Digits(epoch), "/", Digits(number));
}

std::string StateFileKey(uint32_t shard, uint64_t epoch, absl::string_view file) {
  TACHO_CHECK(IsFileName(file));
  return absl::StrCat(StatePrefix(shard), Digits(epoch), "-", file, kTable);
}

std::string BlockKey(uint32_t shard, int64_t day, uint64_t epoch, uint64_t number) {
  return DayFileKey(shard, day, epoch, number, kTable);
}

std::string BlockListKey(uint32_t shard, int64_t day, uint64_t epoch, uint64_t number) {
  return DayFileKey(shard, day, epoch, number, kList);
}

std::optional<ObjectName> ParseObjectKey(absl::string_view key) {
  std::optional<ObjectName> name = ReadName(key);
  if (name.has_value() && KeyOf(*name) != key) return std::nullopt;
  return name;
}

}  // namespace tacho::storage
