#include "client/ctl/text/dot_canvas.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "absl/strings/str_cat.h"

namespace tacho::ctl {
namespace {

// Bits of U+2800 by column and row within the character.
constexpr uint8_t kDotBits[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};

std::string Braille(uint8_t dots) {
  const unsigned code = 0x2800U + dots;
  return {static_cast<char>(0xE0 | (code >> 12)), static_cast<char>(0x80 | ((code >> 6) & 0x3F)),
          static_cast<char>(0x80 | (code & 0x3F))};
}

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

std::string Colored(const std::string& text, int color, bool dim, bool enabled) {
  if (!enabled || color == 0) return text;
  return absl::StrCat("\x1b[", dim ? "2;" : "", color, "m", text, "\x1b[0m");
}

DotCanvas::DotCanvas(size_t columns, size_t rows, Ink ink, bool unicode)
    : columns_(columns), rows_(rows), ink_(ink), unicode_(unicode), cells_(columns * rows) {}

void DotCanvas::Shade(size_t column, size_t top, size_t bottom, int color) {
  for (size_t row = top; row <= bottom && row < rows_; ++row) {
    Cell& cell = cells_[row * columns_ + column];
    cell.shaded = true;
    cell.shade_color = color;
  }
}

void DotCanvas::Dot(size_t x, size_t y, const char* mark, int color) {
  if (x >= dot_columns() || y >= dot_rows()) return;
  const bool braille = ink_ == Ink::kBraille;
  Cell& cell = cells_[(braille ? y / 4 : y) * columns_ + (braille ? x / 2 : x)];
  if (braille) cell.dots |= kDotBits[x % 2][y % 4];
  cell.mark = mark;
  cell.color = color;
}

void DotCanvas::Line(size_t x1, size_t y1, size_t x2, size_t y2, const char* mark, int color) {
  const auto width = static_cast<int64_t>(x2) - static_cast<int64_t>(x1);
  const auto height = static_cast<int64_t>(y2) - static_cast<int64_t>(y1);
  const int64_t length = std::max<int64_t>({std::abs(width), std::abs(height), 1});
  for (int64_t i = 0; i <= length; ++i) {
    // Rounded half away from zero, so that a line is the same from both ends.
    const auto at = [&](int64_t span) {
      return (2 * span * i + (span < 0 ? -length : length)) / (2 * length);
    };
    Dot(static_cast<size_t>(static_cast<int64_t>(x1) + at(width)),
        static_cast<size_t>(static_cast<int64_t>(y1) + at(height)), mark, color);
  }
}

std::string DotCanvas::Glyph(const Cell& cell) const {
  if (cell.mark != nullptr) return ink_ == Ink::kBraille ? Braille(cell.dots) : cell.mark;
  if (cell.shaded) return unicode_ ? "░" : ".";
  return " ";
}

std::string DotCanvas::Row(size_t row, bool color) const {
  std::string text;
  size_t end = columns_;
  while (end > 0 && Glyph(cells_[row * columns_ + end - 1]) == " ") --end;
  for (size_t column = 0; column < end;) {
    const Cell& first = cells_[row * columns_ + column];
    const bool dim = first.mark == nullptr;
    const int number = dim ? first.shade_color : first.color;
    std::string run;
    // Neighbours of one colour share its sequences.
    while (column < end) {
      const Cell& cell = cells_[row * columns_ + column];
      const bool cell_dim = cell.mark == nullptr;
      if (cell_dim != dim || (cell_dim ? cell.shade_color : cell.color) != number) break;
      run += Glyph(cell);
      ++column;
    }
    text += Colored(run, number, dim, color);
  }
  return text;
}

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
