// What a store holds, in a form that two processes can compare.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/journal/sequence_set.h"
#include "storage/store.h"

namespace tacho::crash {

struct Contents {
  using Place = std::tuple<int64_t, uint32_t, int64_t>;  // Time, attempt, step.
  // The bits of the value, by series "job/metric/task".
  using Samples = std::map<Place, uint64_t>;
  std::map<std::string, Samples> series;
  std::map<std::string, storage::SequenceSet> durable;                   // By agent.
  std::multimap<std::string, int64_t> events;                            // By text -> time.
  std::map<std::string, std::map<std::string, std::string>> attributes;  // By "job/attempt".

  friend bool operator==(const Contents&, const Contents&) = default;
};

// Reads everything. An error names what could not be read; a sample that comes twice or out of
// order is an error too.
//
// With `failures`: what cannot be read is left out, and its status kept there by the name of the
// series, or by "events".
absl::StatusOr<Contents> ReadContents(const storage::Store& store,
                                      std::map<std::string, absl::Status>* failures = nullptr);

std::string EncodeContents(const Contents& contents);
std::optional<Contents> DecodeContents(absl::string_view bytes);

// The first differences in words; empty if there are none.
std::string Compare(const Contents& expected, const Contents& found);

}  // namespace tacho::crash
