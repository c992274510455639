// Samples as CSV and as JSON, written as they arrive, so that an answer may be larger than
// memory.
#include "client/ctl/output/sample_sink.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/json_writer.h"
#include "client/ctl/text/samples.h"
#include "client/ctl/text/text.h"

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

  void Begin(const v1::SeriesInfo& series, uint64_t) override {
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

class JsonSink : public SampleSink {
 public:
  JsonSink(std::ostream& out, const QueryOptions& options)
      : out_(out), json_(out), limit_(options.limit.value_or(0)), reduced_(options.reduced()) {
    json_.BeginObject();
    json_.Field("job", options.request.selector().job());
    json_.Field("axis", options.by_step() ? "step" : "time");
    json_.Field("reduced", options.reduced());
    json_.Key("series");
    json_.BeginArray();
  }

  void Begin(const v1::SeriesInfo& series, uint64_t bucket_width) override {
    EndSeries();
    in_series_ = true;
    json_.BeginObject();
    json_.Field("metric", series.metric().name());
    json_.Field("type", TypeName(series.metric().type()));
    json_.Field("unit", series.metric().unit());
    json_.Field("task", Maybe(series.has_task(), series.task()));
    json_.Field("host", series.host());
    json_.Field("labels", OwnLabelPairs(series));
    if (reduced_) json_.Field("bucket_width", Maybe(bucket_width > 0, bucket_width));
    json_.Key("samples");
    json_.BeginArray();
  }

  bool Add(const Point& point) override {
    json_.Object([&] {
      json_.TimeFields("time", point.time_unix_ns);
      json_.Field("step", point.step);
      json_.Field("attempt", point.attempt);
      json_.Field("value", point.value);
    });
    return MoreWanted();
  }

  bool Add(const Bucket& bucket) override {
    json_.Object([&] {
      json_.TimeFields("first_time", bucket.first_time_unix_ns);
      json_.TimeFields("last_time", bucket.last_time_unix_ns);
      json_.Field("first_step", bucket.first_step);
      json_.Field("last_step", bucket.last_step);
      json_.Field("min", bucket.min);
      json_.Field("max", bucket.max);
      json_.Field("avg", bucket.avg);
      json_.Field("first", bucket.first);
      json_.Field("last", bucket.last);
      json_.Field("count", bucket.count);
      json_.Field("non_finite", bucket.non_finite);
    });
    return MoreWanted();
  }

  void Finish(const absl::Status& status) override {
    EndSeries();
    json_.EndArray();
    json_.Field("error", Maybe(!status.ok(), status.message()));
    json_.EndObject();
  }

 private:
  void EndSeries() {
    if (!in_series_) return;
    json_.EndArray();
    json_.EndObject();
    in_series_ = false;
  }

  bool MoreWanted() { return ++written_ != limit_ && out_.good(); }

  std::ostream& out_;
  JsonWriter json_;
  const size_t limit_;  // 0 is none.
  const bool reduced_;
  size_t written_ = 0;
  bool in_series_ = false;
};

}  // namespace

std::unique_ptr<SampleSink> MakeCsvSink(std::ostream& out, const QueryOptions& options) {
  return std::make_unique<CsvSink>(out, options);
}

std::unique_ptr<SampleSink> MakeJsonSink(std::ostream& out, const QueryOptions& options) {
  return std::make_unique<JsonSink>(out, options);
}

}  // namespace tacho::ctl
