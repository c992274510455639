#include "storage/shard/owner_map.h"

#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rapidjson/document.h"
#include "rapidjson/stringbuffer.h"
#include "rapidjson/writer.h"
#include "storage/shard/bucket_keys.h"
#include "storage/shard/json_members.h"

namespace tacho::storage {
namespace {

constexpr char kOwnersKind[] = "owners";
constexpr uint64_t kOwnersFormat = 1;
// Each is another owner's write that came between the read and the write of this one.
constexpr int kMaxChangeTries = 8;

absl::Status ReadOwners(const rapidjson::Value& object, OwnerMap* map) {
  for (const auto& member : object.GetObject()) {
    uint32_t shard = 0;
    const absl::string_view name(member.name.GetString(), member.name.GetStringLength());
    if (!absl::SimpleAtoi(name, &shard) || absl::StrCat(shard) != name || shard > kMaxShard ||
        !member.value.IsString()) {
      return absl::DataLossError("'owners' has a member that is no shard with an address");
    }
    const std::string address(member.value.GetString(), member.value.GetStringLength());
    if (!map->owners.emplace(shard, address).second) {
      return absl::DataLossError("'owners' has a shard twice");
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string EncodeOwnerMap(const OwnerMap& map) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> out(buffer);
  out.StartObject();
  out.Key("kind");
  out.String(kOwnersKind);
  out.Key("format");
  out.Uint64(kOwnersFormat);
  out.Key("version");
  out.Uint64(map.version);
  out.Key("nonce");
  out.String(JsonMembers::HexOf(map.nonce).c_str());
  out.Key("owners");
  out.StartObject();
  for (const auto& [shard, address] : map.owners) {
    out.Key(absl::StrCat(shard).c_str());
    out.String(address.data(), static_cast<rapidjson::SizeType>(address.size()));
  }
  out.EndObject();
  out.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

absl::StatusOr<OwnerMap> DecodeOwnerMap(absl::string_view bytes) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(
      bytes.data(), bytes.size());
  if (document.HasParseError()) return absl::DataLossError("it is no JSON");
  JsonMembers in(document, "the object");
  const std::string kind = in.Text("kind");
  const uint64_t format = in.Number("format", UINT64_MAX);
  if (kind == kOwnersKind && format > kOwnersFormat) {
    return absl::UnimplementedError(absl::StrCat("it has the format ", format,
                                                 ", which a newer version has written; this one "
                                                 "knows ",
                                                 kOwnersFormat, ": upgrade the collector"));
  }
  OwnerMap map;
  map.version = in.Number("version", UINT64_MAX);
  map.nonce = in.Hex("nonce");
  const rapidjson::Value* const owners = in.Object("owners");
  TACHO_RETURN_IF_ERROR(in.status());
  if (kind != kOwnersKind || format != kOwnersFormat) {
    return absl::DataLossError("it is no map of a cluster's owners");
  }
  TACHO_RETURN_IF_ERROR(ReadOwners(*owners, &map));
  return map;
}

absl::Status OwnerMapObject::Read() {
  absl::StatusOr<std::optional<StoredObject>> got = std::optional<StoredObject>();
  if (tag_.empty()) {
    auto object = bucket_->Get(kOwnersKey);
    if (object.ok()) {
      got = *std::move(object);
    } else {
      got = object.status();
    }
  } else {
    got = bucket_->GetIfChanged(kOwnersKey, tag_);
  }
  if (absl::IsNotFound(got.status())) {
    map_ = OwnerMap();
    tag_.clear();
    return absl::OkStatus();
  }
  if (!got.ok()) return got.status();
  if (!got->has_value()) return absl::OkStatus();
  auto map = DecodeOwnerMap((*got)->body);
  if (!map.ok()) {
    return absl::Status(map.status().code(),
                        absl::StrCat(kOwnersKey, ": ", map.status().message()));
  }
  map_ = *std::move(map);
  tag_ = std::move((*got)->tag);
  return absl::OkStatus();
}

absl::Status OwnerMapObject::Change(uint32_t shard, absl::string_view from, absl::string_view to) {
  uint64_t nonce = 0;
  for (int tries = 0; tries < kMaxChangeTries; ++tries) {
    TACHO_RETURN_IF_ERROR(Read());
    if (nonce != 0 && map_.nonce == nonce) return absl::OkStatus();  // The write has happened.
    const auto found = map_.owners.find(shard);
    const std::string now = found == map_.owners.end() ? "" : found->second;
    if (now != from) {
      return absl::AbortedError(absl::StrCat("shard ", shard, " is owned by ", now));
    }
    OwnerMap next = map_;
    ++next.version;
    while ((nonce = random_()) == 0) continue;
    next.nonce = nonce;
    next.owners[shard] = std::string(to);
    const std::string body = EncodeOwnerMap(next);
    auto put =
        tag_.empty() ? bucket_->PutNew(kOwnersKey, body) : bucket_->PutIf(kOwnersKey, tag_, body);
    if (put.ok()) {
      map_ = std::move(next);
      tag_ = *std::move(put);
      return absl::OkStatus();
    }
    // Refused, or not known: the next look says which.
    if (!absl::IsUnavailable(put.status()) && !absl::IsFailedPrecondition(put.status()) &&
        !absl::IsAlreadyExists(put.status())) {
      return put.status();
    }
    if (absl::IsUnavailable(put.status()) && tries + 1 == kMaxChangeTries) return put.status();
  }
  return absl::UnavailableError(absl::StrCat(kOwnersKey, " is written by others all the time"));
}

}  // namespace tacho::storage
