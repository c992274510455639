// The answer of 'tachoctl status', in each format.
#pragma once

#include <cstddef>
#include <optional>

#include "client/ctl/line/environment.h"
#include "client/ctl/views/job_status.h"

namespace tacho::ctl {

// Shows at most `limit` tasks (0: all); if there are more, those with a problem come first.
void PrintStatus(const Environment& env, const JobStatus& status, size_t limit);

void WriteStatusJson(std::ostream& out, const JobStatus& status);
// The members of that document, for the help.
extern const char* const kStatusJsonHelp;

// One line for each task and key metric.
void WriteStatusCsv(std::ostream& out, const JobStatus& status);

}  // namespace tacho::ctl
