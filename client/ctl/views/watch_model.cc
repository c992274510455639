// Collects the messages of Watch. Values are averaged by second and dropped after the window, so
// that memory stays bounded however long it runs.
#include "client/ctl/views/watch_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "client/ctl/text/samples.h"

namespace tacho::ctl {
namespace {

constexpr size_t kKeptEvents = 100;
constexpr int64_t kSecondNs = 1'000'000'000;
// How far behind the newest sample a series may be and still lose nothing when a call is repeated.
constexpr int64_t kOverlapNs = 60 * kSecondNs;
constexpr int64_t kRateSeconds = 60;

bool SameEvent(const v1::RecordedEvent& a, const v1::RecordedEvent& b) {
  return a.time_unix_ns() == b.time_unix_ns() && a.kind() == b.kind() &&
         a.message() == b.message() && a.source().task() == b.source().task() &&
         a.source().host() == b.source().host() && a.source().attempt() == b.source().attempt();
}

}  // namespace

void WatchModel::BeginCall() {
  by_index_.clear();
  live_ = false;
}

absl::Status WatchModel::Add(const v1::WatchResponse& message) {
  if (message.has_series()) {
    const v1::SeriesInfo& info = message.series().series();
    if (message.series().index() != by_index_.size()) {
      return absl::InternalError("the collector numbers its series out of order");
    }
    Series& series = series_[FullName(info)];
    series.info = info;
    by_index_.push_back(&series);
  } else if (message.has_samples()) {
    return AddSamples(message.samples());
  } else if (message.has_event()) {
    AddEvent(message.event());
  } else if (message.has_live()) {
    live_ = true;
  }
  return absl::OkStatus();
}

absl::Status WatchModel::AddSamples(const v1::WatchedSamples& samples) {
  v1::RangeResponse shape;
  *shape.mutable_points() = samples.points();
  if (samples.index() >= by_index_.size() || !CheckColumns(shape).ok()) {
    return absl::InternalError(
        absl::StrCat("the collector sent samples that do not fit series ", samples.index()));
  }
  Series& series = *by_index_[samples.index()];
  const int64_t known =
      series.seen ? series.newest.time_unix_ns : std::numeric_limits<int64_t>::min();
  for (int i = 0; i < samples.points().times_unix_ns_size(); ++i) {
    const Point point = PointAt(samples.points(), i);
    if (!live_ && point.time_unix_ns <= known) continue;
    AddPoint(series, point);
  }
  Forget();
  return absl::OkStatus();
}

void WatchModel::AddPoint(Series& series, const Point& point) {
  ++samples_;
  if (!series.seen || point.time_unix_ns >= series.newest.time_unix_ns) series.newest = point;
  series.seen = true;
  newest_unix_ns_ = std::max(newest_unix_ns_.value_or(point.time_unix_ns), point.time_unix_ns);
  const int64_t second = point.time_unix_ns / kSecondNs;
  Second& place = courses_[series.info.metric().name()][second];
  if (std::isfinite(point.value)) {
    place.sum += point.value;
    ++place.count;
  } else {
    ++place.non_finite;
  }
  if (point.step) {
    const auto [known, added] = steps_.emplace(second, *point.step);
    known->second = std::max(known->second, *point.step);
    if (second == steps_.rbegin()->first) last_step_ = known->second;
  }
  if (on_sample_) on_sample_(series.info, point);
}

void WatchModel::AddEvent(const v1::RecordedEvent& event) {
  // A repeated call sends the newest events again.
  if (!live_ && std::any_of(events_.begin(), events_.end(),
                            [&](const auto& known) { return SameEvent(known, event); })) {
    return;
  }
  ++told_events_;
  events_.push_back(event);
  if (events_.size() > kKeptEvents) events_.pop_front();
}

// Nobody needs values that are older than the window.
void WatchModel::Forget() {
  if (!newest_unix_ns_) return;
  const int64_t oldest = (*newest_unix_ns_ - absl::ToInt64Nanoseconds(window_)) / kSecondNs;
  for (auto& [metric, course] : courses_) course.erase(course.begin(), course.lower_bound(oldest));
  steps_.erase(steps_.begin(), steps_.lower_bound(oldest));
}

std::optional<int64_t> WatchModel::ResumeFrom() const {
  if (!newest_unix_ns_) return std::nullopt;
  return *newest_unix_ns_ - kOverlapNs;
}

std::vector<v1::LatestSample> WatchModel::Latest() const {
  std::vector<v1::LatestSample> latest;
  for (const auto& [name, series] : series_) {
    if (!series.seen) continue;
    v1::LatestSample& sample = latest.emplace_back();
    *sample.mutable_series() = series.info;
    sample.set_time_unix_ns(series.newest.time_unix_ns);
    if (series.newest.step) sample.set_step(*series.newest.step);
    sample.set_attempt(series.newest.attempt);
    sample.set_value(series.newest.value);
  }
  return latest;
}

std::vector<WatchModel::MetricView> WatchModel::Metrics(size_t places) const {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  struct Sum {
    MetricView view;
    double sum = 0;
    size_t finite = 0;
  };
  std::map<std::string, Sum> by_name;
  for (const auto& [name, series] : series_) {
    if (!series.seen) continue;
    const auto [found, added] = by_name.try_emplace(series.info.metric().name());
    Sum& one = found->second;
    if (added) one.view = {series.info.metric(), kNone, kNone, kNone, 0, {}};
    const double value = series.newest.value;
    if (!std::isfinite(value)) {
      ++one.view.non_finite;
      continue;
    }
    one.sum += value;
    ++one.finite;
    one.view.low = std::fmin(one.view.low, value);
    one.view.high = std::fmax(one.view.high, value);
  }
  std::vector<MetricView> views;
  for (auto& [name, one] : by_name) {
    if (one.finite > 0) one.view.average = one.sum / static_cast<double>(one.finite);
    std::vector<Second> parts(places);
    const auto course = courses_.find(name);
    const int64_t newest = newest_unix_ns_.value_or(0) / kSecondNs;
    const int64_t span = std::max<int64_t>(1, absl::ToInt64Seconds(window_));
    if (course != courses_.end()) {
      for (const auto& [second, value] : course->second) {
        const int64_t age = std::clamp<int64_t>(newest - second, 0, span - 1);
        Second& part =
            parts[places - 1 - static_cast<size_t>(age) * places / static_cast<size_t>(span)];
        part.sum += value.sum;
        part.count += value.count;
        part.non_finite += value.non_finite;
      }
    }
    for (const Second& part : parts) {
      if (part.count + part.non_finite == 0) continue;
      one.view.course.push_back(part.non_finite > 0 ? kNone
                                                    : part.sum / static_cast<double>(part.count));
    }
    views.push_back(std::move(one.view));
  }
  return views;
}

std::optional<double> WatchModel::StepsPerSecond() const {
  if (steps_.size() < 2) return std::nullopt;
  const auto last = std::prev(steps_.end());
  const auto first = steps_.lower_bound(last->first - kRateSeconds);
  if (first == last || last->second <= first->second) return std::nullopt;
  return static_cast<double>(last->second - first->second) /
         static_cast<double>(last->first - first->first);
}

}  // namespace tacho::ctl
