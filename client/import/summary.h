// Counts of what was read.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "client/import/record_sink.h"

namespace tacho::importer {

struct Summary {
  // Hashes of the series that have samples: without the attempt, as a series has samples of all.
  absl::flat_hash_set<uint64_t> series;
  uint64_t rows = 0;
  uint64_t samples = 0;  // Samples in rows, which are sent.
  uint64_t events = 0;
  uint64_t attributes = 0;
  uint64_t messages = 0;
  // Samples whose series, attempt, time and step occurred before; the collector keeps one of each.
  // Included in `samples`.
  uint64_t repeated = 0;
  // Those of them that have another value than the one before, which is lost.
  uint64_t replaced = 0;
  std::string first_replaced;  // Where, for people.
  bool repeated_is_exact = true;
  std::optional<int64_t> first_unix_ns, last_unix_ns;
  std::optional<int64_t> first_step, last_step;
  struct Skipped {
    uint64_t samples = 0;
    std::string where;  // The first one.
  };
  std::array<Skipped, kSkips> skipped;
  std::vector<std::string> notes;

  uint64_t skipped_samples() const {
    uint64_t sum = 0;
    for (const Skipped& skip : skipped) sum += skip.samples;
    return sum;
  }
  // The sum over files.
  void Add(const Summary& other);
};

// Counts samples that repeat another, over all files of an import. Used from one thread.
class RepeatCounter {
 public:
  // A sample takes about 40 bytes. Beyond this number the count is a lower bound.
  static constexpr size_t kMaxSamples = 4'000'000;

  enum class Seen { kNo, kSameValue, kOtherValue };
  // Whether a sample of this series (a number that identifies it), time and step came before, and
  // whether the last one had the same bits.
  Seen Add(uint64_t series, int64_t time_unix_ns, const std::optional<int64_t>& step, double value);
  bool exact() const { return exact_; }

 private:
  // By 64-bit hashes: among 4 million samples, two collide in one of two million imports.
  absl::flat_hash_map<uint64_t, uint64_t> bits_;
  bool exact_ = true;
};

}  // namespace tacho::importer
