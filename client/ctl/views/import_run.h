// Importing files: reading them once to know what they hold and who they are, and once more to send
// it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/channel/channel_security.h"
#include "client/ctl/text/progress_line.h"
#include "client/import/summary.h"
#include "client/import/units.h"
#include "client/import/upload.h"

namespace tacho::ctl {

struct ImportOptions {
  std::string job;
  std::vector<std::string> paths;
  importer::UnitOptions units;
  bool dry_run = false;
  std::string agent_id;  // Empty: from what is imported.
  absl::Duration patience = absl::Minutes(5);
  std::string address;
  client::ChannelSecurity security;
};

// Of one unit: summary.samples + summary.events == stored + already + what was
// refused, if exact(). Of `already`, an earlier run knew what was refused.
struct ImportedUnit {
  importer::Unit unit;
  importer::Summary summary;
  std::string agent_id;
  uint64_t generation = 0;
  uint64_t stored = 0;   // Now.
  uint64_t already = 0;  // In messages that were durable before.
  uint64_t already_messages = 0;
  importer::Refusals refusals;
  uint64_t connections = 0;

  // Whether every refusal was heard of.
  bool exact() const { return connections <= 1; }
};

struct Import {
  std::vector<ImportedUnit> units;
  bool reached = true;   // The collector, if the status is not OK.
  bool sending = false;  // What failed, failed after the files had been read.

  importer::Summary Total() const;
  ImportedUnit Sum() const;
};

// Fills *import as far as it comes; everything is durable when it returns OK, unless it is a dry
// run.
//   INVALID_ARGUMENT, NOT_FOUND, …  of the files: nothing was sent.
//   others                          of the collector, with import->sending.
absl::Status RunImport(const ImportOptions& options, ProgressLine* progress, Import* import);

}  // namespace tacho::ctl
