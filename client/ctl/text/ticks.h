// Where the axes of a plot carry numbers: round ones, few enough to be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace tacho::ctl {

struct Tick {
  double value = 0;
  std::string label;
};

// Of both: finite numbers, low < high. Ascending, within [low, high].

// Multiples of 1, 2 or 5 times a power of ten, at most `at_most` (2 or more) of them, or a few more
// where less than two would be left. All labels the same number of decimals and the same suffix: k,
// M, G or T for thousands, or an exponent where numbers are very small or very large.
std::vector<Tick> LinearTicks(double low, double high, size_t at_most);

// Powers of ten, with 2 and 5 times them between where there is room; low > 0. If less than one
// power of ten lies between, as LinearTicks.
std::vector<Tick> LogTicks(double low, double high, size_t at_most);

// Round times of day in `zone`: "12:30", "12:30:15", "12:30:15.250"; "01-31" where days change.
// Values are ns since the Unix epoch.
std::vector<Tick> TimeTicks(double low, double high, size_t at_most, absl::TimeZone zone);

}  // namespace tacho::ctl
