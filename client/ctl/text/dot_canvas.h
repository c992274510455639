// A grid of characters to draw curves on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tacho::ctl {

// How curves differ.
enum class Ink {
  kBraille,  // Eight dots a character; curves differ by colour.
  kMarks,    // One mark a character; curves differ by mark.
};

// Row 0 is the top. Colours are ANSI numbers (31 red, …), 0 is none. Not thread-safe.
class DotCanvas {
 public:
  DotCanvas(size_t columns, size_t rows, Ink ink, bool unicode);

  size_t columns() const { return columns_; }
  size_t rows() const { return rows_; }
  // How many dots the canvas has: two a column and four a row in braille, else one.
  size_t dot_columns() const { return columns_ * (ink_ == Ink::kBraille ? 2 : 1); }
  size_t dot_rows() const { return rows_ * (ink_ == Ink::kBraille ? 4 : 1); }

  // Shades the characters of a column from `top` to `bottom`, both inclusive, behind all dots.
  void Shade(size_t column, size_t top, size_t bottom, int color);
  // `mark` is the character that a canvas of marks shows.
  void Dot(size_t x, size_t y, const char* mark, int color);
  // From one dot to another, both inclusive.
  void Line(size_t x1, size_t y1, size_t x2, size_t y2, const char* mark, int color);

  // One row, without trailing blanks.
  std::string Row(size_t row, bool color) const;

 private:
  struct Cell {
    uint8_t dots = 0;
    const char* mark = nullptr;
    int color = 0;
    bool shaded = false;
    int shade_color = 0;
  };
  std::string Glyph(const Cell& cell) const;

  const size_t columns_;
  const size_t rows_;
  const Ink ink_;
  const bool unicode_;
  std::vector<Cell> cells_;
};

// `text` in a colour, if colours are enabled; else unchanged.
std::string Colored(const std::string& text, int color, bool dim, bool enabled);

// One mark a value, scaled between the smallest and largest finite one; a value that is NaN or
// infinite is shown as '×' ('!' without Unicode), never as a gap. More values than `width` are
// folded, several to a mark: a mark is then their average, or '×' if one of them is not finite.
std::string Sparkline(const std::vector<double>& values, size_t width, bool unicode);

}  // namespace tacho::ctl
