// Asks a collector what it has of a job.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "tests/chaos/record.h"

namespace tacho::chaos {

// Everything of the job, in the order in which a Record keeps it. An unknown job has nothing. Any
// failure is the call's.
absl::StatusOr<Record> ReadStored(int port, const std::string& job);

}  // namespace tacho::chaos
