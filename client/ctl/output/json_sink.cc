#include <string>

#include "client/ctl/output/sample_sink.h"
#include "client/ctl/text/json_writer.h"
#include "client/ctl/text/series_name.h"

namespace tacho::ctl {
namespace {

class JsonSink : public SampleSink {
 public:
  JsonSink(std::ostream& out, const QueryOptions& options)
      : out_(out), json_(out), limit_(options.limit.value_or(0)) {
    json_.BeginObject();
    json_.Key("job");
    json_.String(options.request.selector().job());
    json_.Key("axis");
    json_.String(options.by_step() ? "step" : "time");
    json_.Key("reduced");
    json_.Bool(options.reduced());
    json_.Key("series");
    json_.BeginArray();
  }

  void Begin(const v1::SeriesInfo& series) override {
    EndSeries();
    in_series_ = true;
    json_.BeginObject();
    json_.Key("metric");
    json_.String(series.metric().name());
    json_.Key("type");
    json_.String(TypeName(series.metric().type()));
    json_.Key("unit");
    json_.String(series.metric().unit());
    json_.Key("task");
    if (series.has_task()) {
      json_.Uint(series.task());
    } else {
      json_.Null();
    }
    json_.Key("host");
    json_.String(series.host());
    json_.Key("labels");
    json_.BeginObject();
    for (const v1::Label& label : series.labels()) {
      json_.Key(label.name());
      json_.String(label.value());
    }
    json_.EndObject();
    json_.Key("samples");
    json_.BeginArray();
  }

  bool Add(const Point& point) override {
    json_.BeginObject();
    json_.TimeFields("time", point.time_unix_ns);
    Step("step", point.step);
    json_.Key("attempt");
    json_.Uint(point.attempt);
    json_.Key("value");
    json_.Double(point.value);
    json_.EndObject();
    return MoreWanted();
  }

  bool Add(const Bucket& bucket) override {
    json_.BeginObject();
    json_.TimeFields("first_time", bucket.first_time_unix_ns);
    json_.TimeFields("last_time", bucket.last_time_unix_ns);
    Step("first_step", bucket.first_step);
    Step("last_step", bucket.last_step);
    Value("min", bucket.min);
    Value("max", bucket.max);
    Value("avg", bucket.avg);
    Value("first", bucket.first);
    Value("last", bucket.last);
    json_.Key("count");
    json_.Uint(bucket.count);
    json_.Key("non_finite");
    json_.Uint(bucket.non_finite);
    json_.EndObject();
    return MoreWanted();
  }

  void Finish(const absl::Status& status) override {
    EndSeries();
    json_.EndArray();
    json_.Key("error");
    if (status.ok()) {
      json_.Null();
    } else {
      json_.String(std::string(status.message()));
    }
    json_.EndObject();
  }

 private:
  void EndSeries() {
    if (!in_series_) return;
    json_.EndArray();
    json_.EndObject();
    in_series_ = false;
  }

  void Step(const char* name, const std::optional<int64_t>& step) {
    json_.Key(name);
    if (step) {
      json_.Int(*step);
    } else {
      json_.Null();
    }
  }

  void Value(const char* name, double value) {
    json_.Key(name);
    json_.Double(value);
  }

  bool MoreWanted() { return ++written_ != limit_ && out_.good(); }

  std::ostream& out_;
  JsonWriter json_;
  const size_t limit_;  // 0 is none.
  size_t written_ = 0;
  bool in_series_ = false;
};

}  // namespace

std::unique_ptr<SampleSink> MakeJsonSink(std::ostream& out, const QueryOptions& options) {
  return std::make_unique<JsonSink>(out, options);
}

}  // namespace tacho::ctl
