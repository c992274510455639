// Recognises formats by what a file holds and not by its name: several write files of one name, and
// JSON stands on one line or on many. Titles and names of the formats are here, too.
#include "client/import/formats.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/import/csv_reader.h"
#include "client/import/input_file.h"
#include "client/import/json_reader.h"
#include "client/import/readers.h"
#include "client/import/row_maker.h"
#include "client/import/text_source.h"
#include "client/tfevents/record.h"
#include "proto/base/status_macros.h"

namespace tacho::importer {
namespace {

constexpr size_t kHeadBytes = size_t{1} << 20;

struct Named {
  FileFormat format;
  const char* name;
  const char* title;
};
constexpr Named kFormats[] = {
    {FileFormat::kEventFiles, "tfevents", "event files"},
    {FileFormat::kCsv, "csv", "CSV"},
    {FileFormat::kJsonLines, "jsonl", "JSON lines"},
    {FileFormat::kMlperf, "mlperf", "an MLPerf log"},
    {FileFormat::kTrainerState, "hf", "a Hugging Face trainer state"},
    {FileFormat::kMegatron, "megatron", "Megatron's golden values"},
    {FileFormat::kStepLog, "nanogpt", "a log of steps"},
    {FileFormat::kMonitor, "monitor", "a monitor.csv of Stable-Baselines"},
    {FileFormat::kSmi, "nvidia-smi", "CSV of nvidia-smi"},
};

bool IsNamedRole(const std::string& name, const ReadOptions& options) {
  return !name.empty() && (name == options.step_field || name == options.time_field);
}

// The format that the first value of a file shows.
struct JsonShape {
  bool history = false;   // Hugging Face's log_history.
  bool golden = false;    // A metric with "values", as Megatron has.
  bool results = false;   // A number that all_results.json has.
  bool has_role = false;  // A step or a time, as in JSON lines.
};

// Whether the object that has begun has the member "values", a list or an object. Reads to its end.
bool HasValues(JsonReader* json) {
  bool found = false;
  JsonToken token;
  while (json->Next(&token).ok() && token == JsonToken::kKey) {
    const bool named = json->text() == "values";
    if (!json->Next(&token).ok()) return found || named;  // The text ends here.
    found =
        found || (named && (token == JsonToken::kBeginObject || token == JsonToken::kBeginArray));
    if (!json->SkipValue(token).ok()) break;
  }
  return found;
}

// Looks at the members of the first object, as far as the text has them.
JsonShape ShapeOfJson(absl::string_view text) {
  StringSource source(text);
  JsonReader json(&source);
  JsonToken token;
  JsonShape shape;
  if (!json.Next(&token).ok() || token != JsonToken::kBeginObject) return shape;
  while (json.Next(&token).ok() && token == JsonToken::kKey) {
    const std::string name = json.text();
    if (!json.Next(&token).ok()) break;
    if (token == JsonToken::kBeginObject) {
      shape.golden = HasValues(&json) || shape.golden;
      continue;
    }
    size_t rank = 0;
    shape.history = shape.history || (name == "log_history" && token == JsonToken::kBeginArray);
    shape.results = shape.results || (token == JsonToken::kNumber && IsResultName(name));
    shape.has_role = shape.has_role || IsStepName(name, &rank) || IsTimeName(name, &rank);
    if (shape.history || !json.SkipValue(token).ok()) break;
  }
  return shape;
}

absl::string_view FirstLine(absl::string_view text) {
  return absl::StripAsciiWhitespace(text.substr(0, text.find('\n')));
}

std::optional<FileFormat> DetectJson(absl::string_view text) {
  const JsonShape shape = ShapeOfJson(text);
  if (shape.history) return FileFormat::kTrainerState;
  if (shape.golden && !shape.has_role) return FileFormat::kMegatron;
  const absl::string_view first = FirstLine(text);
  FlatObject object;
  const bool is_line = object.Parse(first).ok();
  const absl::string_view rest =
      absl::StripLeadingAsciiWhitespace(text.substr(std::min(first.size(), text.size())));
  if (is_line && (absl::StartsWith(rest, "{") || shape.has_role)) return FileFormat::kJsonLines;
  if (shape.results) return FileFormat::kTrainerState;
  if (is_line) return FileFormat::kJsonLines;  // Its reader says what is missing.
  return std::nullopt;
}

// Whether a line has ":::MLLOG" and an object behind it. Texts about MLPerf have the word alone.
bool HasMlperfLine(absl::string_view head) {
  for (size_t at = 0; (at = head.find(kMlperfMark, at)) != absl::string_view::npos;) {
    at += kMlperfMark.size();
    FlatObject object;
    if (object.Parse(absl::StripAsciiWhitespace(FirstLine(head.substr(at)))).ok()) return true;
  }
  return false;
}

bool HasStepLogLine(absl::string_view head) {
  StepLogLine line;
  for (const absl::string_view each : absl::StrSplit(head, '\n')) {
    if (ParseStepLogLine(absl::StripTrailingAsciiWhitespace(each), &line) && !line.values.empty()) {
      return true;
    }
  }
  return false;
}

bool HasRoleColumn(absl::string_view head, const ReadOptions& options) {
  StringSource source(head);
  CsvRecords records(&source);
  std::vector<std::string> names;
  if (!records.Next(&names)) return false;
  return std::any_of(names.begin(), names.end(), [&options](const std::string& field) {
    const std::string name(absl::StripAsciiWhitespace(field));
    size_t rank = 0;
    return IsStepName(name, &rank) || IsTimeName(name, &rank) || IsNamedRole(name, options);
  });
}

// Whether the first two records have the same number of fields, and more than one; of a single one,
// whether it names a step or time.
bool LooksLikeTable(absl::string_view head) {
  const absl::string_view first = FirstLine(head);
  const bool printable = std::none_of(first.begin(), first.end(), [](char c) {
    return absl::ascii_iscntrl(static_cast<unsigned char>(c)) && c != '\t';
  });
  if (!printable) return false;
  StringSource source(head);
  CsvRecords records(&source);
  std::vector<std::string> names;
  std::vector<std::string> fields;
  if (!records.Next(&names) || names.size() < 2) return false;
  return records.Next(&fields) ? fields.size() == names.size() : HasRoleColumn(head, ReadOptions());
}

bool HasRoleMember(absl::string_view head, const ReadOptions& options) {
  FlatObject object;
  if (!object.Parse(FirstLine(absl::StripLeadingAsciiWhitespace(head))).ok()) return false;
  return std::any_of(
      object.members().begin(), object.members().end(), [&options](const JsonMember& member) {
        size_t rank = 0;
        return IsStepName(member.name, &rank) || IsTimeName(member.name, &rank) ||
               IsNamedRole(member.name, options) || member.name == "tachograph_export";
      });
}

}  // namespace

const std::vector<std::string>& FormatNames() {
  static const auto* const names = [] {
    auto* const list = new std::vector<std::string>;
    for (const Named& named : kFormats) list->push_back(named.name);
    return list;
  }();
  return *names;
}

std::optional<FileFormat> FormatOfName(absl::string_view name) {
  for (const Named& named : kFormats) {
    if (named.name == name) return named.format;
  }
  return std::nullopt;
}

const char* FormatTitle(FileFormat format) {
  for (const Named& named : kFormats) {
    if (named.format == format) return named.title;
  }
  return "";
}

std::optional<FileFormat> DetectFormatOfBytes(absl::string_view head) {
  if (head.size() >= client::kRecordHeaderBytes) {
    const client::RecordView record = client::ReadRecord(head, 0);
    if (record.kind != client::RecordView::Kind::kCorrupt) return FileFormat::kEventFiles;
  }
  const std::string decoded = TextOfBytes(head);
  const absl::string_view text = absl::StripLeadingAsciiWhitespace(decoded);
  if (HasMlperfLine(text)) return FileFormat::kMlperf;
  if (absl::StartsWith(text, "{")) return DetectJson(text);
  if (IsMonitorHead(text)) return FileFormat::kMonitor;
  if (HasStepLogLine(text)) return FileFormat::kStepLog;
  if (IsSmiHead(text)) return FileFormat::kSmi;
  if (LooksLikeTable(text)) return FileFormat::kCsv;
  return std::nullopt;
}

bool IsSurelyLog(FileFormat format, absl::string_view head, const ReadOptions& options) {
  if (format == FileFormat::kCsv || format == FileFormat::kSmi) {
    return HasRoleColumn(TextOfBytes(head), options);
  }
  return format != FileFormat::kJsonLines || HasRoleMember(TextOfBytes(head), options);
}

bool IsResultName(absl::string_view name) {
  for (const absl::string_view end :
       {"_loss", "_runtime", "_samples_per_second", "_steps_per_second"}) {
    if (absl::EndsWith(name, end)) return true;
  }
  return false;
}

absl::StatusOr<std::string> ReadHead(const std::string& path) {
  TACHO_ASSIGN_OR_RETURN(auto file, InputFile::Open(path));
  std::string head(std::min<uint64_t>(kHeadBytes, file->size()), '\0');
  size_t filled = 0;
  while (filled < head.size()) {
    const size_t got = file->Read(head.data() + filled, head.size() - filled);
    if (got == 0) break;
    filled += got;
  }
  if (!file->status().ok()) return file->status();
  head.resize(filled);
  if (!head.empty()) return head;
  return absl::InvalidArgumentError(absl::StrCat(path, " is empty: there is nothing to import"));
}

absl::Status UnknownFormat(const std::string& path, absl::string_view head) {
  constexpr size_t kShownBytes = 40;
  const std::string text = TextOfBytes(head.substr(0, kShownBytes));
  const absl::string_view first = FirstLine(absl::StripLeadingAsciiWhitespace(text));
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": its format is not known. It begins '", absl::CHexEscape(first),
      "'; a table begins with the names of its columns, and JSON with '{'. If it is one of ",
      absl::StrJoin(FormatNames(), ", "),
      ", name that in place of auto, and its reader says what it misses"));
}

}  // namespace tacho::importer
