// Records of a CSV file (RFC 4180), from untrusted bytes.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/import/input_file.h"

namespace tacho::importer {

// One thread. Fields are separated by commas, semicolons or tabs: what the first line has most of.
class CsvRecords {
 public:
  explicit CsvRecords(ByteSource* source) : lines_(source) {}

  // False at the end and after an error, which status() tells.
  bool Next(std::vector<std::string>* fields);
  // On which the record that was returned last begins.
  uint64_t line() const { return line_; }
  //   INVALID_ARGUMENT  a quote without an end, a line that is too long, bytes that are no text.
  absl::Status status() const;

 private:
  // False if the record goes on on the next line.
  bool Split(absl::string_view record, std::vector<std::string>* fields) const;

  LineReader lines_;
  uint64_t line_ = 0;
  char separator_ = 0;
  absl::Status status_;
};

}  // namespace tacho::importer
