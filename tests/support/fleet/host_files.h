// The part of /proc that an agent reads, of a simulated host: so that what is true of the machine
// that plays the fleet is not said of the fleet.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace tacho::fleet {

// Writes stat, meminfo and uptime into `directory`, which is made; each file is replaced at once.
// `busy_seconds`: that its 64 processors were busy so far, of `seconds` since its start.
//   UNAVAILABLE  a file cannot be written.
absl::Status WriteHostFiles(const std::string& directory, double seconds, double busy_seconds);

}  // namespace tacho::fleet
