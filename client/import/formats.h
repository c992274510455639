// The formats that can be imported, and how to recognise one by its bytes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/import/record_sink.h"

namespace tacho::importer {

enum class FileFormat {
  kEventFiles,
  kCsv,
  kJsonLines,
  kMlperf,
  kTrainerState,
  kMegatron,
  kStepLog,
  kMonitor,
  kSmi,
};

// Names on the command line: "tfevents", "csv", "jsonl", "mlperf", "hf", "megatron", "nanogpt",
// "monitor", "nvidia-smi".
const std::vector<std::string>& FormatNames();
std::optional<FileFormat> FormatOfName(absl::string_view name);
// "event files", "CSV", …
const char* FormatTitle(FileFormat format);

// The first MiB of a file, which is what its format is recognised by.
//   INVALID_ARGUMENT  it is empty, or not a regular file.
//   NOT_FOUND, …      as the system says; the text names the file.
absl::StatusOr<std::string> ReadHead(const std::string& path);
// nullopt: none of the formats.
std::optional<FileFormat> DetectFormatOfBytes(absl::string_view head);
// The error for a file without a known format.
absl::Status UnknownFormat(const std::string& path, absl::string_view head);

// Whether the file is surely a log, so that it may be taken where nobody named it: CSV and JSON
// lines, which hold anything, need a step or a time.
bool IsSurelyLog(FileFormat format, absl::string_view head, const ReadOptions& options);

// Marks of single formats, by a file's beginning.
bool IsMonitorHead(absl::string_view head);
bool IsSmiHead(absl::string_view head);
// "train_runtime", "eval_loss", …: numbers that Hugging Face's all_results.json has.
bool IsResultName(absl::string_view name);

}  // namespace tacho::importer
