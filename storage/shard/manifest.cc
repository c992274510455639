// The text of a manifest and of a list of blocks.
//
// The format number is read first and alone, so that a text of a later format is called that, and
// not damaged. Everything else is strict, because an owner writes back what it has read.
#include "storage/shard/manifest.h"

#include <limits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/check.h"
#include "proto/base/json_text.h"
#include "proto/base/status_macros.h"
#include "rapidjson/document.h"
#include "rapidjson/error/en.h"
#include "rapidjson/stringbuffer.h"
#include "rapidjson/writer.h"
#include "storage/shard/bucket_keys.h"
#include "storage/shard/json_members.h"

namespace tacho::storage {
namespace {

using JsonWriter = rapidjson::Writer<rapidjson::StringBuffer>;

constexpr uint64_t kAny64 = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kAny32 = std::numeric_limits<uint32_t>::max();

// --- Writing ---

void WriteText(const char* name, absl::string_view text, JsonWriter* out) {
  out->Key(name);
  out->String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

void WriteBytes(const char* name, absl::string_view bytes, JsonWriter* out) {
  WriteText(name, absl::Base64Escape(bytes), out);
}

void WriteNumber(const char* name, uint64_t number, JsonWriter* out) {
  out->Key(name);
  out->Uint64(number);
}

void WriteFile(const StoredFile& file, JsonWriter* out) {
  WriteText("key", file.key, out);
  WriteNumber("bytes", file.bytes, out);
  WriteNumber("crc32c", file.crc32c, out);
}

void WriteBlocks(const std::vector<Block>& blocks, JsonWriter* out) {
  out->StartArray();
  for (const Block& block : blocks) {
    out->StartObject();
    WriteFile(block.file, out);
    WriteBytes("first_key", block.first_key, out);
    WriteBytes("last_key", block.last_key, out);
    out->EndObject();
  }
  out->EndArray();
}

void WriteLogsAndState(const Manifest& manifest, JsonWriter* out) {
  out->Key("logs");
  out->StartArray();
  for (const LogStart& log : manifest.logs) {
    out->StartObject();
    WriteNumber("epoch", log.epoch, out);
    WriteNumber("first", log.first, out);
    out->EndObject();
  }
  out->EndArray();
  out->Key("state");
  out->StartArray();
  for (const StateFile& state : manifest.state) {
    out->StartObject();
    WriteFile(state.file, out);
    WriteBytes("metadata", state.metadata, out);
    out->EndObject();
  }
  out->EndArray();
}

void WriteDays(const Manifest& manifest, JsonWriter* out) {
  out->Key("open_days");
  out->StartObject();
  for (const auto& [day, blocks] : manifest.open_days) {
    out->Key(absl::StrCat(day).c_str());
    WriteBlocks(blocks, out);
  }
  out->EndObject();
  out->Key("closed_days");
  out->StartObject();
  for (const auto& [day, list] : manifest.closed_days) {
    out->Key(absl::StrCat(day).c_str());
    out->StartObject();
    WriteFile(list, out);
    out->EndObject();
  }
  out->EndObject();
}

std::string TextOf(const rapidjson::StringBuffer& buffer) {
  return {buffer.GetString(), buffer.GetSize()};
}

// --- Reading ---

// Parses the text and reads `kind` and `format`, which stand beside the rest in `document`.
absl::Status Parse(absl::string_view bytes, absl::string_view kind, rapidjson::Document* document) {
  if (bytes.size() > kMaxManifestBytes) {
    return absl::DataLossError(absl::StrCat("the ", kind, " has ", bytes.size(), " bytes; at most ",
                                            kMaxManifestBytes, " are right"));
  }
  // Iterative: the depth of foreign text must not use up the stack.
  document->Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(
      bytes.data(), bytes.size());
  if (document->HasParseError()) {
    return absl::DataLossError(
        absl::StrCat("the ", kind, " is no JSON at byte ", document->GetErrorOffset(), ": ",
                     rapidjson::GetParseError_En(document->GetParseError())));
  }
  const bool named = document->IsObject() && document->HasMember("kind") &&
                     (*document)["kind"].IsString() && kind == (*document)["kind"].GetString();
  if (!named || !document->HasMember("format") || !(*document)["format"].IsUint64()) {
    return absl::DataLossError(
        absl::StrCat("this is no ", kind, ": 'kind' and 'format' do not say so"));
  }
  if (const uint64_t format = (*document)["format"].GetUint64(); format != kManifestFormat) {
    return absl::UnimplementedError(
        absl::StrCat("the ", kind, " has format ", format, ", and this version reads format ",
                     kManifestFormat, " only. Run the version that wrote it, or a later one."));
  }
  return absl::OkStatus();
}

StoredFile ReadFile(JsonMembers* in) {
  StoredFile file;
  file.key = in->Text("key");
  file.bytes = in->Number("bytes", kAny64);
  file.crc32c = static_cast<uint32_t>(in->Number("crc32c", kAny32));
  return file;
}

absl::Status CheckKey(const StoredFile& file, ObjectKind kind, absl::string_view where) {
  const std::optional<ObjectName> name = ParseObjectKey(file.key);
  if (name.has_value() && name->kind == kind) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("'key' of ", where, " is not the key of one: ", JsonString(file.key)));
}

absl::Status ReadBlocks(const rapidjson::Value& array, std::vector<Block>* blocks) {
  constexpr absl::string_view kWhere = "a block";
  if (!array.IsArray()) return absl::DataLossError("the blocks of a day are no array");
  blocks->reserve(array.Size());
  for (const rapidjson::Value& value : array.GetArray()) {
    JsonMembers in(value, kWhere);
    Block block{.file = ReadFile(&in)};
    block.first_key = in.Bytes("first_key");
    block.last_key = in.Bytes("last_key");
    TACHO_RETURN_IF_ERROR(in.status());
    TACHO_RETURN_IF_ERROR(CheckKey(block.file, ObjectKind::kBlock, kWhere));
    if (block.last_key < block.first_key)
      return absl::DataLossError("a block ends before it begins");
    blocks->push_back(std::move(block));
  }
  return absl::OkStatus();
}

absl::Status ReadLogs(const rapidjson::Value& array, Manifest* manifest) {
  for (const rapidjson::Value& value : array.GetArray()) {
    JsonMembers in(value, "a log");
    LogStart log;
    log.epoch = in.Number("epoch", manifest->epoch);
    log.first = in.Number("first", kMaxKeyNumber);
    TACHO_RETURN_IF_ERROR(in.status());
    const uint64_t before = manifest->logs.empty() ? 0 : manifest->logs.back().epoch;
    if (log.epoch <= before)
      return absl::DataLossError("the epochs of the logs do not rise from 1 on");
    if (log.first == 0) return absl::DataLossError("'first' of a log is 0; segments count from 1");
    manifest->logs.push_back(log);
  }
  return absl::OkStatus();
}

absl::Status ReadState(const rapidjson::Value& array, Manifest* manifest) {
  constexpr absl::string_view kWhere = "a state file";
  for (const rapidjson::Value& value : array.GetArray()) {
    JsonMembers in(value, kWhere);
    StateFile state{.file = ReadFile(&in)};
    state.metadata = in.Bytes("metadata");
    TACHO_RETURN_IF_ERROR(in.status());
    TACHO_RETURN_IF_ERROR(CheckKey(state.file, ObjectKind::kStateFile, kWhere));
    manifest->state.push_back(std::move(state));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ReadDay(const rapidjson::Value& name) {
  const absl::string_view text(name.GetString(), name.GetStringLength());
  int64_t day = 0;
  if (absl::SimpleAtoi(text, &day) && absl::StrCat(day) == text && day >= -kMaxKeyDay &&
      day <= kMaxKeyDay) {
    return day;
  }
  return absl::DataLossError(
      absl::StrCat("a day is no number of days since 1970: ", JsonString(text)));
}

absl::Status ReadDays(const rapidjson::Value& open, const rapidjson::Value& closed,
                      Manifest* manifest) {
  for (const auto& member : open.GetObject()) {
    TACHO_ASSIGN_OR_RETURN(const int64_t day, ReadDay(member.name));
    const auto [place, is_new] = manifest->open_days.try_emplace(day);
    if (!is_new) return absl::DataLossError(absl::StrCat("day ", day, " is there twice"));
    TACHO_RETURN_IF_ERROR(ReadBlocks(member.value, &place->second));
  }
  for (const auto& member : closed.GetObject()) {
    constexpr absl::string_view kWhere = "a closed day";
    TACHO_ASSIGN_OR_RETURN(const int64_t day, ReadDay(member.name));
    JsonMembers in(member.value, kWhere);
    StoredFile list = ReadFile(&in);
    TACHO_RETURN_IF_ERROR(in.status());
    TACHO_RETURN_IF_ERROR(CheckKey(list, ObjectKind::kBlockList, kWhere));
    if (manifest->open_days.contains(day) ||
        !manifest->closed_days.try_emplace(day, std::move(list)).second) {
      return absl::DataLossError(absl::StrCat("day ", day, " is there twice"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<int64_t>> ReadKeptFrom(JsonMembers* in) {
  constexpr char kName[] = "kept_from_day";
  if (!in->Has(kName)) return std::nullopt;
  int64_t day = 0;
  // As text, like the days above: it may be below 0.
  const std::string text = in->Text(kName);
  if (!absl::SimpleAtoi(text, &day) || absl::StrCat(day) != text) {
    return absl::DataLossError("'kept_from_day' is no day");
  }
  return day;
}

}  // namespace

std::string EncodeManifest(const Manifest& manifest) {
  rapidjson::StringBuffer buffer;
  JsonWriter out(buffer);
  out.StartObject();
  WriteText("kind", "manifest", &out);
  WriteNumber("format", kManifestFormat, &out);
  WriteNumber("shard", manifest.shard, &out);
  WriteNumber("epoch", manifest.epoch, &out);
  WriteText("owner", ValidUtf8(manifest.owner), &out);
  WriteNumber("version", manifest.version, &out);
  WriteText("nonce", JsonMembers::HexOf(manifest.nonce), &out);
  WriteLogsAndState(manifest, &out);
  WriteDays(manifest, &out);
  WriteBytes("positions", manifest.positions, &out);
  if (manifest.kept_from_day.has_value()) {
    WriteText("kept_from_day", absl::StrCat(*manifest.kept_from_day), &out);
  }
  out.EndObject();
  return TextOf(buffer);
}

absl::StatusOr<Manifest> DecodeManifest(absl::string_view bytes) {
  rapidjson::Document document;
  TACHO_RETURN_IF_ERROR(Parse(bytes, "manifest", &document));
  JsonMembers in(document, "the manifest");
  Manifest manifest;
  in.Text("kind");
  in.Number("format", kAny64);
  manifest.shard = static_cast<uint32_t>(in.Number("shard", kMaxShard));
  manifest.epoch = in.Number("epoch", kMaxKeyNumber);
  manifest.owner = in.Text("owner");
  manifest.version = in.Number("version", kAny64);
  manifest.nonce = in.Hex("nonce");
  const rapidjson::Value* logs = in.Array("logs");
  const rapidjson::Value* state = in.Array("state");
  const rapidjson::Value* open_days = in.Object("open_days");
  const rapidjson::Value* closed_days = in.Object("closed_days");
  manifest.positions = in.Bytes("positions");
  TACHO_ASSIGN_OR_RETURN(manifest.kept_from_day, ReadKeptFrom(&in));
  TACHO_RETURN_IF_ERROR(in.status());
  TACHO_RETURN_IF_ERROR(ReadLogs(*logs, &manifest));
  TACHO_RETURN_IF_ERROR(ReadState(*state, &manifest));
  TACHO_RETURN_IF_ERROR(ReadDays(*open_days, *closed_days, &manifest));
  return manifest;
}

std::string EncodeBlockList(const std::vector<Block>& blocks) {
  rapidjson::StringBuffer buffer;
  JsonWriter out(buffer);
  out.StartObject();
  WriteText("kind", "block list", &out);
  WriteNumber("format", kManifestFormat, &out);
  out.Key("blocks");
  WriteBlocks(blocks, &out);
  out.EndObject();
  return TextOf(buffer);
}

absl::StatusOr<std::vector<Block>> DecodeBlockList(absl::string_view bytes) {
  rapidjson::Document document;
  TACHO_RETURN_IF_ERROR(Parse(bytes, "block list", &document));
  JsonMembers in(document, "the block list");
  in.Text("kind");
  in.Number("format", kAny64);
  const rapidjson::Value* array = in.Array("blocks");
  TACHO_RETURN_IF_ERROR(in.status());
  std::vector<Block> blocks;
  TACHO_RETURN_IF_ERROR(ReadBlocks(*array, &blocks));
  return blocks;
}

}  // namespace tacho::storage
