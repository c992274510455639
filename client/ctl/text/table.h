// A table of text that fits the terminal.
//
//   JOB        TASKS      LAST STEP
//   bert-base      8        120,000
//
// A column is as wide as its widest cell. If the table is too wide, the columns that may be
// shortened are, widest first, down to kNarrowest. A line that still does not fit runs over the
// edge, because a number that is cut is wrong.
#pragma once

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

namespace tacho::ctl {

enum class Align { kLeft, kRight };

struct TableColumn {
  std::string heading;
  Align align = Align::kLeft;
  bool may_shorten = false;  // Names and messages; never numbers.
};

class Table {
 public:
  static constexpr size_t kNarrowest = 12;

  explicit Table(std::vector<TableColumn> columns) : columns_(std::move(columns)) {}

  // One cell a column; missing ones are empty. Cells are made printable.
  void AddRow(std::vector<std::string> cells);
  // A line of its own among the rows, not part of the columns.
  void AddRemark(std::string text);

  // The columns that the widest row takes now.
  size_t Width() const;

  // `width` 0 means no limit.
  void Print(std::ostream& out, size_t width, bool unicode) const;

 private:
  std::vector<size_t> NaturalWidths() const;
  void FitWidths(std::vector<size_t>& widths, size_t width) const;
  void PrintRow(std::ostream& out, const std::vector<std::string>& cells,
                const std::vector<size_t>& widths, bool unicode) const;

  struct Row {
    std::vector<std::string> cells;
    bool is_remark = false;
  };
  std::vector<TableColumn> columns_;
  std::vector<Row> rows_;
};

}  // namespace tacho::ctl
