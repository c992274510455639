#include "storage/shard/heartbeat.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rapidjson/document.h"
#include "rapidjson/stringbuffer.h"
#include "rapidjson/writer.h"
#include "storage/shard/bucket_keys.h"
#include "storage/shard/json_members.h"

namespace tacho::storage {
namespace {

constexpr char kHeartbeatKind[] = "heartbeat";
constexpr uint64_t kHeartbeatFormat = 1;

}  // namespace

std::string HeartbeatKey(absl::string_view address) {
  std::string key = kMembersPrefix;
  for (const char c : address) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-') {
      key += c;
    } else {
      absl::StrAppend(&key, "_", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    }
  }
  return key;
}

std::string EncodeHeartbeat(const Heartbeat& heartbeat) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> out(buffer);
  const auto text = [&out](const char* name, absl::string_view value) {
    out.Key(name);
    out.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
  };
  out.StartObject();
  text("kind", kHeartbeatKind);
  out.Key("format");
  out.Uint64(kHeartbeatFormat);
  text("address", heartbeat.address);
  text("life", JsonMembers::HexOf(heartbeat.life));
  out.Key("count");
  out.Uint64(heartbeat.count);
  if (heartbeat.shard.has_value()) {
    out.Key("shard");
    out.Uint64(*heartbeat.shard);
  }
  text("version", heartbeat.version);
  out.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

absl::StatusOr<Heartbeat> DecodeHeartbeat(absl::string_view bytes) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(
      bytes.data(), bytes.size());
  if (document.HasParseError()) return absl::DataLossError("it is no JSON");
  JsonMembers in(document, "the object");
  const std::string kind = in.Text("kind");
  const uint64_t format = in.Number("format", UINT64_MAX);
  Heartbeat heartbeat;
  heartbeat.address = in.Text("address");
  heartbeat.life = in.Hex("life");
  heartbeat.count = in.Number("count", UINT64_MAX);
  if (in.Has("shard")) heartbeat.shard = static_cast<uint32_t>(in.Number("shard", kMaxShard));
  heartbeat.version = in.Text("version");
  TACHO_RETURN_IF_ERROR(in.status());
  if (kind != kHeartbeatKind || format != kHeartbeatFormat) {
    return absl::DataLossError("it is no sign of life that this version knows");
  }
  return heartbeat;
}

}  // namespace tacho::storage
