// What a live view of a job knows, from the messages of Watch.
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

// Not thread-safe. Its memory is bounded by the number of series and the window, however long it
// goes on.
class WatchModel {
 public:
  using SampleHandler = std::function<void(const v1::SeriesInfo&, const Point&)>;

  // Values of the last `window` are kept for sparklines. `on_sample` sees every sample once, also
  // across calls; it may be empty.
  WatchModel(absl::Duration window, SampleHandler on_sample)
      : window_(window), on_sample_(std::move(on_sample)) {}

  // A new call begins; its series are numbered anew. What it repeats up to `live` is left out.
  void BeginCall();

  //   INTERNAL  the message does not fit to those before it.
  absl::Status Add(const v1::WatchResponse& message);

  // Where the next call should begin; nullopt before the first sample. A little before the newest
  // sample, because series are not equally far.
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
    std::vector<double> course;  // Averages over `places` equal parts of the window, those with a
                                 // value that is not finite NaN; without empty parts in front.
  };
  // By name.
  std::vector<MetricView> Metrics(size_t places) const;

  // Over the last minute; nullopt if nothing moved.
  std::optional<double> StepsPerSecond() const;
  std::optional<int64_t> last_step() const { return last_step_; }
  uint64_t samples() const { return samples_; }
  // How many events were new.
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
  std::vector<Series*> by_index_;         // Of the present call.
  bool live_ = false;                     // The present call has told its history.
  std::map<std::string, std::map<int64_t, Second>> courses_;  // By metric and second.
  std::map<int64_t, int64_t> steps_;                          // Highest step by second.
  std::optional<int64_t> last_step_;
  std::optional<int64_t> newest_unix_ns_;
  std::deque<v1::RecordedEvent> events_;
  uint64_t samples_ = 0;
  size_t told_events_ = 0;
};

}  // namespace tacho::ctl
