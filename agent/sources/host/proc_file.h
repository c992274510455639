// Reads files below /proc and /sys.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace tacho::agent {

// At most 4 MiB: /proc/stat of a machine with thousands of interrupts has some 100 kB.
//   NOT_FOUND    it cannot be opened; the text says why.
//   UNAVAILABLE  it opens and then refuses, as some do where the kernel has a feature switched off.
absl::StatusOr<std::string> ReadProcFile(const std::string& path);

}  // namespace tacho::agent
