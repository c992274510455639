// Where programs of this project keep their data when nobody has named a directory.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace tacho {

// What StateDirectory() asks.
struct StateWorld {
  std::function<const char*(const char* name)> environment;  // As getenv().
  uid_t user = 0;                                            // Of this process: geteuid().
  std::string installed = "/var/lib/tachograph";
  uid_t installed_owner = 0;
};

// The directory of an installed package if it is there and belongs to this user, who is root; else
// $XDG_STATE_HOME/tachograph, by default ~/.local/state/tachograph. Nothing is created.
//   FAILED_PRECONDITION  neither variable is set: ask the user to name a directory.
absl::StatusOr<std::string> StateDirectory(const StateWorld& world);

// The part of it that is the database of a collector.
std::string CollectorData(const std::string& state_directory);

}  // namespace tacho
