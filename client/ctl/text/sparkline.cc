#include "client/ctl/text/sparkline.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tacho::ctl {
namespace {

constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr const char* kAscii[] = {"_", ".", "-", "~", "=", "+", "*", "#"};
constexpr size_t kLevels = std::size(kBlocks);

std::vector<double> Fold(const std::vector<double>& values, size_t width) {
  if (values.size() <= width) return values;
  std::vector<double> folded;
  for (size_t i = 0; i < width; ++i) {
    const size_t begin = i * values.size() / width;
    const size_t end = (i + 1) * values.size() / width;
    double sum = 0;
    for (size_t j = begin; j < end; ++j) sum += values[j] / static_cast<double>(end - begin);
    folded.push_back(sum);
  }
  return folded;
}

size_t Level(double value, double low, double high) {
  if (high <= low) return kLevels / 2;
  // Halved first: the span of two huge values would overflow.
  const double share = (value / 2 - low / 2) / (high / 2 - low / 2);
  return std::min(kLevels - 1, static_cast<size_t>(share * static_cast<double>(kLevels)));
}

}  // namespace

std::string Sparkline(const std::vector<double>& values, size_t width, bool unicode) {
  const std::vector<double> folded = Fold(values, std::max<size_t>(1, width));
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const double value : folded) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  std::string line;
  for (const double value : folded) {
    if (!std::isfinite(value)) {
      line += unicode ? "×" : "!";
    } else {
      line += (unicode ? kBlocks : kAscii)[Level(value, low, high)];
    }
  }
  return line;
}

}  // namespace tacho::ctl
