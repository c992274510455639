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

uint32_t SeriesSheets::IndexOf(absl::string_view key, uint32_t guess) const {
  if (guess < entries_.size() && entries_[guess].key == key &&
      entries_[guess].place.kind != Place::Kind::kUnknown) {
    return guess;
  }
  const auto found = index_.find(key);
  return found == index_.end() ? kNone : found->second;
}

Place SeriesSheets::Find(absl::string_view key) const {
  std::vector<Place> places;
  const ForeignSeries series{.key = key};
  FindAll(std::span(&series, 1), &places);
  return std::move(places.front());
}

uint32_t SeriesSheets::NewEpoch() {
  static std::atomic<uint32_t> last = 0;
  return ++last;
}

void SeriesSheets::FindAll(std::span<const ForeignSeries> series,
                           std::vector<Place>* places) const {
  // Not for all keys at once: others wait to put theirs.
  constexpr size_t kAtOnce = 1024;
  uint32_t next = 0;
  for (size_t begin = 0; begin < series.size(); begin += kAtOnce) {
    absl::ReaderMutexLock lock(&mutex_);
    for (const ForeignSeries& one :
         series.subspan(begin, std::min(kAtOnce, series.size() - begin))) {
      const auto noted = one.memo == nullptr ? std::nullopt : one.memo->Get(epoch_);
      const uint32_t index = noted.has_value() ? *noted : IndexOf(one.key, next);
      places->push_back(index == kNone ? Place() : entries_[index].place);
      if (index == kNone) continue;
      next = index + 1;
      if (one.memo != nullptr && !noted.has_value()) one.memo->Set(epoch_, index);
    }
  }
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
  while (index_.size() >= bound || key_bytes_ + key.size() > bound * kKeyBytes) MakeRoom();
  if (const auto known = index_.find(key); known != index_.end()) {
    entries_[known->second].place = std::move(place);
  } else {
    Add(key, std::move(place));
  }
}

void SeriesSheets::Add(absl::string_view key, Place place) {
  const absl::string_view kept = texts_.Add(key);
  index_.emplace(kept, static_cast<uint32_t>(entries_.size()));
  entries_.push_back({kept, std::move(place)});
  key_bytes_ += key.size();
}

template <typename Condition>
void SeriesSheets::EraseIf(Condition condition) {
  const size_t before = index_.size();
  for (Entry& entry : entries_) {
    if (entry.place.kind == Place::Kind::kUnknown || !condition(entry.place)) continue;
    index_.erase(entry.key);
    key_bytes_ -= entry.key.size();
    entry.place = Place();
  }
  if (index_.size() != before) epoch_ = NewEpoch();
  if (index_.size() < entries_.size() / 2) Compact();
}

void SeriesSheets::Compact() {
  std::vector<Entry> entries = std::exchange(entries_, {});
  const TextBlocks texts = std::exchange(texts_, {});
  index_.clear();
  epoch_ = NewEpoch();
  key_bytes_ = 0;
  for (Entry& entry : entries) {
    if (entry.place.kind != Place::Kind::kUnknown) Add(entry.key, std::move(entry.place));
  }
}

void SeriesSheets::MakeRoom() {
  // When each was used; what is on no sheet goes first.
  const auto used = [](const Place& place) {
    return place.sheet == nullptr ? int64_t{-1}
                                  : place.sheet->used_s.load(std::memory_order_relaxed);
  };
  std::vector<int64_t> times;
  times.reserve(index_.size());
  for (const auto& [key, index] : index_) times.push_back(used(entries_[index].place));
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
  index_.clear();
  entries_.clear();
  texts_.Clear();
  epoch_ = NewEpoch();
  key_bytes_ = 0;
  ++generation_;
}

size_t SeriesSheets::size() const {
  absl::ReaderMutexLock lock(&mutex_);
  return index_.size();
}

}  // namespace tacho::server::interop
