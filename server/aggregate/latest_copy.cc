#include "server/aggregate/latest_copy.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "proto/base/stale_marker.h"

namespace tacho::server::aggregate {
namespace {

constexpr size_t kBlockValues = 1 << 16;

}  // namespace

LatestCopy::LatestCopy(const storage::Store& store, absl::Time fresh_from) {
  store.VisitLatestRows([&](const storage::LatestRow& row) { Add(row, fresh_from); });
  for (CopiedRow& row : rows_) {
    const storage::Series& first = *row.layout->series.front();
    row.source = first.source;
    row.job = first.job_id;
  }
  Order();
}

void LatestCopy::Order() {
  // Rows are large and what they point to is far away: keys are sorted instead.
  struct Key {
    storage::JobId job = 0;
    uint32_t row = 0;
    const storage::SeriesSource* source = nullptr;
    storage::LayoutId layout = 0;
  };
  std::vector<Key> keys;
  keys.reserve(rows_.size());
  for (const CopiedRow& row : rows_) {
    keys.push_back({row.job, static_cast<uint32_t>(keys.size()), row.source, row.layout->id});
  }
  std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
    if (a.job != b.job) return a.job < b.job;
    if (a.source != b.source) return std::less<>()(a.source, b.source);
    return a.layout < b.layout;
  });
  std::vector<CopiedRow> ordered;
  ordered.reserve(rows_.size());
  for (const Key& key : keys) ordered.push_back(std::move(rows_[key.row]));
  rows_ = std::move(ordered);
}

void LatestCopy::Add(const storage::LatestRow& row, absl::Time fresh_from) {
  CopiedRow& copy = rows_.emplace_back();
  copy.layout = row.layout;
  copy.time_ns = row.time_ns;
  copy.step = row.step;
  copy.received = row.received;
  if (row.received < fresh_from) return;
  copy.values = Allocate(row.values.size());
  std::copy(row.values.begin(), row.values.end(), copy.values.begin());
  if (row.stamp_of.empty()) return;
  copy.times.resize(row.values.size());
  for (size_t i = 0; i < row.values.size(); ++i) {
    copy.times[i] = row.Time(i);
    if (row.Received(i) < fresh_from) {
      copy.values[i] = StaleMarker();
    }
  }
}

std::span<double> LatestCopy::Allocate(size_t values) {
  if (values > left_) {
    left_ = std::max(values, kBlockValues);
    used_ = 0;
    blocks_.push_back(std::make_unique_for_overwrite<double[]>(left_));
  }
  std::span<double> allocated(blocks_.back().get() + used_, values);
  used_ += values;
  left_ -= values;
  return allocated;
}

}  // namespace tacho::server::aggregate
