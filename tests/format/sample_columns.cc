#include "tests/format/sample_columns.h"

#include <bit>
#include <cmath>
#include <limits>

#include "proto/base/stale_marker.h"
#include "storage/model/series.h"

namespace tacho::storage {
namespace {

using Random = std::mt19937_64;

double FromBits(uint64_t bits) { return std::bit_cast<double>(bits); }
double Stale() { return FromBits(kStaleMarkerBits); }
double Float(double value) { return static_cast<double>(static_cast<float>(value)); }

// In [0, 1).
double Unit(Random& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }
int64_t Below(int64_t bound, Random& random) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
}
double Cents(Random& random) { return static_cast<double>(Below(5000, random)) / 100.0; }

// Some units in the last place beside a value.
double Beside(double value, Random& random) {
  return FromBits(std::bit_cast<uint64_t>(value) + static_cast<uint64_t>(Below(3, random)) - 1);
}
double BesideFloat(double value, Random& random) {
  const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  return static_cast<double>(
      std::bit_cast<float>(bits + static_cast<uint32_t>(Below(3, random)) - 1));
}

void AddPlain(std::vector<ColumnKind>* kinds) {
  const auto add = [kinds](const char* name, auto value) { kinds->push_back({name, value}); };
  add("constant", [](size_t, Random&) { return 0.1; });
  add("minus_zero", [](size_t, Random&) { return -0.0; });
  add("both_zeros", [](size_t row, Random&) { return row % 3 == 1 ? 0.0 : -0.0; });
  add("counter", [](size_t row, Random&) { return 1e6 + 4096.0 * static_cast<double>(row); });
  add("quadratic", [](size_t row, Random& random) {
    return static_cast<double>(3 * static_cast<int64_t>(row * row) + Below(2, random));
  });
  add("quotients", [](size_t, Random& random) { return Cents(random); });
  add("negative", [](size_t, Random& random) { return -Cents(random); });
  add("float_quotients", [](size_t, Random& random) { return Float(Cents(random)); });
  add("quotients_steps", [](size_t, Random& random) { return Beside(Cents(random) + 1, random); });
  add("float_steps", [](size_t, Random& random) { return BesideFloat(Cents(random) + 1, random); });
  add("raw", [](size_t, Random& random) { return FromBits(random()); });
  add("doubles",
      [walk = 1.0](size_t, Random& random) mutable { return walk += (Unit(random) - 0.5) * 1e-9; });
  add("signs", [](size_t, Random& random) { return Unit(random) - 0.5; });
  add("floats",
      [walk = 3.0](size_t, Random& random) mutable { return Float(walk += Unit(random) * 0.01); });
  add("denormals", [](size_t, Random& random) { return FromBits(random() % 1000); });
  add("largest", [](size_t row, Random&) {
    return row % 2 == 0 ? std::numeric_limits<double>::max() : 1e308;
  });
  add("dictionary",
      [](size_t, Random& random) { return std::sqrt(static_cast<double>(2 + Below(5, random))); });
  add("skewed", [](size_t, Random& random) {
    return std::floor(std::exp(Unit(random) * Unit(random) * 20)) / 8;
  });
  add("huge_integers",
      [](size_t, Random& random) { return static_cast<double>(random() >> 2 & ~uint64_t{0xfff}); });
}

void AddWithGaps(std::vector<ColumnKind>* kinds) {
  const auto add = [kinds](const char* name, auto value) { kinds->push_back({name, value}); };
  add("stale_gaps",
      [](size_t row, Random& random) { return row % 10 < 7 ? Cents(random) : Stale(); });
  add("random_gaps",
      [](size_t, Random& random) { return random() % 4 == 0 ? Stale() : Float(Unit(random)); });
  add("nan_gaps", [](size_t row, Random& random) {
    return row % 10 < 7 ? Cents(random) : FromBits(0x7ff8000000000000);
  });
  add("payload_gaps", [](size_t row, Random& random) {
    return row % 10 < 7 ? Cents(random) : FromBits(0xfff4000000abcdef);
  });
  add("nan_and_stale", [](size_t row, Random& random) {
    if (row % 10 < 3) return Stale();
    return row % 10 < 6 ? FromBits(0x7ff8000000000000) : std::sqrt(Unit(random));
  });
  add("infinities", [](size_t row, Random& random) {
    if (row % 7 == 0) return std::numeric_limits<double>::infinity();
    return row % 7 == 3 ? -std::numeric_limits<double>::infinity() : Cents(random);
  });
  add("only_nan", [](size_t row, Random&) { return FromBits(0x7ff8000000000000 + row); });
  add("exceptions",
      [](size_t, Random& random) { return random() % 50 == 0 ? Unit(random) : Cents(random); });
  add("float_exceptions", [](size_t, Random& random) {
    return Float(random() % 50 == 0 ? Unit(random) : Cents(random));
  });
  add("nan_exceptions", [](size_t, Random& random) {
    return random() % 50 == 0 ? FromBits(random() | 0x7ff8000000000000) : Cents(random);
  });
  add("rare", [](size_t row, Random& random) { return row % 100 == 0 ? Unit(random) : Stale(); });
  add("never", [](size_t, Random&) { return Stale(); });
}

}  // namespace

std::vector<ColumnKind> AllColumnKinds() {
  std::vector<ColumnKind> kinds;
  AddPlain(&kinds);
  AddWithGaps(&kinds);
  return kinds;
}

std::vector<double> MakeColumn(const ColumnKind& kind, size_t rows, uint64_t seed) {
  Random random(seed);
  std::vector<double> values;
  for (size_t row = 0; row < rows; ++row) values.push_back(kind.value(row, random));
  return values;
}

}  // namespace tacho::storage
