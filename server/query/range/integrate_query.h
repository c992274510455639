// Integrals of series over time, one for each series or for each group of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/query/range/range_plan.h"
#include "server/query/read/message_packing.h"
#include "server/query/read/query_control.h"
#include "storage/model/series_reader.h"
#include "storage/store.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

inline constexpr int64_t kDefaultMaxGapNs = 60'000'000'000;

// Adds up trapezoids between finite samples of one series, which come in ascending time. One thread
// at a time.
class TimeIntegral {
 public:
  explicit TimeIntegral(int64_t max_gap_ns) : max_gap_ns_(max_gap_ns) {}

  void Add(const storage::SampleColumns& columns);
  // After the last sample of a series; the next one begins.
  void EndSeries() { before_.reset(); }
  // All series so far. Fills neither `series` nor `unit`.
  void Fill(v1::Integral* integral) const;

  uint64_t count() const { return count_; }

 private:
  struct Point {
    int64_t time_ns = 0;
    double value = 0;
  };
  void Extend(const Point& from, const Point& to);

  const int64_t max_gap_ns_;
  std::optional<Point> before_;
  long double sum_ = 0;  // Times ns.
  uint64_t covered_ns_ = 0;
  uint64_t not_covered_ns_ = 0;
  uint64_t gaps_ = 0;
  uint64_t count_ = 0;
  uint64_t non_finite_ = 0;
  uint64_t series_ = 0;  // With a sample.
  std::optional<int64_t> first_ns_;
  std::optional<int64_t> last_ns_;
};

// The unit of the integral over seconds, as Integral.unit describes it.
std::string IntegralUnit(absl::string_view unit);

// Every sample of the selection is decoded.
//   INVALID_ARGUMENT  the text names the field and what was expected.
//   others            the statuses of query.proto, control.Check() and `send`.
absl::Status Integrate(const storage::Store& store, const v1::IntegrateRequest& request,
                       const RangeLimits& limits, const QueryControl& control,
                       Send<v1::IntegrateResponse> send);

}  // namespace tacho::server::query
