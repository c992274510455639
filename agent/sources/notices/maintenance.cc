#include "agent/sources/notices/maintenance.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/import/json_reader.h"
#include "proto/base/status_macros.h"

namespace tacho::agent {
namespace {

using importer::JsonReader;
using importer::JsonToken;

constexpr std::array<absl::string_view, 7> kMembers = {"type",
                                                       "maintenance_status",
                                                       "can_reschedule",
                                                       "window_start_time",
                                                       "window_end_time",
                                                       "latest_window_start_time",
                                                       "maintenance_reasons"};

// "windowStartTime" is "window_start_time".
std::string SnakeCase(absl::string_view name) {
  std::string snake;
  for (const unsigned char c : name) {
    if (absl::ascii_isupper(c)) snake += '_';
    snake += static_cast<char>(absl::ascii_tolower(c));
  }
  return snake;
}

std::string Cleaned(absl::string_view text) {
  std::string clean(text.substr(0, kMaxPlannedText));
  std::erase_if(clean, [](unsigned char c) { return !absl::ascii_isprint(c); });
  return clean;
}

// The value that begins with `token`, as text; of a list its texts; of an object nothing.
absl::Status ReadText(JsonReader* reader, JsonToken token, std::string* text) {
  if (token == JsonToken::kTrue) *text = "true";
  if (token == JsonToken::kFalse) *text = "false";
  if (token == JsonToken::kString || token == JsonToken::kNumber) *text = reader->text();
  if (token != JsonToken::kBeginArray) return reader->SkipValue(token);
  JsonToken element;
  for (;;) {
    TACHO_RETURN_IF_ERROR(reader->Next(&element));
    if (element == JsonToken::kEndArray) return absl::OkStatus();
    if (element == JsonToken::kString && text->size() < kMaxPlannedText) {
      absl::StrAppend(text, text->empty() ? "" : ",", reader->text());
    }
    if (auto s = reader->SkipValue(element); !s.ok()) return s;
  }
}

absl::Status ReadMembers(JsonReader* reader, PlannedMaintenance* planned, bool* error) {
  JsonToken token;
  for (;;) {
    TACHO_RETURN_IF_ERROR(reader->Next(&token));
    if (token == JsonToken::kEndObject) return reader->Next(&token);  // Nothing may follow.
    const std::string name = SnakeCase(reader->text());
    std::string text;
    TACHO_RETURN_IF_ERROR(reader->Next(&token));
    TACHO_RETURN_IF_ERROR(ReadText(reader, token, &text));
    *error = *error || name == "error";
    const bool known = std::find(kMembers.begin(), kMembers.end(), name) != kMembers.end();
    text = Cleaned(text);
    if (known && !text.empty()) (*planned)[name] = text;
  }
}

}  // namespace

absl::StatusOr<std::string> ParseNotice(absl::string_view untrusted) {
  constexpr size_t kMaxWord = 128;
  const absl::string_view word = absl::StripAsciiWhitespace(untrusted);
  const bool is_word = !word.empty() && word.size() <= kMaxWord &&
                       std::all_of(word.begin(), word.end(), [](unsigned char c) {
                         return absl::ascii_isupper(c) || absl::ascii_isdigit(c) || c == '_';
                       });
  if (!is_word) return absl::InvalidArgumentError("expected a word such as NONE or TRUE");
  return word == "NONE" || word == "FALSE" ? "" : std::string(word);
}

absl::StatusOr<std::optional<PlannedMaintenance>> ParsePlannedMaintenance(
    absl::string_view untrusted) {
  const absl::string_view text = absl::StripAsciiWhitespace(untrusted);
  if (text.empty() || text == "NONE" || text == "\"NONE\"") return std::nullopt;
  importer::StringSource source(text);
  JsonReader reader(&source);
  JsonToken token;
  TACHO_RETURN_IF_ERROR(reader.Next(&token));
  if (token != JsonToken::kBeginObject) {
    return absl::InvalidArgumentError("expected NONE or a JSON object");
  }
  PlannedMaintenance planned;
  bool error = false;
  TACHO_RETURN_IF_ERROR(ReadMembers(&reader, &planned, &error));
  if (error || planned.empty()) return std::nullopt;
  return planned;
}

}  // namespace tacho::agent
