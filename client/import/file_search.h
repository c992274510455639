// Finds the files of an import: those that are named, and the logs below directories.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/import/formats.h"
#include "client/import/record_sink.h"

namespace tacho::importer {

// A file, or the event files of one directory in the order of their names.
struct FoundRun {
  FileFormat format = FileFormat::kCsv;
  std::vector<std::string> paths;
  std::string name;  // Short. Two may have the same.
};

// Files below directories that are no logs.
struct PassedOver {
  static constexpr size_t kMaxNamed = 100;

  uint64_t files = 0;
  std::vector<std::pair<std::string, std::string>> first;  // Path and reason; at most kMaxNamed.

  void Add(const std::string& path, absl::string_view why);
};

// `format`: only this one, nullopt: any. A file that is named has it, whatever it looks like.
// A run of event files below a directory has the name that an agent which follows the directory
// gives it (client/tfevents/run_name.h).
//   NOT_FOUND, …      a path cannot be read; the text names it.
//   INVALID_ARGUMENT  a file is of no known format or empty, or there is no log below a directory.
absl::StatusOr<std::vector<FoundRun>> FindRuns(const std::vector<std::string>& paths,
                                               std::optional<FileFormat> format,
                                               const ReadOptions& options, PassedOver* passed_over);

}  // namespace tacho::importer
