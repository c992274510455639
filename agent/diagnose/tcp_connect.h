// Names and connections, with deadlines.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tacho::agent {

// Addresses of a name, as numbers. The resolver's own timeouts apply.
//   UNAVAILABLE  the resolver's reason.
absl::StatusOr<std::vector<std::string>> ResolveName(const std::string& host);

// Connects and closes again; returns how long connecting took.
//   UNAVAILABLE, DEADLINE_EXCEEDED  why not.
absl::StatusOr<absl::Duration> TcpConnect(const std::string& host, const std::string& port,
                                          absl::Duration timeout);

}  // namespace tacho::agent
