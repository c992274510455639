// Records of a CSV file (RFC 4180), from untrusted bytes.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/import/input_file.h"

namespace tacho::importer {

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
  // False if the record continues on the next line.
  bool Split(absl::string_view record, std::vector<std::string>* fields) const;

  LineReader lines_;
  uint64_t line_ = 0;
  char separator_ = 0;
  absl::Status status_;
};

}  // namespace tacho::importer
