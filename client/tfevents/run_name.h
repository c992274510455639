// Names the runs of a log directory: for an agent that follows it, and for an import of it.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tacho::client {

// In the name of every event file.
inline constexpr absl::string_view kEventFileMark = "tfevents";
// Whether a file of this name holds events. The profiler's plugin leaves empty ones that only mark
// a directory as a run.
bool IsEventFileName(absl::string_view name);

// The run whose event files lie in the log directory itself.
inline constexpr char kRootRun[] = ".";
// The run whose event files lie in `directory`, an entry of the directory of the run `parent`: its
// path from the log directory.
std::string RunBelow(absl::string_view parent, absl::string_view directory);

}  // namespace tacho::client
