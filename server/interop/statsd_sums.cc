// All memory is charged before it is taken, and what a flush frees is given back, so that senders
// who invent names, or texts of sets, cost others nothing but the room.
#include "server/interop/statsd_sums.h"

#include <algorithm>
#include <deque>

#include "absl/strings/str_cat.h"
#include "proto/base/quantile.h"
#include "proto/base/stale_marker.h"
#include "server/interop/formats/label_mapping.h"

namespace tacho::server::interop {
namespace {

using Kind = StatsdPoint::Kind;

// What a table's entry, and an allocation, take besides their texts.
constexpr size_t kStatsdSeriesBytes = 400;
constexpr size_t kMemberBytes = 60;
constexpr size_t kTimedBytes = 80;
constexpr double kQuantiles[] = {0.5, 0.9, 0.99};
// Indices into the metrics of a flush.
enum Described : size_t { kCounter, kGauge, kMilliseconds, kMillisecondsSum };

std::string KeyOf(absl::string_view name, absl::string_view labels) {
  std::string key;
  AppendLabel(kNameLabel, name, &key);
  key.append(labels.data(), labels.size());
  return key;
}

std::deque<ForeignMetric> Descriptions() {
  std::deque<ForeignMetric> metrics(4);
  for (ForeignMetric& metric : metrics) metric.typed = true;
  metrics[kCounter].type = storage::MetricType::kCounter;
  metrics[kGauge].type = storage::MetricType::kGauge;
  metrics[kMilliseconds].type = storage::MetricType::kGauge;
  metrics[kMilliseconds].unit = "ms";
  metrics[kMillisecondsSum].type = storage::MetricType::kCounter;
  metrics[kMillisecondsSum].unit = "ms";
  return metrics;
}

}  // namespace

StatsdSums::Added StatsdSums::Add(const std::vector<StatsdPoint>& points, absl::Time now) {
  Added added;
  absl::MutexLock lock(&mutex_);
  for (const StatsdPoint& point : points) {
    const uint64_t values = point.kind == Kind::kSet ? 1 : point.values.size();
    if (point.kind == Kind::kGauge && point.time_ns.has_value() && !point.values.empty()) {
      std::string key = KeyOf(point.name, point.labels);
      const size_t bytes = key.size() + kTimedBytes;
      if (timed_bytes_ + bytes_ + bytes > options_.max_bytes) {
        added.no_room += values;
        continue;
      }
      timed_bytes_ += bytes;
      timed_.emplace_back(std::move(key), ForeignSample{*point.time_ns, point.values.back()});
      added.values += values;
      continue;
    }
    Series* const series = Find(point, values, &added);
    if (series == nullptr) continue;
    series->sent = now;
    AddTo(point, series, &added);
  }
  return added;
}

StatsdSums::Series* StatsdSums::Find(const StatsdPoint& point, uint64_t values, Added* added) {
  std::string key = KeyOf(point.name, point.labels);
  const auto found = series_.find(key);
  if (found != series_.end()) {
    const Series& known = *found->second;
    if (known.kind == point.kind && known.milliseconds == point.milliseconds) {
      return found->second.get();
    }
    added->other_type += values;
    return nullptr;
  }
  auto made = std::make_unique<Series>();
  if (series_.size() >= options_.max_series ||
      !Take(kStatsdSeriesBytes + 2 * key.size(), made.get())) {
    added->no_room += values;
    return nullptr;
  }
  made->kind = point.kind;
  made->milliseconds = point.milliseconds;
  made->name = point.name;
  made->labels = point.labels;
  return series_.emplace(std::move(key), std::move(made)).first->second.get();
}

void StatsdSums::AddTo(const StatsdPoint& point, Series* series, Added* added) {
  if (point.kind == Kind::kSet) {
    const bool is_new = !series->members.contains(point.member);
    if (is_new && !Take(kMemberBytes + point.member.size(), series)) {
      ++added->no_room;
      return;
    }
    if (is_new) series->members.insert(point.member);
    ++added->values;
    return;
  }
  for (const double value : point.values) {
    ++added->values;
    if (point.kind == Kind::kTimer) {
      AddTimed(value, 1 / point.rate, series);
    } else if (point.kind == Kind::kCounter) {
      series->total += value / point.rate;
    } else {
      const bool changes = point.changes && options_.signed_gauges;
      series->total = changes ? series->total + value : value;
    }
  }
}

void StatsdSums::AddTimed(double value, double weight, Series* series) {
  series->count += weight;
  series->total += value * weight;
  series->min = series->seen == 0 ? value : std::min(series->min, value);
  series->max = series->seen == 0 ? value : std::max(series->max, value);
  ++series->seen;
  if (series->kept.size() == series->kept.capacity() && series->kept.size() < kKeptValues) {
    const size_t more = std::max<size_t>(series->kept.size(), 8);
    // Where there is no room, fewer values stand for all.
    if (Take(more * sizeof(double), series)) series->kept.reserve(series->kept.size() + more);
  }
  if (series->kept.size() < std::min(series->kept.capacity(), kKeptValues)) {
    series->kept.push_back(value);
    return;
  }
  const uint64_t place = Draw(series->seen);
  if (place < series->kept.size()) series->kept[place] = value;
}

bool StatsdSums::Take(size_t bytes, Series* series) {
  if (bytes_ + timed_bytes_ + bytes > options_.max_bytes) return false;
  bytes_ += bytes;
  series->bytes += bytes;
  return true;
}

// Vigna's xorshift64*, for a sample that nobody can gain anything by foreseeing.
uint64_t StatsdSums::Draw(uint64_t below) {
  drawn_ ^= drawn_ >> 12;
  drawn_ ^= drawn_ << 25;
  drawn_ ^= drawn_ >> 27;
  return drawn_ * 0x2545f4914f6cdd1dULL % below;
}

ForeignWrite StatsdSums::Flush(absl::Time now, int64_t now_ns) {
  ForeignWrite write;
  write.metrics = Descriptions();
  write.ends_at_once = true;
  absl::MutexLock lock(&mutex_);
  for (auto at = series_.begin(); at != series_.end();) {
    const auto here = at++;
    Series& series = *here->second;
    const bool ends = now - series.sent >= options_.expiry;
    // One that comes and goes between two flushes is stored before it ends.
    if (!ends || series.stored) Write(series, ends, now_ns, &write);
    if (ends) {
      bytes_ -= series.bytes;
      series_.erase(here);
      continue;
    }
    series.stored = true;
    BeginAnew(&series);
  }
  for (auto& [key, sample] : timed_) {
    write.AddSeriesWithText(std::move(key), &write.metrics[kGauge], ForeignSeries::Part::kSample);
    write.AddSample(sample.time_ns, sample.value);
  }
  timed_.clear();
  timed_.shrink_to_fit();
  timed_bytes_ = 0;
  return write;
}

void StatsdSums::Write(const Series& series, bool ends, int64_t now_ns, ForeignWrite* write) {
  const auto add = [&](absl::string_view name, absl::string_view more_labels, Described metric,
                       double value) {
    write->AddSeriesWithText(KeyOf(name, absl::StrCat(series.labels, more_labels)),
                             &write->metrics[metric], ForeignSeries::Part::kSample);
    write->AddSample(now_ns, ends ? StaleMarker() : value);
  };
  if (series.kind != Kind::kTimer) {
    const double value =
        series.kind == Kind::kSet ? static_cast<double>(series.members.size()) : series.total;
    return add(series.name, "", series.kind == Kind::kCounter ? kCounter : kGauge, value);
  }
  add(absl::StrCat(series.name, "_count"), "", kCounter, series.count);
  add(absl::StrCat(series.name, "_sum"), "", series.milliseconds ? kMillisecondsSum : kCounter,
      series.total);
  if (series.seen == 0 && !ends) return;
  const Described unit = series.milliseconds ? kMilliseconds : kGauge;
  add(absl::StrCat(series.name, "_min"), "", unit, series.min);
  add(absl::StrCat(series.name, "_max"), "", unit, series.max);
  std::vector<double> sorted = series.kept;
  std::sort(sorted.begin(), sorted.end());
  for (const double quantile : kQuantiles) {
    if (sorted.empty() && !ends) continue;
    std::string label;
    AppendLabel("quantile", absl::StrCat(quantile), &label);
    add(series.name, label, unit, ends ? 0 : QuantileOfSorted(sorted, quantile));
  }
}

void StatsdSums::BeginAnew(Series* series) {
  size_t freed = series->kept.capacity() * sizeof(double);
  for (const std::string& member : series->members) freed += kMemberBytes + member.size();
  freed = std::min(freed, series->bytes);
  series->bytes -= freed;
  bytes_ -= freed;
  series->seen = 0;
  series->kept = {};
  series->members = {};
}

size_t StatsdSums::size() const {
  absl::MutexLock lock(&mutex_);
  return series_.size();
}

size_t StatsdSums::bytes() const {
  absl::MutexLock lock(&mutex_);
  return bytes_ + timed_bytes_;
}

}  // namespace tacho::server::interop
