// Where programs of this project keep their data when nobody has named a directory.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace tacho {

// The surroundings that StateDirectory() looks at.
struct StateWorld {
  std::function<const char*(const char* name)> environment;  // As getenv().
  uid_t user = 0;                                            // This process's: geteuid().
  std::string installed = "/var/lib/tachograph";
  uid_t installed_owner = 0;
};

// `installed` if it is there and belongs to root, and this user is root; else
// $XDG_STATE_HOME/tachograph, by default ~/.local/state/tachograph. Nothing is created.
//   FAILED_PRECONDITION  neither XDG_STATE_HOME nor HOME is an absolute path: ask the user to name
//                        a directory.
absl::StatusOr<std::string> StateDirectory(const StateWorld& world);

// The part of it that is the database of a collector.
std::string CollectorData(const std::string& state_directory);

}  // namespace tacho
