// Records of a CSV file (RFC 4180), from untrusted bytes.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/import/input_file.h"

namespace tacho::importer {

// Splits a record without the end of its line. False if a quoted field has no end, as where the
// record goes on after a line feed.
bool SplitCsvRecord(absl::string_view record, char separator, std::vector<std::string>* fields);

// Used from one thread. The separator is the comma, semicolon or tab that the first line has most
// of.
class CsvRecords {
 public:
  explicit CsvRecords(ByteSource* source) : lines_(source) {}

  // False at the end, and after an error, which status() returns.
  bool Next(std::vector<std::string>* fields);
  // The line on which the last record begins.
  uint64_t line() const { return line_; }
  //   INVALID_ARGUMENT  a quote without an end, a line that is too long, bytes that are no text.
  absl::Status status() const;

 private:
  LineReader lines_;
  uint64_t line_ = 0;
  char separator_ = 0;
  absl::Status status_;
};

}  // namespace tacho::importer
