// What the trainers of the campaign recorded, and what a collector says it has of it.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tacho::chaos {

struct Sample {
  int64_t time_ns = 0;
  int64_t step = 0;
  uint32_t attempt = 0;
  uint64_t bits = 0;

  auto operator<=>(const Sample&) const = default;
};

struct SeriesKey {
  std::string metric;
  uint32_t task = 0;

  auto operator<=>(const SeriesKey&) const = default;
};

// An event's message names it: no two are alike.
struct Happening {
  std::string message;
  uint32_t task = 0;
  uint32_t attempt = 0;
  int64_t time_ns = 0;
  int64_t step = -1;  // The last row's; -1 before the first of a ring.

  auto operator<=>(const Happening&) const = default;
};

struct Record {
  std::map<SeriesKey, std::vector<Sample>> samples;                   // Ascending in time.
  std::vector<Happening> events;                                      // Ascending.
  std::map<uint32_t, std::map<std::string, std::string>> attributes;  // By attempt.

  uint64_t sample_count() const;
};

// Lists what is in `found` and not in `recorded`, or there more often. Empty if nothing.
std::string Aliens(const Record& recorded, const Record& found);
// Lists what is in `recorded` and in none of `found`. Empty if nothing.
std::string Missing(const Record& recorded, const std::vector<Record>& found);
// Attributes that differ from what was recorded last.
std::string AttributeDifferences(const Record& recorded, const Record& found);
// Samples and events that both have.
uint64_t CountShared(const Record& a, const Record& b);

}  // namespace tacho::chaos
