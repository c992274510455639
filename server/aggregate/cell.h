// An aggregate: the lines of one group of one metric by one rule, and what is remembered of it from
// scrape to scrape.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace tacho::server {

inline constexpr uint32_t kNoCell = std::numeric_limits<uint32_t>::max();

struct CellFamily {
  std::string name;
  const char* type = "gauge";
  std::string help;  // Escaped.
};

// How fast a total grew: over 30 s or, with slower scrapes, since the scrape before the last.
class RateWindow {
 public:
  double Rate(absl::Time now, double total) {
    if (now - newer_.time >= kWindow) {
      older_ = newer_;
      newer_ = {now, total};
    }
    const Point& from = older_.time == absl::InfinitePast() ? newer_ : older_;
    if (from.time == absl::InfinitePast() || now <= from.time) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    return (total - from.total) / absl::ToDoubleSeconds(now - from.time);
  }

 private:
  static constexpr absl::Duration kWindow = absl::Seconds(30);
  struct Point {
    absl::Time time = absl::InfinitePast();
    double total = 0;
  };
  Point older_;
  Point newer_;
};

struct Cell {
  enum class Kind { kGauge, kCounter, kRate, kHistogram };
  // Of a histogram: growth of the observations up to `bound` and above the bound before it.
  struct Bucket {
    double bound = 0;
    double growth = 0;
  };

  Kind kind = Kind::kGauge;
  uint32_t rule = 0;
  uint32_t counter = kNoCell;  // Of a rate: the cell with the total.
  std::shared_ptr<const CellFamily> family;
  std::string metric;
  std::string labels;      // job="x",host="h"
  std::string tail;        // ,metric="a.b" or nothing.
  bool conflicts = false;  // With a family of the same name and another type: it is not shown.

  double total = 0;             // Of a counter: what its series grew by.
  RateWindow rate;              // Of a rate.
  std::vector<Bucket> buckets;  // Of a histogram, in no order.

  // Of the scrape under way.
  uint32_t values = 0;        // Series that report; no line without one.
  bool shown = false;         // It fits on the page.
  uint32_t first_result = 0;  // Among the job's.
};

// One series of a counter or of a histogram's buckets.
struct CounterTrack {
  double last = 0;
  int64_t time_ns = 0;
  uint32_t attempt = 0;
  bool seen = false;
};

}  // namespace tacho::server
