// Numbers as text: exact for machines, readable for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tacho::ctl {

// The shortest decimal that reads back as the same double; "NaN", "Infinity", "-Infinity" for what
// no decimal can say (the payload of a NaN is not shown).
std::string ExactNumber(double value);

// Six significant digits, whole numbers below 1e15 in full.
std::string ReadableNumber(double value);

// A column of a table: where the finite values are of similar size they get the same number of
// decimals, so that digits stand under digits; otherwise each is as ReadableNumber.
std::vector<std::string> ReadableColumn(const std::vector<double>& values);

// "1,234,567".
std::string Thousands(uint64_t value);

// "3 tasks", "1 task".
std::string Count(uint64_t count, absl::string_view noun);

}  // namespace tacho::ctl
