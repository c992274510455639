#include "storage/db/directory_check.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/crc32c.h"
#include "proto/base/status_macros.h"
#include "rocksdb/env.h"
#include "storage/db/table_check.h"

namespace tacho::storage {

bool IsHalfRestored(rocksdb::Env* env, const std::string& path) {
  return env->FileExists(absl::StrCat(path, "/", kHalfRestoredFile)).ok();
}

absl::Status CheckDirectory(rocksdb::Env* env, const std::string& path,
                            const std::vector<std::string>& families) {
  if (env == nullptr) env = rocksdb::Env::Default();
  if (IsHalfRestored(env, path)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path,
                     ": a restore from a bucket did not end here, so this is no whole store: "
                     "delete the directory, and restore again"));
  }
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
  for (const std::string& name : names) {
    if (!absl::EndsWith(name, ".sst")) continue;
    TACHO_RETURN_IF_ERROR(CheckTable(env, absl::StrCat(path, "/", name)));
  }
  return absl::OkStatus();
}

std::string LogsIn(rocksdb::Env* env, const std::string& path) {
  if (env == nullptr) env = rocksdb::Env::Default();
  std::vector<std::string> names;
  env->GetChildren(path, &names).PermitUncheckedError();
  std::erase_if(names, [](const std::string& name) { return !absl::EndsWith(name, ".log"); });
  std::sort(names.begin(), names.end());
  return absl::StrJoin(names, ", ");
}

}  // namespace tacho::storage

#if defined(__x86_64__)
// Stands in this file because the collector and the agent's spool both link it.
//
// Takes the place of RocksDB's own function, which checksums all that goes into its log: of a name
// that both have, shared libraries take the program's. Distributions build RocksDB for the oldest
// x86-64, where it works by table, and that was a tenth of the collector's processor time at full
// speed. The function is pure, so that only its speed is different; where RocksDB has none of
// this name and type, nobody calls this one.
namespace rocksdb::crc32c {
uint32_t Extend(uint32_t crc, const char* bytes, size_t size);
uint32_t Extend(uint32_t crc, const char* bytes, size_t size) {
  return tacho::ExtendCrc32c(crc, bytes, size);
}
}  // namespace rocksdb::crc32c
#endif
