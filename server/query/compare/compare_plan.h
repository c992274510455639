// A CompareRequest, checked, with every default filled in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/query/compare/compared_metric.h"
#include "server/query/read/across.h"
#include "server/query/read/selection.h"
#include "storage/model/series_reader.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

inline constexpr int kMaxSubjects = 16;
inline constexpr uint32_t kDefaultComparedPoints = 200;
inline constexpr uint32_t kMaxComparedPoints = 10'000;

struct ComparedSelection {
  Selection selection;
  std::optional<uint32_t> attempt;  // The only one.
  v1::Attempts attempts = v1::ATTEMPTS_EFFECTIVE;
};

struct ComparePlan {
  std::vector<ComparedSelection> subjects;
  std::vector<std::string> metrics;  // None: those that subjects have in common.
  bool by_step = true;               // The alignment.
  storage::ReadOptions read;
  uint32_t max_points = kDefaultComparedPoints;
  FoldOptions fold;
  ComparedValues values;
};

//   INVALID_ARGUMENT  the text names the field and what was expected.
absl::StatusOr<ComparePlan> MakeComparePlan(const v1::CompareRequest& request);

}  // namespace tacho::server::query
