#include "server/interop/series_sheets.h"

#include <algorithm>
#include <utility>

namespace tacho::server::interop {

void Sheet::MarkRefused(const ingest::AdmittedLayout& admitted,
                        const std::vector<storage::Breach>& breaches) {
  refused_by.assign(admitted.width, kStored);
  // The columns that break no rule on names; the others are the first of layout.concerned.
  if (!admitted.columns.empty() || admitted.definition.series.empty()) {
    refused_by.assign(admitted.width, 0);
    for (const uint32_t column : admitted.columns) refused_by[column] = kStored;
  }
  for (const storage::Breach& breach : breaches) {
    if (breach.action != storage::LimitAction::kReject) continue;
    const auto by = std::find_if(
        layout.concerned.begin(), layout.concerned.end(),
        [&](const auto& one) { return one.limit == breach.limit && one.action == breach.action; });
    const uint32_t column =
        admitted.columns.empty() ? breach.column : admitted.columns[breach.column];
    refused_by[column] = static_cast<int32_t>(by - layout.concerned.begin());
  }
}

Place SeriesSheets::Find(absl::string_view key) const {
  absl::ReaderMutexLock lock(&mutex_);
  const auto found = places_.find(key);
  return found == places_.end() ? Place() : found->second;
}

void SeriesSheets::Put(absl::string_view key, Place place) {
  absl::MutexLock lock(&mutex_);
  if (places_.size() >= max_series_.load(std::memory_order_relaxed)) MakeRoom();
  places_.insert_or_assign(std::string(key), std::move(place));
}

void SeriesSheets::MakeRoom() {
  // When each was used; what is on no sheet goes first.
  const auto used = [](const Place& place) {
    return place.sheet == nullptr ? int64_t{-1}
                                  : place.sheet->used_s.load(std::memory_order_relaxed);
  };
  std::vector<int64_t> times;
  times.reserve(places_.size());
  for (const auto& [key, place] : places_) times.push_back(used(place));
  const uint64_t bound = max_series_.load(std::memory_order_relaxed);
  const size_t keep = static_cast<size_t>(bound - bound / 10);
  const size_t surplus = times.size() - std::min(times.size(), keep);
  if (surplus == 0) return;
  std::nth_element(times.begin(), times.begin() + static_cast<ptrdiff_t>(surplus - 1), times.end());
  const int64_t last = times[surplus - 1];
  size_t left = surplus;
  absl::erase_if(places_, [&](const auto& entry) {
    if (left == 0 || used(entry.second) > last) return false;
    --left;
    return true;
  });
}

void SeriesSheets::Forget(const SheetPtr& sheet) {
  absl::MutexLock lock(&mutex_);
  absl::erase_if(places_, [&](const auto& entry) { return entry.second.sheet == sheet; });
}

void SeriesSheets::ForgetAll() {
  absl::MutexLock lock(&mutex_);
  places_.clear();
}

size_t SeriesSheets::size() const {
  absl::ReaderMutexLock lock(&mutex_);
  return places_.size();
}

}  // namespace tacho::server::interop
