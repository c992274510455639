// RocksDB's statuses as ours.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace tacho::storage {

// Damaged bytes become DATA_LOSS, everything else that is not OK UNAVAILABLE: the disk refused.
inline absl::Status FromRocksDb(const rocksdb::Status& status, absl::string_view doing) {
  if (status.ok()) return absl::OkStatus();
  const std::string message = absl::StrCat(doing, ": ", status.ToString());
  return status.IsCorruption() ? absl::DataLossError(message) : absl::UnavailableError(message);
}

inline absl::string_view View(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

}  // namespace tacho::storage
