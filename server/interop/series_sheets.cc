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

uint64_t SeriesSheets::generation() const {
  absl::ReaderMutexLock lock(&mutex_);
  return generation_;
}

void SeriesSheets::Put(absl::string_view key, Place place, uint64_t generation) {
  absl::MutexLock lock(&mutex_);
  if (generation != generation_) return;
  const uint64_t bound = max_series_.load(std::memory_order_relaxed);
  if (key.size() > bound * kKeyBytes) return;
  while (places_.size() >= bound || key_bytes_ + key.size() > bound * kKeyBytes) MakeRoom();
  const auto [known, is_new] = places_.insert_or_assign(std::string(key), std::move(place));
  if (is_new) key_bytes_ += known->first.size();
}

template <typename Condition>
void SeriesSheets::EraseIf(Condition condition) {
  uint64_t bytes = 0;
  absl::erase_if(places_, [&](const Places::value_type& entry) {
    if (!condition(entry.second)) return false;
    bytes += entry.first.size();
    return true;
  });
  key_bytes_ -= bytes;
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
  size_t left = times.size() / 10 + 1;
  const auto last = times.begin() + static_cast<ptrdiff_t>(left - 1);
  std::nth_element(times.begin(), last, times.end());
  EraseIf([&, oldest = *last](const Place& place) {
    if (left == 0 || used(place) > oldest) return false;
    --left;
    return true;
  });
}

void SeriesSheets::Forget(const SheetPtr& sheet) {
  absl::MutexLock lock(&mutex_);
  EraseIf([&sheet](const Place& place) { return place.sheet == sheet; });
}

void SeriesSheets::ForgetAll() {
  absl::MutexLock lock(&mutex_);
  places_.clear();
  key_bytes_ = 0;
  ++generation_;
}

size_t SeriesSheets::size() const {
  absl::ReaderMutexLock lock(&mutex_);
  return places_.size();
}

}  // namespace tacho::server::interop
