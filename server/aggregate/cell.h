// An aggregate: the lines of one group of one metric by one rule, and what is remembered of it from
// scrape to scrape.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace tacho::server::aggregate {

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
  const std::string* labels = nullptr;  // job="x",host="h"; the job's cells of a group share it.
  std::string tail;                     // ,metric="a.b" or nothing.
  bool conflicts = false;  // With a family of the same name and another type: it is not shown.

  double total = 0;             // Of a counter: what its series grew by.
  RateWindow rate;              // Of a rate.
  std::vector<Bucket> buckets;  // Of a histogram, in no order.
};

// What a scrape asks of every cell of a job, shown or not, close together.
struct CellBrief {
  uint32_t lines = 0;  // If any of its series report; 0 if it conflicts.
  uint32_t rule = 0;
  uint32_t counter = kNoCell;  // Of a rate.
  bool conflicts = false;
};

// One series of a counter or of a histogram's buckets.
struct CounterTrack {
  double last = 0;
  int64_t time_ns = 0;
  uint32_t attempt = 0;
  bool seen = false;
};

}  // namespace tacho::server::aggregate
