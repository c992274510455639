// Energy from samples of power, by the buckets of a ledger. Pure. docs/cost.md defines it for
// users.
//
// Definition. Power is taken as straight between two samples that follow each other, so the energy
// of a piece [a, b] of that line is (p(a) + p(b)) / 2 x (b - a): the trapezoidal rule. It is not
// taken as anything where it is not known: a time without samples that is longer than kGapIntervals
// usual intervals of the series is a gap and has no energy. What is covered is counted, so that a
// reader sees of how much time the energy is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "server/goodput/ledger_spans.h"

namespace tacho::server::cost {

// Power between two times, straight from one to the other.
struct PowerPiece {
  int64_t from_ns = 0;
  int64_t to_ns = 0;  // Later.
  double from_watts = 0;
  double to_watts = 0;
};

// Joins the samples of one series. They come in ascending time; one that does not is left out, as
// after a clock that was set back. Not thread-safe.
class PowerFollower {
 public:
  static constexpr int64_t kGapIntervals = 4;
  // The usual interval is the lower median of the newest ones, gaps included: so a series that is
  // sampled less often from some time on is followed again after half of them.
  static constexpr size_t kKnownIntervals = 15;
  static constexpr size_t kLeastKnown = 3;
  // What is a gap while fewer than kLeastKnown are known.
  static constexpr int64_t kUnknownGapNs = 60'000'000'000;

  // The piece from the sample before to this one; nullopt: there is none, or a gap. NaN, infinite
  // and negative watts are refused: the sample counts as missing.
  std::optional<PowerPiece> Add(int64_t time_ns, double watts);

  uint64_t gaps() const { return gaps_; }
  uint64_t refused() const { return refused_; }
  // The longest time between two samples that is no gap, as of now.
  int64_t LongestNs() const;

 private:
  bool has_sample_ = false;
  int64_t time_ns_ = 0;
  double watts_ = 0;
  std::array<int64_t, kKnownIntervals> intervals_ = {};  // The newest ones, as a ring.
  size_t known_ = 0;                                     // Intervals ever.
  uint64_t gaps_ = 0;
  uint64_t refused_ = 0;
};

struct TimeWindow {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;  // Later.

  friend bool operator==(const TimeWindow&, const TimeWindow&) = default;
};
// Ascending and disjoint; windows of no time are left out.
std::vector<TimeWindow> Joined(std::vector<TimeWindow> windows);
// What lies in both. Each is ascending and disjoint.
std::vector<TimeWindow> Common(const std::vector<TimeWindow>& a, const std::vector<TimeWindow>& b);

struct Energy {
  std::array<double, goodput::kGoodputBuckets> joules = {};
  // Time of series that pieces cover, and the time of their windows, in ns. Sums over series;
  // double, as 100,000 series of a year are more than an int64 holds.
  double covered_ns = 0;
  double due_ns = 0;
  uint64_t gaps = 0;
  uint64_t refused = 0;

  double total() const;
  void Add(const Energy& other, double times = 1);
};

// Adds up one series at a time. `spans` are ascending and disjoint, the ledger as it came about,
// and must outlive it. Not thread-safe.
class EnergyMeter {
 public:
  explicit EnergyMeter(const std::vector<goodput::BucketSpan>& spans) : spans_(spans) {}

  // Begins a series whose power counts within the windows: ascending and disjoint.
  void Begin(std::vector<TimeWindow> windows);
  void Add(int64_t time_ns, double watts);  // Of that series.
  void End();
  const Energy& energy() const { return energy_; }

 private:
  // What lies in one window, by bucket.
  void AddWithin(const PowerPiece& piece, int64_t from_ns, int64_t to_ns);

  const std::vector<goodput::BucketSpan>& spans_;
  std::vector<TimeWindow> windows_;
  PowerFollower follower_;
  size_t next_window_ = 0;
  size_t next_span_ = 0;
  Energy energy_;
};

}  // namespace tacho::server::cost
