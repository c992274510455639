#include "server/aggregate/page_lines.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tacho::server::aggregate {
namespace {

void Append(absl::string_view text, std::string* page) { page->append(text.data(), text.size()); }

void AppendHistogram(const Cell& cell, std::string* page) {
  std::vector<Cell::Bucket> buckets = cell.buckets;
  std::sort(buckets.begin(), buckets.end(),
            [](const Cell::Bucket& a, const Cell::Bucket& b) { return a.bound < b.bound; });
  double total = 0;
  const auto bucket = [&](double bound) {
    absl::StrAppend(page, cell.family->name, "_bucket{", *cell.labels, cell.tail, ",le=\"");
    AppendNumber(bound, page);
    page->append("\"} ");
    AppendNumber(total, page);
    page->push_back('\n');
  };
  for (const auto& [bound, growth] : buckets) {
    total = std::max(total, total + growth);  // Buckets that are not of one moment may disagree.
    if (std::isfinite(bound)) bucket(bound);
  }
  bucket(std::numeric_limits<double>::infinity());
  absl::StrAppend(page, cell.family->name, "_count{", *cell.labels, cell.tail, "} ");
  AppendNumber(total, page);
  page->push_back('\n');
}

void AppendStats(const JobScrape& job, const Cell& cell, const double* value, std::string* page) {
  const std::string head = absl::StrCat(cell.family->name, "{", *cell.labels, ",stat=\"");
  const std::string tail = absl::StrCat("\"", cell.tail, "} ");
  for (const AggregateStat& stat : StatsOf(*job.state, cell)) {
    page->append(head);
    page->append(stat.name);
    page->append(tail);
    AppendNumber(*value++, page);
    page->push_back('\n');
  }
}

}  // namespace

void AppendNumber(double value, std::string* page) {
  char text[32];
  if (std::isnan(value)) {
    page->append("NaN");
    return;
  }
  if (std::isinf(value)) {
    page->append(value > 0 ? "+Inf" : "-Inf");
    return;
  }
  // Counts and times are read by people too: no exponent. Other numbers get their shortest text.
  constexpr double kExact = 1e15;  // Whole numbers below are exact, and so is their text.
  const bool is_whole = std::abs(value) < kExact && std::trunc(value) == value;
  const auto end =
      is_whole ? std::to_chars(std::begin(text), std::end(text), static_cast<int64_t>(value)).ptr
               : std::to_chars(std::begin(text), std::end(text), value).ptr;
  page->append(text, static_cast<size_t>(end - text));
}

void AppendHead(absl::string_view family, absl::string_view type, absl::string_view help,
                std::string* page) {
  absl::StrAppend(page, "# HELP ", family, " ", help, "\n# TYPE ", family, " ", type, "\n");
}

void AppendHead(metrics::Metric metric, std::string* page) {
  AppendHead(metric.info().name, metric.info().type, metric.Help(), page);
}

void AppendLine(absl::string_view name, absl::string_view labels, double value, std::string* page) {
  Append(name, page);
  if (!labels.empty()) absl::StrAppend(page, "{", labels, "}");
  page->push_back(' ');
  AppendNumber(value, page);
  page->push_back('\n');
}

void AppendCell(const JobScrape& job, absl::Time now, uint32_t index, std::string* page) {
  Cell& cell = job.state->cells[index];
  switch (cell.kind) {
    case Cell::Kind::kHistogram:
      AppendHistogram(cell, page);
      break;
    case Cell::Kind::kRate:
      AppendLine(cell.family->name, absl::StrCat(*cell.labels, cell.tail),
                 cell.rate.Rate(now, job.state->cells[cell.counter].total), page);
      break;
    default:
      AppendStats(job, cell, job.results.data() + job.first_result[index], page);
  }
}

}  // namespace tacho::server::aggregate
