// Keys of the notes that the spool keeps beside its entries; agent/spool/spool.h says what they
// mean.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace tacho::agent {

inline constexpr char kLayoutPrefix[] = "layout/";
inline constexpr char kCheckpointPrefix[] = "checkpoint/";
inline constexpr char kDroppedPrefix[] = "dropped/";
inline constexpr char kSpooledPrefix[] = "spooled/";

// The keys of the spool's own checkpoints begin so; all others are those of sources.
inline constexpr char kAcknowledgedPrefix[] = "acknowledged/";
inline constexpr char kMovedPrefix[] = "moved/";

inline std::string LayoutKey(uint32_t id) { return absl::StrFormat("%s%08x", kLayoutPrefix, id); }
inline std::string DroppedKey(uint64_t sequence) {
  return absl::StrFormat("%s%016x", kDroppedPrefix, sequence);
}
inline std::string SpooledKey(uint64_t sequence) {
  return absl::StrFormat("%s%016x", kSpooledPrefix, sequence);
}

// The number after the prefix; nullopt if `key` is not of that kind.
template <typename T>
std::optional<T> NumberOfKey(absl::string_view key, absl::string_view prefix) {
  T number = 0;
  if (!absl::ConsumePrefix(&key, prefix) || !absl::SimpleHexAtoi(key, &number)) return std::nullopt;
  return number;
}

}  // namespace tacho::agent
