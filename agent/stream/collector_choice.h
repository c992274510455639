// Which collector of a list the next stream goes to, and when.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "client/channel/backoff.h"

namespace tacho::agent {

// One thread. Times are MonotonicNow()'s.
//
// The collectors stand in order of preference, and each has a backoff of its own:
//   - a stream that worked and ended is made again, to the same collector, after its pause. A
//     restarted collector so keeps its agents, and what it has is not sent to another as well;
//   - one that was refused, or did not answer, or ended kMaxFruitless times without anything having
//     become durable, is left for the first collector of the list whose own pause is over;
//   - return_after (or up to half as much again) after a later collector has answered, those before
//     it are tried, once each; if none works the later one is used again at once.
class CollectorChoice {
 public:
  static constexpr int kMaxFruitless = 3;

  struct Options {
    size_t collectors = 1;  // At least one.
    absl::Duration backoff_min;
    absl::Duration backoff_max;
    absl::Duration return_after;
    std::function<double()> random;  // In [0, 1).
  };
  explicit CollectorChoice(Options options);

  // Where the next stream goes, while there is none, or the present one, and when it may begin.
  size_t collector() const { return collector_; }
  absl::Time begin_at() const { return collectors_[collector_].begin_at; }
  // Another collector is known to work: an attempt that hangs keeps rows from it.
  bool hurried() const { return fallback_.has_value(); }

  // The collector has answered.
  void Welcomed(absl::Time now);
  // Something became durable, or what it refused is out of the way: its pauses are short again.
  void Progressed();
  // The stream ended, or came to nothing; `retry_after` is what the collector asked for.
  void Ended(absl::Time now, std::optional<absl::Duration> retry_after);

  // When a stream that works should be ended for the sake of an earlier collector; infinite: never.
  absl::Time return_at() const { return return_at_; }
  // It is not the time: ask again later.
  void PutReturnOff(absl::Time now);
  // The stream was ended, in good order, for the sake of an earlier collector.
  void Returned(absl::Time now);

 private:
  struct Collector {
    client::Backoff backoff;
    absl::Time begin_at = absl::InfinitePast();
    int fruitless = 0;  // Streams in a row that were welcomed and nothing became durable.
  };

  // The first whose pause is over, else the one whose pause is over first.
  size_t FirstReady(absl::Time now) const;

  const Options options_;
  std::vector<Collector> collectors_;
  size_t collector_ = 0;
  bool welcomed_ = false;
  absl::Time return_at_ = absl::InfiniteFuture();
  std::optional<size_t> fallback_;
};

}  // namespace tacho::agent
