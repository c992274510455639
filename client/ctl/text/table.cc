#include "client/ctl/text/table.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "client/ctl/text/text.h"

namespace tacho::ctl {
namespace {

constexpr size_t kGap = 2;

size_t Total(const std::vector<size_t>& widths) {
  if (widths.empty()) return 0;
  return std::accumulate(widths.begin(), widths.end(), kGap * (widths.size() - 1));
}

}  // namespace

void Table::AddRow(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = Printable(cell);
  rows_.push_back({std::move(cells), false});
}

void Table::AddRemark(std::string text) { rows_.push_back({{Printable(text)}, true}); }

std::vector<size_t> Table::NaturalWidths() const {
  std::vector<size_t> widths;
  for (const TableColumn& column : columns_) widths.push_back(DisplayWidth(column.heading));
  for (const Row& row : rows_) {
    if (row.is_remark) continue;
    for (size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], DisplayWidth(row.cells[i]));
    }
  }
  return widths;
}

size_t Table::Width() const { return Total(NaturalWidths()); }

void Table::FitWidths(std::vector<size_t>& widths, size_t width) const {
  while (Total(widths) > width) {
    size_t widest = widths.size();
    for (size_t i = 0; i < widths.size(); ++i) {
      if (!columns_[i].may_shorten || widths[i] <= kNarrowest) continue;
      if (widest == widths.size() || widths[i] > widths[widest]) widest = i;
    }
    if (widest == widths.size()) return;
    --widths[widest];
  }
}

void Table::PrintRow(std::ostream& out, const std::vector<std::string>& cells,
                     const std::vector<size_t>& widths, bool unicode) const {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string cell =
        columns_[i].may_shorten ? Shorten(cells[i], widths[i], unicode) : cells[i];
    const size_t used = DisplayWidth(cell);
    const std::string padding(widths[i] > used ? widths[i] - used : 0, ' ');
    if (i > 0) line.append(kGap, ' ');
    line += columns_[i].align == Align::kRight ? padding + cell : cell + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out << line << '\n';
}

void Table::Print(std::ostream& out, size_t width, bool unicode) const {
  std::vector<size_t> widths = NaturalWidths();
  if (width > 0) FitWidths(widths, width);
  std::vector<std::string> headings;
  for (const TableColumn& column : columns_) headings.push_back(Printable(column.heading));
  PrintRow(out, headings, widths, unicode);
  for (const Row& row : rows_) {
    if (row.is_remark) {
      out << row.cells[0] << '\n';
    } else {
      PrintRow(out, row.cells, widths, unicode);
    }
  }
}

}  // namespace tacho::ctl
