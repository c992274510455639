// Imports files: reads them once to learn what they hold and to identify the import, and once more
// to send it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/channel/channel_security.h"
#include "client/ctl/line/command.h"
#include "client/ctl/text/progress_line.h"
#include "client/import/file_search.h"
#include "client/import/summary.h"
#include "client/import/units.h"
#include "client/import/upload.h"

namespace tacho::ctl {

struct ImportOptions {
  std::string job;
  std::vector<std::string> paths;
  importer::UnitOptions units;
  bool dry_run = false;
  std::string agent_id;  // Empty: derived from what is imported.
  absl::Duration patience = absl::Minutes(5);
  std::string address;
  client::ChannelSecurity security;
};

// If exact(), summary.samples + summary.events == stored + already + refused samples. What an
// earlier run had refused counts in `already`.
struct ImportedUnit {
  importer::Unit unit;
  importer::Summary summary;
  std::string agent_id;
  uint64_t generation = 0;
  uint64_t stored = 0;   // By this run.
  uint64_t already = 0;  // In messages that were durable before this run.
  uint64_t already_messages = 0;
  importer::Refusals refusals;
  uint64_t connections = 0;

  // Whether the collector reported every refusal to this run.
  bool exact() const { return connections <= 1; }
};

struct Import {
  std::vector<ImportedUnit> units;
  importer::PassedOver passed_over;
  bool reached = true;   // After an error: whether a collector answered.
  bool sending = false;  // The files were read; errors come from sending.

  importer::Summary Total() const;
  ImportedUnit Sum() const;
};

// Fills *import as far as it gets. When it returns OK, everything is durable, except in a dry run.
//   INVALID_ARGUMENT, NOT_FOUND, …  from the files: nothing was sent.
//   others                          from the collector, with import->sending.
absl::Status RunImport(const ImportOptions& options, ProgressLine* progress, Import* import);

// Prints a few lines, or a JSON document with --output json.
void ReportImport(const Invocation& invocation, const ImportOptions& options, const Import& import);

}  // namespace tacho::ctl
