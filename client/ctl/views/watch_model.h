// The state of a live view of a job, from the messages of Watch.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/ctl/text/samples.h"

namespace tacho::ctl {

// Not thread-safe. The number of series and the window bound its memory, however long it runs.
class WatchModel {
 public:
  using SampleHandler = std::function<void(const v1::SeriesInfo&, const Point&)>;

  // Keeps the values of the last `window` for sparklines. `on_sample` receives every sample once,
  // even across calls; it may be empty.
  WatchModel(absl::Duration window, SampleHandler on_sample)
      : window_(window), on_sample_(std::move(on_sample)) {}

  // A new call begins, with its own numbering of series. Samples that it repeats are left out.
  void BeginCall();

  //   INTERNAL  the message contradicts those before it.
  absl::Status Add(const v1::WatchResponse& message);

  // Where the next call should begin: a little before the newest sample, because series are not
  // equally far. nullopt before the first sample.
  std::optional<int64_t> ResumeFrom() const;

  // The newest sample of each series.
  std::vector<v1::LatestSample> Latest() const;

  struct MetricView {
    v1::Metric metric;
    // Over the newest value of each series; NaN if none is finite.
    double average = 0;
    double low = 0;
    double high = 0;
    size_t non_finite = 0;       // How many of these are NaN or infinite.
    std::vector<double> course;  // Averages over `places` equal parts of the window, NaN where a
                                 // value is not finite; leading empty parts are left out.
  };
  // By name.
  std::vector<MetricView> Metrics(size_t places) const;

  // Over the last minute; nullopt if nothing moved.
  std::optional<double> StepsPerSecond() const;
  std::optional<int64_t> last_step() const { return last_step_; }
  uint64_t samples() const { return samples_; }
  // How many events came.
  size_t told_events() const { return told_events_; }

  // Newest last; at most a few are kept.
  const std::deque<v1::RecordedEvent>& events() const { return events_; }

 private:
  struct Series {
    v1::SeriesInfo info;
    bool seen = false;
    Point newest;
  };
  struct Second {
    double sum = 0;
    uint64_t count = 0;
    uint64_t non_finite = 0;
  };
  absl::Status AddSamples(const v1::WatchedSamples& samples);
  void AddPoint(Series& series, const Point& point);
  void AddEvent(const v1::RecordedEvent& event);
  void Forget();

  const absl::Duration window_;
  const SampleHandler on_sample_;
  std::map<std::string, Series> series_;  // By full name.
  std::vector<Series*> by_index_;         // In the current call.
  bool live_ = false;                     // The current call has sent its history.
  std::map<std::string, std::map<int64_t, Second>> courses_;  // By metric and second.
  std::map<int64_t, int64_t> steps_;                          // Highest step by second.
  std::optional<int64_t> last_step_;
  std::optional<int64_t> newest_unix_ns_;
  std::deque<v1::RecordedEvent> events_;
  uint64_t samples_ = 0;
  size_t told_events_ = 0;
};

}  // namespace tacho::ctl
