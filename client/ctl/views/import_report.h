// What an import read, and what became of it, for people and for programs.
#pragma once

#include "client/ctl/line/command.h"
#include "client/ctl/views/import_run.h"

namespace tacho::ctl {

// On out: a few lines, or with --output json a document.
void ReportImport(const Invocation& invocation, const ImportOptions& options, const Import& import);

}  // namespace tacho::ctl
