// The samples of one series that a query asks for, and nothing else.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/base/status_macros.h"
#include "server/query/read/attempts.h"
#include "server/query/read/query_control.h"
#include "server/query/read/sample.h"
#include "storage/model/series_reader.h"
#include "storage/store.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

// Unsigned arithmetic, so that all of int64 fits.
double SecondsBetween(int64_t from_ns, int64_t to_ns);

// How much a counter grew from one sample to the next, or how fast. Samples of one series come in
// ascending time. A value below the one before it, or the first of another attempt, is a reset: it
// counts from zero. Otherwise IEEE arithmetic: a NaN makes its own growth and the next one NaN.
// Among samples of equal time the last counts, so one is held back until the time of the next is
// known. One thread at a time.
class CounterGrowth {
 public:
  // INCREASE or RATE.
  explicit CounterGrowth(v1::CounterFunction function) : function_(function) {}

  // Replaces the next samples of the series by their growth. There may be fewer, or none.
  void Apply(storage::Chunk* chunk);
  // After all samples: replaces *chunk by the growth that was held back, if any.
  void Finish(storage::Chunk* chunk);

 private:
  // Adds the growth to the newest sample, if there is one before it.
  void Emit(storage::SampleBlock* block);
  double Growth(const Sample& from, const Sample& to) const;

  const v1::CounterFunction function_;
  std::optional<Sample> before_;
  std::optional<Sample> newest_;  // Held back.
};

// Leaves out of a storage::SeriesReader what the condition on attempts does not allow. With a
// counter function it returns growths instead of samples, and no summaries. One thread at a time;
// `control`, and the view that the reader reads, must outlive it.
class SeriesScan {
 public:
  SeriesScan(std::unique_ptr<storage::SeriesReader> reader, const AttemptCondition& attempts,
             const QueryControl& control,
             v1::CounterFunction counter = v1::COUNTER_FUNCTION_UNSPECIFIED);

  // As storage::SeriesReader::Next(). Fails between two chunks with the status of `control`.
  absl::StatusOr<bool> Next(const storage::Want& want, storage::Chunk* chunk);

  // Where in time the remaining samples lie, found without reading all of them. nullopt: the last
  // sample of the series is not allowed, so that the scan has to be read to find out.
  absl::StatusOr<std::optional<AxisExtent>> FindTimes();

  // Calls visit(const storage::Chunk&) for the rest of the scan.
  template <typename Visit>
  absl::Status ForEach(const storage::Want& want, const Visit& visit) {
    storage::Chunk chunk;
    for (;;) {
      TACHO_ASSIGN_OR_RETURN(const bool more, Next(want, &chunk));
      if (!more) return absl::OkStatus();
      visit(chunk);
    }
  }

  // Calls visit(const Sample&) for the rest of the scan.
  template <typename Visit>
  absl::Status ForEachSample(const Visit& visit) {
    return ForEach({}, [&visit](const storage::Chunk& chunk) {
      const storage::SampleView& samples = chunk.samples();
      for (size_t i = 0; i < samples.size(); ++i) visit(SampleOf(samples, i));
    });
  }

 private:
  absl::StatusOr<bool> ReadAllowed(const storage::Want& want, storage::Chunk* chunk);
  absl::StatusOr<bool> ReadGrowth(storage::Chunk* chunk);

  std::unique_ptr<storage::SeriesReader> reader_;
  AttemptCondition attempts_;
  const QueryControl& control_;
  std::optional<CounterGrowth> growth_;
  std::optional<storage::Chunk> next_;  // Read ahead by FindTimes().
};

// Whether a series has a sample that is allowed. Reads the series up to there; without a condition
// every series counts as having one.
absl::StatusOr<bool> HasSample(const storage::Store& store, const storage::SeriesPtr& series,
                               const AttemptCondition& attempts, const QueryControl& control);

}  // namespace tacho::server::query
