// Reads a whole store that nobody has open, a snapshot for instance, against its checksums.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace tacho::storage {

struct StoreContents {
  uint64_t jobs = 0;
  uint64_t series = 0;
  uint64_t days = 0;
  uint64_t table_bytes = 0;
  uint64_t journal_entries = 0;
  std::optional<int64_t> newest_ns;  // The time of the newest row. No value: there is none.
};

// Changes nothing in the directory. Takes as long as reading it.
//   NOT_FOUND            there is no database.
//   FAILED_PRECONDITION  it has another format version, or is not Tachograph's.
//   DATA_LOSS            stored bytes are damaged, and the text names the file or key; or the end
//                        of the log is missing.
//   UNAVAILABLE          it cannot be read.
absl::StatusOr<StoreContents> CheckStore(const std::string& path);

}  // namespace tacho::storage
