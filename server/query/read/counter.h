// How much a counter grew from one sample to the next, or how fast.
#pragma once

#include <optional>

#include "server/query/read/sample.h"
#include "storage/model/series_reader.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

// Of one series, whose samples come in ascending time. A value below the one before it, or the
// first of another attempt, is a reset: it counts from zero. Otherwise IEEE arithmetic: a NaN makes
// NaN of its own growth and of the next. Of samples of equal time the last counts, so that one is
// held back until the time of the next is known. One thread at a time.
class CounterGrowth {
 public:
  // INCREASE or RATE.
  explicit CounterGrowth(v1::CounterFunction function) : function_(function) {}

  // Replaces the next samples of the series by their growth. There may be fewer, or none.
  void Apply(storage::SampleBlock* block);
  // After all samples: replaces *block by the growth that was held back, if any.
  void Finish(storage::SampleBlock* block);

 private:
  // Adds the growth to the newest sample, if there is one before it.
  void Emit(storage::SampleBlock* block);
  double Growth(const Sample& from, const Sample& to) const;

  const v1::CounterFunction function_;
  std::optional<Sample> before_;
  std::optional<Sample> newest_;  // Held back.
};

}  // namespace tacho::server::query
