// Which formats there are, and how one is known by its bytes.
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

// As the command line has them: "tfevents", "csv", "jsonl", "mlperf", "hf", "megatron", "nanogpt".
const std::vector<std::string>& FormatNames();
std::optional<FileFormat> FormatOfName(absl::string_view name);
// "event files", "CSV", …
const char* FormatTitle(FileFormat format);

// By the first MiB of the file's bytes.
//   INVALID_ARGUMENT  it is empty, or none of them; the text says what to do.
absl::StatusOr<FileFormat> DetectFormat(const std::string& path);
std::optional<FileFormat> DetectFormatOfBytes(absl::string_view head);

}  // namespace tacho::importer
