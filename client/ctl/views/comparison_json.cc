#include <optional>

#include "client/ctl/views/comparison.h"

namespace tacho::ctl {
namespace {

class ComparisonDocument {
 public:
  ComparisonDocument(JsonWriter& json, const Comparison& comparison)
      : json_(json), comparison_(comparison) {}

  void Subject(size_t index) {
    const v1::ComparedSubject& subject = comparison_.subjects.subjects(static_cast<int>(index));
    json_.BeginObject();
    Text("name", comparison_.names[index]);
    Text("job", subject.job());
    json_.Key("attempts");
    json_.BeginArray();
    for (const uint32_t attempt : subject.attempts()) json_.Uint(attempt);
    json_.EndArray();
    Step("first_step", subject.has_first_step(), subject.first_step());
    Step("last_step", subject.has_last_step(), subject.last_step());
    Time("first_time", subject.has_first_unix_ns(), subject.first_unix_ns());
    Time("last_time", subject.has_last_unix_ns(), subject.last_unix_ns());
    json_.EndObject();
  }

  void Attribute(const v1::AttributeDifference& attribute) {
    json_.BeginObject();
    Text("name", attribute.name());
    json_.Key("values");
    json_.BeginArray();
    for (const std::string& value : attribute.values()) json_.String(value);
    json_.EndArray();
    json_.EndObject();
  }

  void Metric(const v1::CompareMetric& metric, bool with_rows) {
    json_.BeginObject();
    Text("metric", metric.metric().name());
    Text("unit", metric.metric().unit());
    json_.Key("columns");
    json_.BeginArray();
    for (int i = 0; i < metric.columns_size(); ++i) Summary(i, metric.columns(i).summary());
    json_.EndArray();
    if (with_rows) Rows(metric);
    json_.EndObject();
  }

 private:
  void Summary(int index, const v1::ComparedSummary& summary) {
    json_.BeginObject();
    Text("name", comparison_.names[static_cast<size_t>(index)]);
    Uint("count", summary.count());
    Uint("non_finite", summary.non_finite());
    Number("min", summary.min());
    Number("max", summary.max());
    Number("avg", summary.avg());
    Number("last", summary.last());
    Step(comparison_.by_step ? "last_step" : "last_elapsed_ns", summary.count() > 0,
         summary.last_position());
    if (index > 0) {
      Uint("shared", summary.shared());
      Number("mean_difference", summary.mean_difference());
      Number("max_difference", summary.max_difference());
      Number("relative_difference", summary.relative_difference());
    }
    json_.EndObject();
  }

  void Rows(const v1::CompareMetric& metric) {
    json_.Key("rows");
    json_.BeginArray();
    for (int row = 0; row < metric.positions_size(); ++row) {
      json_.BeginObject();
      Step(comparison_.by_step ? "step" : "elapsed_ns", true, metric.positions(row));
      Row("avg", metric, row, [&](const v1::ComparedColumn& c) { return c.avg(row); });
      Row("min", metric, row, [&](const v1::ComparedColumn& c) { return c.min(row); });
      Row("max", metric, row, [&](const v1::ComparedColumn& c) { return c.max(row); });
      Row("difference", metric, row, [&](const v1::ComparedColumn& c) {
        const bool none = c.difference().empty() || std::isnan(c.difference(row));
        return none ? std::nullopt : std::optional<double>(c.difference(row));
      });
      json_.EndObject();
    }
    json_.EndArray();
  }

  // null where a subject has no value, and no difference.
  template <typename Get>
  void Row(const char* name, const v1::CompareMetric& metric, int row, const Get& get) {
    json_.Key(name);
    json_.BeginArray();
    for (const v1::ComparedColumn& column : metric.columns()) {
      const std::optional<double> value = get(column);
      if (value && column.counts(row) > 0) {
        json_.Double(*value);
      } else {
        json_.Null();
      }
    }
    json_.EndArray();
  }

  void Text(const char* name, const std::string& value) {
    json_.Key(name);
    json_.String(value);
  }
  void Uint(const char* name, uint64_t value) {
    json_.Key(name);
    json_.Uint(value);
  }
  void Number(const char* name, double value) {
    json_.Key(name);
    json_.Double(value);
  }
  void Step(const char* name, bool is_there, int64_t value) {
    json_.Key(name);
    if (is_there) {
      json_.Int(value);
    } else {
      json_.Null();
    }
  }
  void Time(const char* name, bool is_there, int64_t value) {
    if (is_there) return json_.TimeFields(name, value);
    json_.Key(name);
    json_.Null();
  }

  JsonWriter& json_;
  const Comparison& comparison_;
};

}  // namespace

const char* const kComparisonJsonHelp =
    R"("by": "step"|"elapsed", "subjects": [{"name", "job", "attempts": [],
  "first_step" or null, "last_step", "first_time", "first_time_unix_ns", "last_time",
  "last_time_unix_ns"}], "attributes": [{"name", "values": []}], "equal_attributes",
  "metrics": [{"metric", "unit", "columns": [{"name", "count", "non_finite", "min", "max", "avg",
  "last", "last_step" or "last_elapsed_ns"; but for the first "shared", "mean_difference",
  "max_difference", "relative_difference"}]}])";

void WriteComparison(JsonWriter& json, const Comparison& comparison, bool with_rows) {
  ComparisonDocument document(json, comparison);
  json.Key("by");
  json.String(comparison.by_step ? "step" : "elapsed");
  json.Key("subjects");
  json.BeginArray();
  for (size_t i = 0; i < comparison.names.size(); ++i) document.Subject(i);
  json.EndArray();
  json.Key("attributes");
  json.BeginArray();
  for (const auto& attribute : comparison.subjects.attributes()) document.Attribute(attribute);
  json.EndArray();
  json.Key("equal_attributes");
  json.Uint(comparison.subjects.equal_attributes());
  json.Key("metrics");
  json.BeginArray();
  for (const v1::CompareMetric& metric : comparison.metrics) document.Metric(metric, with_rows);
  json.EndArray();
}

}  // namespace tacho::ctl
