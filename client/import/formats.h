// The formats that can be imported, and how to recognise one by its bytes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tacho::importer {

enum class FileFormat {
  kEventFiles,
  kCsv,
  kJsonLines,
  kMlperf,
  kTrainerState,
  kMegatron,
  kStepLog,
};

// Names on the command line: "tfevents", "csv", "jsonl", "mlperf", "hf", "megatron", "nanogpt".
const std::vector<std::string>& FormatNames();
std::optional<FileFormat> FormatOfName(absl::string_view name);
// "event files", "CSV", …
const char* FormatTitle(FileFormat format);

// Recognises a file by its first MiB.
//   INVALID_ARGUMENT  the file is empty, or has none of the formats; the text says what to do.
absl::StatusOr<FileFormat> DetectFormat(const std::string& path);
std::optional<FileFormat> DetectFormatOfBytes(absl::string_view head);

}  // namespace tacho::importer
