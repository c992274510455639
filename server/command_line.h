// tacho-collector's command line.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace tacho::server {

struct CommandLine {
  enum class Mode {
    kRun,
    kHelp,
    kVersion,
    kCheckConfig,
    kPrintConfig,
    kCheckStore,
    kCheckBucket,
    kRestoreFromBucket,
    kExplainMapping,
    kMakeToken
  };
  Mode mode = Mode::kRun;
  std::string config;  // File; empty: defaults.
  // Each replaces its key of the configuration if not empty.
  std::string grpc;         // listen.grpc
  std::string http;         // listen.http
  std::string data;         // storage.path
  std::string check_store;  // The directory for kCheckStore.
  std::string restore;      // The directory for kRestoreFromBucket.
  // Closed days that kRestoreFromBucket brings, before today; 0: none. No value: all.
  std::optional<uint32_t> days;
  bool deep = false;            // kCheckBucket reads all blocks.
  std::string explain_mapping;  // The file for kExplainMapping.
  std::string port_file;        // Where the ports are written after the start; empty: nowhere.
  std::string web_directory;    // Files of the page; empty: those in the program.
};

// `arguments` are those after the program's name, written as in proto/base/flags.h.
//   INVALID_ARGUMENT  the text says which argument is wrong and what was expected.
absl::StatusOr<CommandLine> ParseCommandLine(std::span<const char* const> arguments);

extern const char kCommandLineHelp[];

}  // namespace tacho::server
