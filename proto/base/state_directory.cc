#include "proto/base/state_directory.h"

#include <sys/stat.h>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tacho {
namespace {

absl::string_view StateVariable(const StateWorld& world, const char* name) {
  const char* value = world.environment(name);
  return value == nullptr ? absl::string_view() : absl::string_view(value);
}

bool IsInstalledHere(const StateWorld& world) {
  struct stat found = {};
  return world.user == world.installed_owner && stat(world.installed.c_str(), &found) == 0 &&
         S_ISDIR(found.st_mode) && found.st_uid == world.installed_owner;
}

}  // namespace

absl::StatusOr<std::string> StateDirectory(const StateWorld& world) {
  if (IsInstalledHere(world)) return world.installed;
  const absl::string_view state = StateVariable(world, "XDG_STATE_HOME");
  // The specification of the variable: a relative path is to be ignored.
  if (absl::StartsWith(state, "/")) return absl::StrCat(state, "/tachograph");
  const absl::string_view home = StateVariable(world, "HOME");
  if (absl::StartsWith(home, "/")) return absl::StrCat(home, "/.local/state/tachograph");
  return absl::FailedPreconditionError(
      "there is no directory for data: neither XDG_STATE_HOME nor HOME is an absolute path");
}

std::string CollectorData(const std::string& state_directory) {
  return absl::StrCat(state_directory, "/collector");
}

}  // namespace tacho
