// Metrics of OpenTelemetry that a sender repeats. From one export to the next only times and
// numbers change, and those have a fixed length in protobuf. So a metric whose other bytes are
// known becomes the series that it became before, and is not parsed again. The start time of what
// counts is compared, too: it tells of a reset.
//
// What is not recognised so: metrics with deltas, exemplars or points without a value, and
// exponential histograms, whose numbers have no fixed length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/interop/formats/foreign_write.h"
#include "server/interop/formats/otlp_points.h"
#include "server/interop/formats/text_blocks.h"
#include "server/interop/formats/told_metrics.h"

namespace tacho::server::interop {

// Where the numbers of a message are. Many metrics have the same layout.
struct OtlpLayout {
  struct Piece {
    uint32_t offset = 0;
    uint32_t size = 0;
    bool operator==(const Piece&) const = default;
  };
  // How a sample becomes of the eight bytes at `offset`.
  struct Step {
    enum class How : uint8_t {
      kReal,        // A double.
      kWhole,       // A signed number.
      kCount,       // An unsigned one.
      kCumulative,  // The same, and the sum of those before in this point.
    };
    uint32_t offset = 0;
    How how = How::kReal;
    bool operator==(const Step&) const = default;
  };
  struct Point {
    uint32_t time_offset = 0;
    uint32_t steps = 0;  // How many of `steps`.
    bool operator==(const Point&) const = default;
  };

  uint32_t size = 0;         // Of the message.
  std::vector<Piece> equal;  // What is no number.
  std::vector<Point> points;
  std::vector<Step> steps;  // Of all points; each makes one series.

  bool operator==(const OtlpLayout&) const = default;
  template <typename H>
  friend H AbslHashValue(H hash, const OtlpLayout& layout) {
    hash = H::combine(std::move(hash), layout.size, layout.points.size());
    for (const Step& step : layout.steps) hash = H::combine(std::move(hash), step.offset);
    return hash;
  }
  // Whether `message` equals `known` in all but its numbers. `known` has this layout.
  bool Fits(absl::string_view message, absl::string_view known) const;
  // Whether all times of a message that fits can be stored.
  bool HasTimes(absl::string_view message) const;
};

// A metric that was read.
struct OtlpShape {
  // Of `message`, which was read as `metric` and became `series`. Nothing if messages of this kind
  // cannot be recognised.
  static std::optional<OtlpShape> Of(absl::string_view message, const OtlpMetric& metric,
                                     std::span<const ForeignSeries> series);

  OtlpLayout layout;
  std::string message;
  size_t name_at = 0;  // In the message.
  size_t name_size = 0;
  std::vector<std::string> keys;  // Of the series.
  ForeignMetric told;
};

// The shapes of one resource's metrics, in the order in which they came first.
class OtlpResourceShapes {
 public:
  // Takes `message` if its shape is known: adds its series and samples, which then point into this.
  // `*next`: where the shape is expected, and after that where the next one is; 0 at first.
  bool Take(absl::string_view message, size_t* next, ForeignWrite* write) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex);
  // Whether there may be one more shape for metrics of this name.
  bool Takes(absl::string_view name) const ABSL_SHARED_LOCKS_REQUIRED(mutex);
  // Returns the memory that this takes; 0 if it is not kept.
  size_t Add(const OtlpShape& shape) ABSL_LOCKS_EXCLUDED(mutex);

  mutable absl::Mutex mutex;

 private:
  // Metrics of one name; senders put the points of a metric into one message.
  static constexpr size_t kMaxAlike = 64;

  struct Series {
    absl::string_view key;  // In texts_.
    mutable PlaceMemo memo;
  };
  struct Known {
    const OtlpLayout* layout = nullptr;
    absl::string_view message;  // In texts_.
    size_t first = 0;           // Of series_.
    ForeignMetric told;
  };

  bool TakeAs(size_t index, absl::string_view message, ForeignWrite* write) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex);

  // Deques, because series point into them; and what is compared stands in the order in which it
  // comes.
  std::deque<Known> known_ ABSL_GUARDED_BY(mutex);
  std::deque<Series> series_ ABSL_GUARDED_BY(mutex);
  TextBlocks texts_ ABSL_GUARDED_BY(mutex);
  absl::node_hash_set<OtlpLayout> layouts_ ABSL_GUARDED_BY(mutex);
  // The names are in texts_.
  absl::flat_hash_map<absl::string_view, std::vector<uint32_t>> by_name_ ABSL_GUARDED_BY(mutex);
};

// Shapes by resource, in bounded memory: what has not been used for longest is forgotten. They stay
// for those who hold them. Thread-safe.
class OtlpShapes {
 public:
  explicit OtlpShapes(size_t max_bytes) : max_bytes_(max_bytes) {}

  // What is known of the resource whose message is `resource`; null if it is new.
  std::shared_ptr<OtlpResourceShapes> Find(absl::string_view resource) ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes a resource known. Its message must be valid.
  void Remember(absl::string_view resource) ABSL_LOCKS_EXCLUDED(mutex_);
  // `shapes` is what Find() returned for `resource`.
  void Add(absl::string_view resource, OtlpResourceShapes* shapes, const OtlpShape& shape)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    std::shared_ptr<OtlpResourceShapes> shapes;
    size_t bytes = 0;
  };
  using Entries = absl::flat_hash_map<std::string, Entry>;

  // Adds to the bytes of a resource, and forgets what is over the bound.
  void Charge(absl::string_view resource, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t max_bytes_;
  absl::Mutex mutex_;
  // What was used since half of the bound was reached, and what was used before that.
  Entries recent_ ABSL_GUARDED_BY(mutex_);
  Entries older_ ABSL_GUARDED_BY(mutex_);
  size_t recent_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tacho::server::interop
