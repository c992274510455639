// Where the samples of a query go: a table, JSON or CSV.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "client/ctl/line/command.h"
#include "client/ctl/line/query_options.h"
#include "client/ctl/text/samples.h"

namespace tacho::ctl {

// Begin(), then the samples of that series, then the next Begin(); Finish() once, whatever
// happened.
class SampleSink {
 public:
  virtual ~SampleSink() = default;

  // `bucket_width`: as RangeResponse.bucket_width, 0 if it is not known.
  virtual void Begin(const v1::SeriesInfo& series, uint64_t bucket_width) = 0;
  // Points or buckets, depending on whether the query reduces. False: the sink wants no more.
  virtual bool Add(const Point& point) = 0;
  virtual bool Add(const Bucket& bucket) = 0;
  // `status` is how reading ended. The caller prints a failure; the sink only marks what it wrote
  // as incomplete.
  virtual void Finish(const absl::Status& status) = 0;
};

std::unique_ptr<SampleSink> MakeCsvSink(std::ostream& out, const QueryOptions& options);
std::unique_ptr<SampleSink> MakeJsonSink(std::ostream& out, const QueryOptions& options);
// Holds the samples in memory until Finish(); wants no more after kTableSamples.
inline constexpr size_t kTableSamples = 1'000'000;
std::unique_ptr<SampleSink> MakeTableSink(const Environment& env, const QueryOptions& options);

}  // namespace tacho::ctl
