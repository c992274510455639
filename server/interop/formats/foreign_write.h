// One request of another tool after its bytes were read: series and their samples. Doors make it,
// Intake stores it.
//
// A few bytes of a request can stand for many: a reference for a whole text, an attribute of a
// resource for a label of each of its series. So a translator asks CheckSize() as it goes.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/interop/formats/told_metrics.h"
#include "storage/model/series.h"

namespace tacho::server::interop {

struct ForeignSample {
  int64_t time_ns = 0;
  double value = 0;  // The stale marker: the series has ended, there is no value.
};

// Where SeriesSheets found a series the last time, so that the next time it need not look. It
// belongs to one key.
class PlaceMemo {
 public:
  // No number of an epoch is used twice; 0 is none.
  void Set(uint32_t epoch, uint32_t index) {
    noted_.store(uint64_t{epoch} << 32 | index, std::memory_order_relaxed);
  }
  // The index, if it was noted in `epoch`.
  std::optional<uint32_t> Get(uint32_t epoch) const {
    const uint64_t noted = noted_.load(std::memory_order_relaxed);
    if (noted >> 32 != epoch) return std::nullopt;
    return static_cast<uint32_t>(noted);
  }

 private:
  std::atomic<uint64_t> noted_ = 0;
};

struct ForeignSeries {
  // The labels as AppendLabel() writes them. Points into the request, into ForeignWrite::texts or
  // into what it keeps alive.
  absl::string_view key;
  // Its samples are ForeignWrite::samples[first, first + count).
  uint32_t first = 0;
  uint32_t count = 0;
  // A native histogram makes several series, of which one stands for it where things are counted.
  enum class Part : uint8_t { kSample, kHistogram, kOfHistogram };
  Part part = Part::kSample;
  // What the request says of its metric; null if it says nothing. As `key`, it points to what
  // ForeignWrite holds.
  const ForeignMetric* metric = nullptr;
  PlaceMemo* memo = nullptr;  // Of `key`; may be null.
};

// Moved, never copied: its parts point to each other.
struct ForeignWrite {
  ForeignWrite() = default;
  ForeignWrite(ForeignWrite&&) = default;
  ForeignWrite& operator=(ForeignWrite&&) = default;

  // An honest request has some thousand samples, and less text than its own bytes.
  static constexpr size_t kMaxSamples = 1'000'000;
  static constexpr size_t kMaxTextBytes = size_t{64} << 20;

  std::vector<ForeignSeries> series;
  std::vector<ForeignSample> samples;
  // Deques, so that what series point to stays where it is.
  std::deque<ForeignMetric> metrics;
  std::deque<std::string> texts;
  std::vector<std::shared_ptr<const void>> kept;
  size_t text_bytes = 0;   // Made of the request so far, and not only of what is kept.
  uint64_t exemplars = 0;  // Left out.
  // Whether a series that ends leaves /metrics at once. Else it does so after metrics.staleness, so
  // that one failed scrape makes no gap there.
  bool ends_at_once = false;

  // Begins a series; its samples are those that are added next.
  void AddSeries(absl::string_view key, const ForeignMetric* metric = nullptr,
                 ForeignSeries::Part part = ForeignSeries::Part::kSample) {
    series.push_back({.key = key,
                      .first = static_cast<uint32_t>(samples.size()),
                      .part = part,
                      .metric = metric});
  }
  // The same with a key that is not in the request, but in what `kept` keeps alive.
  void AddKnownSeries(absl::string_view key, const ForeignMetric* metric, PlaceMemo* memo) {
    AddSeries(key, metric);
    series.back().memo = memo;
  }
  // The same with a key that is not in the request.
  void AddSeriesWithText(std::string key, const ForeignMetric* metric, ForeignSeries::Part part) {
    text_bytes += key.size();
    AddSeries(texts.emplace_back(std::move(key)), metric, part);
  }
  void AddSample(int64_t time_ns, double value) {
    samples.push_back({time_ns, value});
    ++series.back().count;
  }
  //   RESOURCE_EXHAUSTED (TOO_LARGE)  the request has become too much of either.
  absl::Status CheckSize() const;
};

// Labels as bytes: what prometheus.TimeSeries has as its repeated field `labels`, so that the bytes
// of a remote write 1.0 request are a key as they are. Equal keys are the same series; a sender
// that writes its labels in another order has another key for the same series.
void AppendLabel(absl::string_view name, absl::string_view value, std::string* key);
//   INVALID_ARGUMENT  the bytes are no list of labels.
absl::StatusOr<storage::Labels> LabelsOfKey(absl::string_view key);

// `name` with _ for each character that the name of a label may not have; templates of the mapping
// find labels by this name.
std::string LabelNameOf(absl::string_view name);

// Milliseconds since the Unix epoch as nanoseconds; what does not fit is the nearest that does.
int64_t NanosFromMillis(int64_t ms);

}  // namespace tacho::server::interop
