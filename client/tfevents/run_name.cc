#include "client/tfevents/run_name.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tacho::client {

bool IsEventFileName(absl::string_view name) {
  return absl::StrContains(name, kEventFileMark) && !absl::EndsWith(name, ".profile-empty");
}

std::string RunBelow(absl::string_view parent, absl::string_view directory) {
  return parent == kRootRun ? std::string(directory) : absl::StrCat(parent, "/", directory);
}

}  // namespace tacho::client
