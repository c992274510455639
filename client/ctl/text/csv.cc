#include "client/ctl/text/csv.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace tacho::ctl {

std::string CsvField(absl::string_view text) {
  if (text.find_first_of(",\"\r\n") == absl::string_view::npos) return std::string(text);
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

std::string CsvLine(const std::vector<std::string>& fields) {
  std::string line;
  for (size_t i = 0; i < fields.size(); ++i) {
    absl::StrAppend(&line, i == 0 ? "" : ",", CsvField(fields[i]));
  }
  return line + "\r\n";
}

}  // namespace tacho::ctl
