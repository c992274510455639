// Looks for a common denominator of a column's values. A few values decide what to try; whether the
// form fits is then checked bit for bit, several values at once.
#include "storage/codec/quotient.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tacho::storage {
namespace {

// A double this large has no fraction: adding it rounds to an integer, which its low bits then are.
constexpr double kRounder = 6755399441055744.0;  // 1.5 * 2^52

// Values that are looked at to find a form.
constexpr size_t kLooked = 24;
// A value is near a quotient if it is at most so many neighbours away.
constexpr int64_t kNearSteps = 15;

constexpr std::array<uint64_t, 16> kPowersOfTen = {1,
                                                   10,
                                                   100,
                                                   1'000,
                                                   10'000,
                                                   100'000,
                                                   1'000'000,
                                                   10'000'000,
                                                   100'000'000,
                                                   1'000'000'000,
                                                   10'000'000'000,
                                                   100'000'000'000,
                                                   1'000'000'000'000,
                                                   10'000'000'000'000,
                                                   100'000'000'000'000,
                                                   1'000'000'000'000'000};

int64_t Rounded(double value, double* integer) {
  const double sum = value + kRounder;
  *integer = sum - kRounder;
  return static_cast<int64_t>(std::bit_cast<uint64_t>(sum) - std::bit_cast<uint64_t>(kRounder));
}

// The value must be from 0 to 2^51.
double Floor(double value) {
  double integer = 0;
  Rounded(value, &integer);
  return integer > value ? integer - 1 : integer;
}

bool Same(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

// How many neighbours value is away from the nearest quotient; nullopt if more than a few.
std::optional<int64_t> Steps(double value, double divisor, bool floats, int64_t* n) {
  double integer = 0;
  const double product = value * divisor;
  *n = Rounded(product, &integer);
  const double magnitude = std::abs(product);
  // It is further from the integer than rounding and all steps come to: seen without a division.
  const double tolerance = floats ? 0x1p-22 : 0x1p-46;
  if (!(magnitude < static_cast<double>(kMaxQuotient)) ||
      std::abs(product - integer) > magnitude * tolerance) {
    return std::nullopt;
  }
  const double quotient = integer / divisor;
  if (floats) {
    if (!Same(static_cast<double>(static_cast<float>(quotient)), value)) return std::nullopt;
    return 0;
  }
  if (Same(quotient, value)) return 0;
  if (std::signbit(quotient) != std::signbit(value)) return std::nullopt;
  const int64_t steps = Ordered(value) - Ordered(quotient);
  if (steps < -kNearSteps || steps > kNearSteps) return std::nullopt;
  return steps;
}

// The denominator of the simplest fraction that equals the value as exactly as doubles (floats) can
// express it.
uint64_t Denominator(double value, bool floats) {
  constexpr double kMax = 1 << 16;
  const double precision = floats ? 0x1p-24 : 0x1p-50;
  const double magnitude = std::abs(value);
  // Larger ones have no fraction.
  if (!(magnitude < 0x1p51)) return 1;
  double fraction = magnitude - Floor(magnitude);
  const double tolerance = magnitude * precision;
  const double exact = fraction;
  double before = 0;
  double denominator = 1;
  // Continued fractions: each turn adds a term.
  for (int i = 0; i < 12; ++i) {
    double numerator = 0;
    Rounded(exact * denominator, &numerator);
    if (std::abs(exact - numerator / denominator) <= tolerance) {
      return static_cast<uint64_t>(denominator);
    }
    if (fraction < 1e-9) break;
    const double inverse = 1 / fraction;
    const double term = Floor(inverse);
    fraction = inverse - term;
    const double next = term * denominator + before;
    before = denominator;
    denominator = next;
    if (denominator > kMax) break;
  }
  return 0;
}

// A common denominator of most values; 0 if there is none.
uint64_t CommonDenominator(std::span<const double> values, bool floats) {
  constexpr uint64_t kMax = 1 << 24;
  uint64_t common = 1;
  size_t unexplained = 0;
  for (const double value : values) {
    int64_t n = 0;
    if (Steps(value, static_cast<double>(common), floats, &n)) continue;
    const uint64_t denominator = std::isfinite(value) ? Denominator(value, floats) : 0;
    const uint64_t larger = denominator == 0 ? kMax + 1 : std::lcm(common, denominator);
    if (larger > kMax) {
      if (++unexplained > values.size() / 4) return 0;
    } else {
      common = larger;
    }
  }
  return common;
}

// The least power of ten that most values are multiples of the inverse of; 0 if there is none.
uint64_t DecimalDenominator(std::span<const double> values, bool floats) {
  std::array<size_t, kPowersOfTen.size()> needed = {};
  size_t e = 0;
  for (const double value : values) {
    int64_t n = 0;
    size_t least = e;
    while (least < kPowersOfTen.size() &&
           !Steps(value, static_cast<double>(kPowersOfTen[least]), floats, &n)) {
      ++least;
    }
    if (least < kPowersOfTen.size()) {
      ++needed[least];
      // One that needs more does not speak for the others yet.
      if (needed[least] > values.size() / 8) e = least;
    }
  }
  size_t fitting = 0;
  for (size_t i = 0; i < needed.size(); ++i) {
    fitting += needed[i];
    if (fitting >= values.size() - values.size() / 8) return kPowersOfTen[i];
  }
  return 0;
}

}  // namespace

std::optional<QuotientForm> FindQuotientForm(std::span<const double> values, bool floats) {
  std::array<double, kLooked> some;
  const size_t stride = values.size() / kLooked + 1;
  size_t count = 0;
  for (size_t i = 0; i < values.size(); i += stride) some[count++] = values[i];
  const std::span<const double> looked(some.data(), count);
  QuotientForm form;
  form.floats = floats;
  form.divisor = DecimalDenominator(looked, floats);
  constexpr uint64_t kPlain = 1000;  // Hardly anything simpler is to be found.
  if (form.divisor == 0 || form.divisor > kPlain) {
    const uint64_t common = CommonDenominator(looked, floats);
    if (common != 0 && (form.divisor == 0 || common < form.divisor)) form.divisor = common;
  }
  if (form.divisor == 0) return std::nullopt;
  return form;
}

namespace {

// So many that few are looked at one by one because of one among them.
constexpr size_t kBlock = 64;

// The integers of up to kBlock values that all are quotients; false if one is not. Several at once.
bool AllQuotients(std::span<const double> values, const QuotientForm& form, int64_t* integers) {
  const auto divisor = static_cast<double>(form.divisor);
  std::array<double, kBlock> room;
  const std::span<double> quotients = std::span(room).first(values.size());
  uint64_t outside = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double sum = values[i] * divisor + kRounder;
    const uint64_t bits = std::bit_cast<uint64_t>(sum);
    outside |= bits ^ std::bit_cast<uint64_t>(kRounder);
    integers[i] = static_cast<int64_t>(bits - std::bit_cast<uint64_t>(kRounder));
    quotients[i] = sum - kRounder;
  }
  if (outside >> 52 != 0) return false;
  if (form.divisor != 1) {
    for (double& quotient : quotients) quotient /= divisor;
  }
  if (form.floats) RoundToFloats(quotients);
  uint64_t different = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    different |= std::bit_cast<uint64_t>(quotients[i]) ^ std::bit_cast<uint64_t>(values[i]);
  }
  return different == 0;
}

}  // namespace

void RoundToFloats(std::span<double> values) {
  size_t i = 0;
#if defined(__SSE2__)
  // GCC makes this of the loop below by way of memory, in several times the time.
  for (; i + 2 <= values.size(); i += 2) {
    double* const two = values.data() + i;
    _mm_storeu_pd(two, _mm_cvtps_pd(_mm_cvtpd_ps(_mm_loadu_pd(two))));
  }
#endif
  for (; i < values.size(); ++i) values[i] = static_cast<double>(static_cast<float>(values[i]));
}

bool AllFloats(std::span<const double> values) {
  std::array<double, kBlock> room;
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const auto block = values.subspan(begin, std::min(kBlock, values.size() - begin));
    const std::span<double> floats = std::span(room).first(block.size());
    std::copy(block.begin(), block.end(), floats.begin());
    RoundToFloats(floats);
    // Rounding quiets signalling NaNs, so those differ.
    uint64_t different = 0;
    for (size_t i = 0; i < block.size(); ++i) {
      different |= std::bit_cast<uint64_t>(floats[i]) ^ std::bit_cast<uint64_t>(block[i]);
    }
    if (different != 0) return false;
  }
  return true;
}

bool Quotients::Assign(std::span<const double> values, const QuotientForm& form) {
  exceptions.clear();
  const auto divisor = static_cast<double>(form.divisor);
  int64_t* const to = integers.data();
  int64_t* const steps_to = steps.data();
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const auto block = values.subspan(begin, std::min(kBlock, values.size() - begin));
    if (AllQuotients(block, form, to + begin)) {
      if (form.near) std::fill_n(steps_to + begin, block.size(), 0);
      continue;
    }
    int64_t previous = begin > 0 ? to[begin - 1] : 0;
    for (size_t i = begin; i < begin + block.size(); ++i) {
      int64_t n = 0;
      const auto away = Steps(values[i], divisor, form.floats, &n);
      const bool fits = away && (form.near || *away == 0);
      if (fits) {
        previous = n;
      } else {
        exceptions.push_back(static_cast<int64_t>(i));
        if (exceptions.size() > values.size() / 4) return false;
      }
      to[i] = previous;
      if (form.near) steps_to[i] = fits ? *away : 0;
    }
  }
  return true;
}

bool Quotients::AnySteps() {
  int64_t any = 0;
  for (const int64_t s : steps.span()) any |= s;
  return any != 0;
}

}  // namespace tacho::storage
