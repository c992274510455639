// `tacho-agent diagnose`.
#pragma once

#include <iosfwd>
#include <string>

#include "absl/status/statusor.h"
#include "agent/diagnose/context.h"

namespace tacho::agent {

struct DiagnoseFlags {
  std::string config;     // Empty: all defaults.
  std::string collector;  // Instead of the configuration's, separated by commas.
  bool json = false;
  bool help = false;
  DiagnoseContext context;  // Without its configuration.
};

extern const char kDiagnoseHelp[];

// `arguments` are those behind "diagnose".
//   INVALID_ARGUMENT  the text says what is wrong.
absl::StatusOr<DiagnoseFlags> ParseDiagnoseFlags(const std::vector<std::string>& arguments);

// Reads the configuration, runs all checks and writes what they found. Returns the exit code; ends
// the process itself if a check had to be left behind.
int RunDiagnose(const std::vector<std::string>& arguments, const std::string& version,
                std::ostream* out, std::ostream* errors);

}  // namespace tacho::agent
