// The units of an import: files, each with the run, task, attempt or host it stands for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/import/file_search.h"
#include "client/import/formats.h"
#include "client/import/record_sink.h"

namespace tacho::importer {

// One file, or the event files of one run directory.
struct Unit {
  FileFormat format = FileFormat::kCsv;
  std::vector<std::string> paths;  // In the order in which they are read.
  std::string name;                // Short, different for each unit of an import.
  ReadOptions options;
  uint64_t bytes = 0;
};

struct UnitOptions {
  std::optional<FileFormat> format;  // nullopt: by each file's bytes.
  ReadOptions read;
  // How several files (or runs) of one job are distinguished.
  enum class Each {
    kRun,      // By a label "run" with the name of the file or directory.
    kTask,     // As tasks 0, 1, … in the order of the files.
    kAttempt,  // As attempts, likewise.
    kHost,     // As hosts with the files' names.
  };
  Each each = Each::kRun;
  // RE2 for names of runs, with the groups attempt, task or host; empty: none.
  std::string run_pattern;
  bool attempt_given = false;  // By the user: event files then do not count attempts of their own.
};

// `paths` are files, and directories in which logs lie at any depth. `passed_over`, if not null,
// receives the files below directories that are none.
//   NOT_FOUND, …      a path cannot be read; the text names it.
//   INVALID_ARGUMENT  it is of no known format, empty, or has nothing to import; or the pattern is
//                     wrong, or matches none of the names.
absl::StatusOr<std::vector<Unit>> FindUnits(const std::vector<std::string>& paths,
                                            const UnitOptions& options,
                                            PassedOver* passed_over = nullptr);

// Reads the unit from its beginning. `progress` receives the bytes read since its last call. The
// statuses are those of readers.h; the text names the file.
absl::Status ReadUnit(const Unit& unit, absl::FunctionRef<void(uint64_t bytes)> progress,
                      RecordSink* sink);

}  // namespace tacho::importer
