// What was read, in numbers.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "client/import/record_sink.h"

namespace tacho::importer {

struct Summary {
  uint64_t series = 0;
  uint64_t rows = 0;
  uint64_t samples = 0;  // In rows: what is to be written.
  uint64_t events = 0;
  uint64_t attributes = 0;
  uint64_t messages = 0;
  // Samples that come again in the files with the same series, attempt, time and step: the
  // collector keeps one of them. Counted among `samples`.
  uint64_t repeated = 0;
  bool repeated_is_exact = true;
  std::optional<int64_t> first_unix_ns, last_unix_ns;
  std::optional<int64_t> first_step, last_step;
  struct Skipped {
    uint64_t samples = 0;
    std::string where;  // Of the first.
  };
  std::array<Skipped, kSkips> skipped;
  std::vector<std::string> notes;

  uint64_t skipped_samples() const {
    uint64_t sum = 0;
    for (const Skipped& skip : skipped) sum += skip.samples;
    return sum;
  }
  // Everything but `messages` and `series` adds up over files that have no series in common.
  void Add(const Summary& other);
};

// Counts samples that repeat another, over all files of an import. One thread.
class RepeatCounter {
 public:
  // A sample takes about 20 bytes here. Past so many the count is only a lower bound.
  static constexpr size_t kMaxSamples = 4'000'000;

  // Whether a sample of this series (any number that stands for it), time and step was there
  // before.
  bool Repeats(uint64_t series, int64_t time_unix_ns, const std::optional<int64_t>& step);
  bool exact() const { return exact_; }

 private:
  // Of 64-bit hashes: among 4 million samples two different ones meet once in two million imports.
  absl::flat_hash_set<uint64_t> seen_;
  bool exact_ = true;
};

}  // namespace tacho::importer
