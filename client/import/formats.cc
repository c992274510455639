#include "client/import/formats.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/import/input_file.h"
#include "client/import/json_reader.h"
#include "client/import/readers.h"
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
};

// Recognises a JSON document of several lines by its first few members.
FileFormat DetectDocument(absl::string_view head) {
  StringSource source(head);
  JsonReader json(&source);
  JsonToken token;
  if (!json.Next(&token).ok()) return FileFormat::kMegatron;
  while (json.Next(&token).ok() && token == JsonToken::kKey) {
    if (json.text() == "log_history") return FileFormat::kTrainerState;
    if (!json.Next(&token).ok()) break;
    if (token == JsonToken::kBeginObject) return FileFormat::kMegatron;
    if (!json.SkipValue(token).ok()) break;
  }
  return FileFormat::kTrainerState;
}

bool LooksLikeTable(absl::string_view first_line) {
  const bool separated = first_line.find_first_of(",;\t") != absl::string_view::npos;
  const bool printable = std::none_of(first_line.begin(), first_line.end(), [](char c) {
    return absl::ascii_iscntrl(static_cast<unsigned char>(c)) && c != '\t' && c != '\r';
  });
  return separated && printable;
}

std::string ReadHead(InputFile* file) {
  std::string head(kHeadBytes, '\0');
  size_t filled = 0;
  while (filled < head.size()) {
    const size_t got = file->Read(head.data() + filled, head.size() - filled);
    if (got == 0) break;
    filled += got;
  }
  head.resize(filled);
  return head;
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
  if (absl::StrContains(head, ":::MLLOG")) return FileFormat::kMlperf;
  const absl::string_view text = absl::StripLeadingAsciiWhitespace(head);
  const absl::string_view first = text.substr(0, text.find('\n'));
  if (absl::StartsWith(text, "{")) {
    FlatObject object;
    return object.Parse(absl::StripAsciiWhitespace(first)).ok() ? FileFormat::kJsonLines
                                                                : DetectDocument(text);
  }
  StepLogLine line;
  for (const absl::string_view each : absl::StrSplit(head, '\n')) {
    if (ParseStepLogLine(absl::StripTrailingAsciiWhitespace(each), &line) && !line.values.empty()) {
      return FileFormat::kStepLog;
    }
  }
  if (LooksLikeTable(first)) return FileFormat::kCsv;
  return std::nullopt;
}

absl::StatusOr<FileFormat> DetectFormat(const std::string& path) {
  TACHO_ASSIGN_OR_RETURN(auto file, InputFile::Open(path));
  const std::string head = ReadHead(file.get());
  if (!file->status().ok()) return file->status();
  if (head.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is empty: there is nothing to import"));
  }
  if (const auto format = DetectFormatOfBytes(head)) return *format;
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": its format is not known; if it is one of ",
                   absl::StrJoin(FormatNames(), ", "), ", say which in place of auto"));
}

}  // namespace tacho::importer
