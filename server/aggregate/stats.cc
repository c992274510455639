#include "server/aggregate/stats.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>

namespace tacho::server::aggregate {
namespace {

using F = AggregateFunction;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kFewValues = 48;  // So few are sorted as fast as selected from.

// Finds order statistics of the same values, best in ascending rank: what lies below an earlier
// rank is not looked at again.
class Ranks {
 public:
  explicit Ranks(std::span<double> values) : values_(values) {
    if (values.size() > kFewValues) return;
    std::sort(values.begin(), values.end());
    sorted_ = true;
  }

  double Quantile(double q) {
    const double rank = q * static_cast<double>(values_.size() - 1);
    const auto below = static_cast<size_t>(std::floor(rank));
    const double weight = rank - std::floor(rank);
    const double low = At(below);
    if (weight == 0) return low;
    const double high = At(below + 1);
    // Equal neighbours need no arithmetic.
    return low == high ? low : low * (1 - weight) + high * weight;
  }

 private:
  double At(size_t rank) {
    if (sorted_) return values_[rank];
    if (placed_ && rank == *placed_) return values_[rank];
    const auto begin = values_.begin();
    const auto from = placed_ && rank > *placed_ ? begin + *placed_ + 1 : begin;
    if (placed_ && rank == *placed_ + 1) {
      std::iter_swap(from, std::min_element(from, values_.end()));
    } else {
      std::nth_element(from, begin + rank, values_.end());
    }
    placed_ = rank;
    return values_[rank];
  }

  std::span<double> values_;
  bool sorted_ = false;
  std::optional<size_t> placed_;  // Everything before it is smaller, everything after larger.
};

struct Moments {
  long double sum = 0;  // Longer, so that an average of huge values is no infinity.
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
};

Moments MomentsOf(std::span<const double> values) {
  Moments moments;
  for (const double value : values) {
    moments.sum += value;
    moments.min = std::min(moments.min, value);
    moments.max = std::max(moments.max, value);
  }
  return moments;
}

double Stddev(std::span<const double> values, long double mean) {
  long double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return static_cast<double>(std::sqrt(squares / static_cast<long double>(values.size())));
}

}  // namespace

void ComputeStats(std::span<double> values, const std::vector<AggregateStat>& stats,
                  std::vector<double>* out) {
  const auto end = std::remove_if(values.begin(), values.end(),
                                  [](double value) { return !std::isfinite(value); });
  const std::span<double> finite(values.begin(), end);
  const Moments moments = MomentsOf(finite);
  const auto count = static_cast<long double>(finite.size());
  std::optional<Ranks> ranks;
  for (const AggregateStat& stat : stats) {
    double value = kNan;
    if (stat.function == F::kCount) {
      value = static_cast<double>(values.size());
    } else if (stat.function == F::kNonFinite) {
      value = static_cast<double>(values.size() - finite.size());
    } else if (!finite.empty()) {
      switch (stat.function) {
        case F::kSum:
          value = static_cast<double>(moments.sum);
          break;
        case F::kAvg:
          value = static_cast<double>(moments.sum / count);
          break;
        case F::kMin:
          value = moments.min;
          break;
        case F::kMax:
          value = moments.max;
          break;
        case F::kStddev:
          value = Stddev(finite, moments.sum / count);
          break;
        case F::kQuantile:
          if (!ranks) ranks.emplace(finite);
          value = ranks->Quantile(stat.q);
          break;
        default:
          break;
      }
    }
    out->push_back(value);
  }
}

}  // namespace tacho::server::aggregate
