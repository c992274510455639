#include "client/import/csv_record.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tacho::importer {
namespace {

char MostFrequentSeparator(absl::string_view line) {
  char best = ',';
  std::ptrdiff_t most = 0;
  for (const char separator : {',', '\t', ';'}) {
    const auto count = std::count(line.begin(), line.end(), separator);
    if (count > most) {
      best = separator;
      most = count;
    }
  }
  return best;
}

}  // namespace

bool CsvRecords::Next(std::vector<std::string>* fields) {
  absl::string_view line;
  if (!status_.ok() || !lines_.Next(&line)) return false;
  line_ = lines_.number();
  if (separator_ == 0) {
    absl::ConsumePrefix(&line, "\xEF\xBB\xBF");  // Spreadsheets write it.
    separator_ = MostFrequentSeparator(line);
  }
  if (line.find('\0') != absl::string_view::npos) {
    status_ = absl::InvalidArgumentError(absl::StrCat("line ", line_, " has zero bytes: no text"));
    return false;
  }
  if (Split(line, fields)) return true;
  std::string record(line);
  while (lines_.Next(&line) && record.size() <= LineReader::kMaxLineBytes) {
    absl::StrAppend(&record, "\n", line);
    if (Split(record, fields)) return true;
  }
  status_ = absl::InvalidArgumentError(
      absl::StrCat("line ", line_, ": a quoted field has no end; is the file cut off?"));
  return false;
}

bool CsvRecords::Split(absl::string_view record, std::vector<std::string>* fields) const {
  fields->clear();
  std::string* field = &fields->emplace_back();
  bool quoted = false;
  for (size_t at = 0; at < record.size(); ++at) {
    const char c = record[at];
    if (quoted) {
      if (c != '"') {
        field->push_back(c);
      } else if (at + 1 < record.size() && record[at + 1] == '"') {
        field->push_back('"');
        ++at;
      } else {
        quoted = false;
      }
    } else if (c == '"' && field->empty()) {
      quoted = true;
    } else if (c == separator_) {
      field = &fields->emplace_back();
    } else {
      field->push_back(c);
    }
  }
  return !quoted;
}

absl::Status CsvRecords::status() const { return status_.ok() ? lines_.status() : status_; }

}  // namespace tacho::importer
