#include "server/cost/energy.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace tacho::server::cost {
namespace {

double WattsAt(const PowerPiece& piece, int64_t time_ns) {
  const auto length = static_cast<double>(piece.to_ns - piece.from_ns);
  const double share = static_cast<double>(time_ns - piece.from_ns) / length;
  return piece.from_watts + (piece.to_watts - piece.from_watts) * share;
}

double Joules(const PowerPiece& piece, int64_t from_ns, int64_t to_ns) {
  const double middle = (WattsAt(piece, from_ns) + WattsAt(piece, to_ns)) / 2;
  return middle * static_cast<double>(to_ns - from_ns) / 1e9;
}

}  // namespace

int64_t PowerFollower::LongestNs() const {
  if (known_ < kLeastKnown) return kUnknownGapNs;
  auto sorted = intervals_;
  const size_t count = std::min(known_, kKnownIntervals);
  const auto middle = sorted.begin() + (count - 1) / 2;
  std::nth_element(sorted.begin(), middle, sorted.begin() + count);
  return *middle > INT64_MAX / kGapIntervals ? INT64_MAX : *middle * kGapIntervals;
}

std::optional<PowerPiece> PowerFollower::Add(int64_t time_ns, double watts) {
  if (!std::isfinite(watts) || watts < 0) {
    ++refused_;
    return std::nullopt;
  }
  if (!has_sample_) {
    has_sample_ = true;
    time_ns_ = time_ns;
    watts_ = watts;
    return std::nullopt;
  }
  if (time_ns <= time_ns_) return std::nullopt;
  // Unsigned, so that all of int64 fits.
  const uint64_t apart = static_cast<uint64_t>(time_ns) - static_cast<uint64_t>(time_ns_);
  const auto interval = static_cast<int64_t>(std::min<uint64_t>(apart, INT64_MAX));
  const PowerPiece piece{time_ns_, time_ns, watts_, watts};
  const bool gap = interval > LongestNs();
  intervals_[known_++ % kKnownIntervals] = interval;
  time_ns_ = time_ns;
  watts_ = watts;
  if (!gap) return piece;
  ++gaps_;
  return std::nullopt;
}

std::vector<TimeWindow> Joined(std::vector<TimeWindow> windows) {
  std::erase_if(windows, [](const TimeWindow& one) { return one.end_ns <= one.begin_ns; });
  std::sort(windows.begin(), windows.end(),
            [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
  std::vector<TimeWindow> joined;
  for (const TimeWindow& one : windows) {
    if (!joined.empty() && one.begin_ns <= joined.back().end_ns) {
      joined.back().end_ns = std::max(joined.back().end_ns, one.end_ns);
    } else {
      joined.push_back(one);
    }
  }
  return joined;
}

std::vector<TimeWindow> Common(const std::vector<TimeWindow>& a, const std::vector<TimeWindow>& b) {
  std::vector<TimeWindow> common;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const TimeWindow both{std::max(a[i].begin_ns, b[j].begin_ns),
                          std::min(a[i].end_ns, b[j].end_ns)};
    if (both.begin_ns < both.end_ns) common.push_back(both);
    a[i].end_ns < b[j].end_ns ? ++i : ++j;
  }
  return common;
}

double Energy::total() const { return std::accumulate(joules.begin(), joules.end(), 0.0); }

void Energy::Add(const Energy& other, double times) {
  for (size_t i = 0; i < joules.size(); ++i) joules[i] += other.joules[i] * times;
  covered_ns += other.covered_ns * times;
  due_ns += other.due_ns * times;
  gaps += other.gaps;
  refused += other.refused;
}

void EnergyMeter::Begin(std::vector<TimeWindow> windows) {
  windows_ = std::move(windows);
  follower_ = PowerFollower();
  next_window_ = 0;
  next_span_ = 0;
  for (const TimeWindow& one : windows_) {
    energy_.due_ns += static_cast<double>(one.end_ns - one.begin_ns);
  }
}

void EnergyMeter::Add(int64_t time_ns, double watts) {
  const std::optional<PowerPiece> piece = follower_.Add(time_ns, watts);
  if (!piece.has_value()) return;
  while (next_window_ < windows_.size() && windows_[next_window_].end_ns <= piece->from_ns) {
    ++next_window_;
  }
  for (size_t i = next_window_; i < windows_.size(); ++i) {
    if (windows_[i].begin_ns >= piece->to_ns) break;
    AddWithin(*piece, std::max(piece->from_ns, windows_[i].begin_ns),
              std::min(piece->to_ns, windows_[i].end_ns));
  }
}

void EnergyMeter::AddWithin(const PowerPiece& piece, int64_t from_ns, int64_t to_ns) {
  energy_.covered_ns += static_cast<double>(to_ns - from_ns);
  while (next_span_ < spans_.size() && spans_[next_span_].end_ns <= from_ns) ++next_span_;
  for (size_t i = next_span_; i < spans_.size() && spans_[i].begin_ns < to_ns; ++i) {
    const int64_t begin_ns = std::max(from_ns, spans_[i].begin_ns);
    const int64_t end_ns = std::min(to_ns, spans_[i].end_ns);
    if (end_ns <= begin_ns) continue;
    energy_.joules[static_cast<size_t>(spans_[i].bucket)] += Joules(piece, begin_ns, end_ns);
  }
}

void EnergyMeter::End() {
  energy_.gaps += follower_.gaps();
  energy_.refused += follower_.refused();
}

}  // namespace tacho::server::cost
