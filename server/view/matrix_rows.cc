#include "server/view/matrix_rows.h"

#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "server/errors/grpc_status.h"

namespace tacho::server::view {
namespace {

// Chip "2" comes before chip "10"; texts come after numbers.
struct TextOrNumber {
  int rank = 0;  // 0: empty; 1: a number; 2: a text.
  uint64_t number = 0;
  std::string text;

  explicit TextOrNumber(absl::string_view value) : text(value) {
    if (!text.empty()) rank = absl::SimpleAtoi(value, &number) ? 1 : 2;
    if (rank != 1) number = 0;
  }
  bool operator<(const TextOrNumber& other) const {
    return std::tie(rank, number, text) < std::tie(other.rank, other.number, other.text);
  }
};

using RowKey = std::tuple<std::optional<uint32_t>, std::string, TextOrNumber, TextOrNumber>;

RowKey KeyOf(absl::string_view rows, const storage::Series& series) {
  const TextOrNumber none("");
  if (rows == "task") return {series.source->task, "", none, none};
  if (rows == "host") return {std::nullopt, series.source->host, none, none};
  const TextOrNumber value(series.labels->Find(rows));
  if (rows == "chip") return {std::nullopt, series.source->host, value, none};
  return {std::nullopt, "", none, value};
}

}  // namespace

absl::StatusOr<std::vector<MatrixRowSource>> MatrixRowsOf(
    absl::string_view rows, const std::vector<storage::SeriesPtr>& series) {
  if (rows.empty()) rows = "task";
  if (rows == "job" || rows == "attempt") {
    return errors::InvalidFieldError(
        "rows", "must be \"task\", \"host\", \"chip\" or a label of the metric");
  }
  std::map<RowKey, std::vector<storage::SeriesPtr>> groups;
  for (const storage::SeriesPtr& one : series) groups[KeyOf(rows, *one)].push_back(one);
  std::vector<MatrixRowSource> sources;
  sources.reserve(groups.size());
  for (auto& [key, members] : groups) {
    const auto& [task, host, chip, label] = key;
    sources.push_back({task, host, chip.text, label.text, std::move(members)});
  }
  return sources;
}

}  // namespace tacho::server::view
