#include "storage/db/directory_check.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rocksdb/env.h"

namespace tacho::storage {

absl::Status CheckDirectory(rocksdb::Env* env, const std::string& path,
                            const std::vector<std::string>& families) {
  if (env == nullptr) env = rocksdb::Env::Default();
  std::vector<std::string> names;
  if (!env->GetChildren(path, &names).ok()) return absl::OkStatus();  // There is none yet.
  bool current = false;
  bool log = false;
  std::string other;  // Something that only a database with a CURRENT leaves behind.
  for (const std::string& name : names) {
    current = current || name == "CURRENT";
    log = log || absl::EndsWith(name, ".log");
    // The first manifest is written before CURRENT is: a crash may leave it alone.
    if (absl::EndsWith(name, ".log") || absl::EndsWith(name, ".sst") ||
        (absl::StartsWith(name, "MANIFEST-") && name != "MANIFEST-000001")) {
      other = name;
    }
  }
  if (!current && !other.empty()) {
    return absl::DataLossError(absl::StrCat(path, "/CURRENT is missing, but ", other,
                                            " is there: the database would be "
                                            "made anew"));
  }
  // A database in use or closed has a log, if an empty one; it is there before the second family.
  if (families.size() > 1 && !log) {
    return absl::DataLossError(
        absl::StrCat(path, ": the write-ahead log (*.log) is missing, and what it held with it"));
  }
  return absl::OkStatus();
}

}  // namespace tacho::storage
