#include "server/aggregate/plan_source.h"

#include <vector>

#include "absl/container/flat_hash_map.h"

namespace tacho::server::aggregate {
namespace {

using storage::MetricType;

// The same for the same set of layouts.
uint64_t MarkOf(std::span<const CopiedRow> rows) {
  uint64_t mark = rows.size();
  for (const CopiedRow& row : rows) {
    uint64_t id = row.layout->id * 0x9e3779b97f4a7c15;
    mark += id ^ (id >> 29);
  }
  return mark;
}

// Every series of several layouts gets a number, in all of them.
void FindShared(std::span<const CopiedRow> rows, std::span<LayoutPlan* const> plans) {
  constexpr uint32_t kOnce = UINT32_MAX;
  absl::flat_hash_map<storage::SeriesId, uint32_t> slot_of;
  uint32_t slots = 0;
  for (const CopiedRow& row : rows) {
    for (const storage::Series* series : row.layout->series) {
      const auto [found, is_new] = slot_of.try_emplace(series->id, kOnce);
      if (!is_new && found->second == kOnce) found->second = slots++;
    }
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    plans[i]->shared.clear();
    plans[i]->shared_slots = slots;
    if (slots == 0) continue;
    for (uint32_t column = 0; column < rows[i].layout->series.size(); ++column) {
      const uint32_t slot = slot_of[rows[i].layout->series[column]->id];
      if (slot != kOnce) plans[i]->shared.push_back({column, slot});
    }
  }
}

// Series that another layout follows already go on there.
void FindCounters(std::span<const CopiedRow> rows, std::span<LayoutPlan* const> plans,
                  JobState* state) {
  absl::flat_hash_map<storage::SeriesId, uint32_t> track_of;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const auto& [column, track] : plans[i]->counters) {
      track_of[rows[i].layout->series[column]->id] = track;
    }
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (plans[i]->planned_with != 0) continue;
    for (uint32_t column = 0; column < rows[i].layout->series.size(); ++column) {
      const storage::Series& series = *rows[i].layout->series[column];
      if (series.metric->type == MetricType::kGauge) continue;
      const auto next = static_cast<uint32_t>(state->tracks.size());
      const auto [found, is_new] = track_of.try_emplace(series.id, next);
      if (is_new) state->tracks.emplace_back();
      plans[i]->counters.push_back({column, found->second});
    }
  }
}

}  // namespace

void PlanSource(std::span<const CopiedRow> rows, std::span<LayoutPlan* const> plans,
                JobState* state) {
  const uint64_t mark = MarkOf(rows);
  bool old = false;
  for (const LayoutPlan* plan : plans) old |= plan->planned_with != mark;
  if (!old) return;
  if (rows.size() > 1) FindShared(rows, plans);
  FindCounters(rows, plans, state);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (plans[i]->planned_with == 0) state->PlanLayout(*rows[i].layout, plans[i]);
    plans[i]->planned_with = mark;
  }
}

}  // namespace tacho::server::aggregate
