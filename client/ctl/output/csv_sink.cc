#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/ctl/output/sample_sink.h"
#include "client/ctl/text/csv.h"
#include "client/ctl/text/number_format.h"
#include "client/ctl/text/series_name.h"
#include "client/ctl/text/time_format.h"

namespace tacho::ctl {
namespace {

constexpr absl::string_view kPointHeader =
    "job,metric,task,host,labels,attempt,time,time_unix_ns,step,value\r\n";
constexpr absl::string_view kBucketHeader =
    "job,metric,task,host,labels,first_time,first_time_unix_ns,last_time,last_time_unix_ns,"
    "first_step,last_step,min,max,avg,first,last,count,non_finite\r\n";

std::string StepText(const std::optional<int64_t>& step) { return step ? absl::StrCat(*step) : ""; }

class CsvSink : public SampleSink {
 public:
  CsvSink(std::ostream& out, const QueryOptions& options)
      : out_(out), limit_(options.limit.value_or(0)) {
    out_ << (options.reduced() ? kBucketHeader : kPointHeader);
  }

  void Begin(const v1::SeriesInfo& series) override {
    series_ = absl::StrCat(CsvField(series.job()), ",", CsvField(series.metric().name()), ",",
                           series.has_task() ? absl::StrCat(series.task()) : "", ",",
                           CsvField(series.host()), ",", CsvField(OwnLabels(series)), ",");
  }

  bool Add(const Point& point) override {
    out_ << absl::StrCat(series_, point.attempt, ",", ExactTime(point.time_unix_ns), ",",
                         point.time_unix_ns, ",", StepText(point.step), ",")
         << ExactNumber(point.value) << "\r\n";
    return MoreWanted();
  }

  bool Add(const Bucket& bucket) override {
    out_ << absl::StrCat(series_, ExactTime(bucket.first_time_unix_ns), ",",
                         bucket.first_time_unix_ns, ",", ExactTime(bucket.last_time_unix_ns), ",",
                         bucket.last_time_unix_ns, ",")
         << absl::StrCat(StepText(bucket.first_step), ",", StepText(bucket.last_step), ",");
    for (const double value : {bucket.min, bucket.max, bucket.avg, bucket.first, bucket.last}) {
      out_ << ExactNumber(value) << ',';
    }
    out_ << absl::StrCat(bucket.count, ",", bucket.non_finite, "\r\n");
    return MoreWanted();
  }

  void Finish(const absl::Status&) override {}

 private:
  bool MoreWanted() { return ++written_ != limit_ && out_.good(); }

  std::ostream& out_;
  const size_t limit_;  // 0 is none.
  size_t written_ = 0;
  std::string series_;  // The fields that all samples of a series share.
};

}  // namespace

std::unique_ptr<SampleSink> MakeCsvSink(std::ostream& out, const QueryOptions& options) {
  return std::make_unique<CsvSink>(out, options);
}

}  // namespace tacho::ctl
