// Reads the answer to a comparison, checks that its columns fit together, and writes it as JSON;
// 'compare' and 'report' both build on it.
#include "client/ctl/views/comparison.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/line/query_options.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/samples.h"
#include "proto/base/status_macros.h"

namespace tacho::ctl {
namespace {

constexpr size_t kMostSubjects = 16;  // The collector's limits, said before asking it.
constexpr uint64_t kMostRows = 10'000;

bool Fits(const v1::ComparedColumn& column, int rows) {
  for (const int size : {column.avg_size(), column.min_size(), column.max_size(),
                         column.counts_size(), column.non_finite_size()}) {
    if (size != rows) return false;
  }
  return column.difference().empty() || column.difference_size() == rows;
}

absl::Status Check(const Comparison& comparison) {
  const int subjects = static_cast<int>(comparison.names.size());
  bool fits = comparison.subjects.subjects_size() == subjects;
  for (const v1::AttributeDifference& attribute : comparison.subjects.attributes()) {
    fits = fits && attribute.values_size() == subjects;
  }
  for (const v1::CompareMetric& metric : comparison.metrics) {
    fits = fits && metric.columns_size() == subjects;
    for (const v1::ComparedColumn& column : metric.columns()) {
      fits = fits && Fits(column, metric.positions_size());
    }
  }
  if (fits) return absl::OkStatus();
  return absl::InternalError(
      "the collector's answer does not fit together; is it of another version?");
}

class ComparisonDocument {
 public:
  ComparisonDocument(JsonWriter& json, const Comparison& comparison)
      : json_(json), comparison_(comparison) {}

  void Subject(size_t index) {
    const v1::ComparedSubject& subject = comparison_.subjects.subjects(static_cast<int>(index));
    json_.Object([&] {
      json_.Field("name", comparison_.names[index]);
      json_.Field("job", subject.job());
      json_.Field("attempts", subject.attempts());
      json_.Field("first_step", Maybe(subject.has_first_step(), subject.first_step()));
      json_.Field("last_step", Maybe(subject.has_last_step(), subject.last_step()));
      Time("first_time", subject.has_first_unix_ns(), subject.first_unix_ns());
      Time("last_time", subject.has_last_unix_ns(), subject.last_unix_ns());
    });
  }

  // Members of the open object.
  void Metric(const v1::CompareMetric& metric, bool with_rows) {
    json_.Field("metric", metric.metric().name());
    json_.Field("type", TypeName(metric.metric().type()));
    json_.Field("unit", metric.metric().unit());
    size_t index = 0;
    json_.Objects("columns", metric.columns(),
                  [&](const v1::ComparedColumn&) { Summary(index++, metric); });
    if (with_rows) Rows(metric);
  }

 private:
  void Summary(size_t index, const v1::CompareMetric& metric) {
    const v1::ComparedSummary& summary = metric.columns(static_cast<int>(index)).summary();
    const bool is_count = IsCount(metric.metric());
    json_.Field("name", comparison_.names[index]);
    json_.Field("count", summary.count());
    json_.Field("non_finite", summary.non_finite());
    json_.Field("min", summary.min());
    json_.Field("max", summary.max());
    json_.Field("avg", Maybe(!is_count, summary.avg()));
    json_.Field("last", summary.last());
    json_.Field(comparison_.by_step ? "last_step" : "last_elapsed_ns",
                Maybe(summary.count() > 0, summary.last_position()));
    json_.Field("first", summary.first());
    json_.Field(comparison_.by_step ? "first_step" : "first_elapsed_ns",
                Maybe(summary.count() > 0, summary.first_position()));
    json_.Field("increase", Maybe(summary.has_increase(), summary.increase()));
    json_.Field("rate", Maybe(summary.has_rate(), summary.rate()));
    if (index == 0) return;
    const Change change = ChangeOf(metric, index);
    json_.Field("shared", summary.shared());
    json_.Field("mean_difference", change.difference);
    json_.Field("max_difference", Maybe(!is_count, summary.max_difference()));
    json_.Field("relative_difference", change.relative);
  }

  void Rows(const v1::CompareMetric& metric) {
    int row = 0;
    json_.Objects("rows", metric.positions(), [&](int64_t position) {
      json_.Field(comparison_.by_step ? "step" : "elapsed_ns", position);
      Row("avg", metric, row, [&](const v1::ComparedColumn& c) { return c.avg(row); });
      Row("min", metric, row, [&](const v1::ComparedColumn& c) { return c.min(row); });
      Row("max", metric, row, [&](const v1::ComparedColumn& c) { return c.max(row); });
      Row("difference", metric, row, [&](const v1::ComparedColumn& c) {
        const bool none = c.difference().empty() || std::isnan(c.difference(row));
        return none ? std::nullopt : std::optional<double>(c.difference(row));
      });
      ++row;
    });
  }

  // null where a subject has no value, and no difference.
  template <typename Get>
  void Row(const char* name, const v1::CompareMetric& metric, int row, const Get& get) {
    json_.Array(name, metric.columns(), [&](const v1::ComparedColumn& column) {
      const std::optional<double> value = get(column);
      json_.Value(column.counts(row) > 0 ? value : std::nullopt);
    });
  }

  void Time(const char* name, bool is_there, int64_t value) {
    json_.TimeFields(name, Maybe(is_there, value));
  }

  JsonWriter& json_;
  const Comparison& comparison_;
};

}  // namespace

const std::vector<FlagSpec>& CompareFlags() {
  static const auto* const flags = new std::vector<FlagSpec>{
      {.name = "by",
       .placeholder = "AXIS",
       .help = "Align runs by step, or by the time elapsed since each began. Default: step.",
       .choices = {"step", "elapsed"}},
      {.name = "metric",
       .placeholder = "NAME",
       .help = "Only this metric. Repeat for more. Default: all that at least two runs have.",
       .repeated = true},
      MatchFlag(),
      StepsFlag(),
      AttemptsFlag("effective"),
      {.name = "points",
       .letter = 'n',
       .placeholder = "N",
       .help = "Make at most N rows, or places of curves; no figure depends on it. Default: 200."}};
  return *flags;
}

absl::StatusOr<v1::CompareRequest> ParseCompareRequest(const ParsedArgs& args,
                                                       const std::vector<SubjectName>& subjects) {
  if (subjects.size() > kMostSubjects) {
    return absl::InvalidArgumentError(
        absl::StrCat(subjects.size(), " jobs: at most ", kMostSubjects, " can be compared"));
  }
  v1::CompareRequest request;
  for (const SubjectName& name : subjects) {
    v1::Subject& subject = *request.add_subjects();
    subject.set_job(name.job);
    if (name.attempt) subject.set_attempt(*name.attempt);
    subject.set_attempts(ParseAttempts(args));
  }
  const std::vector<std::string> metrics = args.GetAll("metric");
  request.mutable_metrics()->Assign(metrics.begin(), metrics.end());
  const auto matchers = ParseMatchers(args);
  const auto steps = ParseStepsFlag(args);
  const auto points = ParseNumber(args, "points", 1, kMostRows);
  for (const absl::Status& status : {matchers.status(), steps.status(), points.status()}) {
    if (!status.ok()) return status;
  }
  for (const v1::Matcher& matcher : *matchers) {
    if (matcher.label() == "attempt") {
      return absl::InvalidArgumentError(
          "--match attempt: an attempt is chosen with JOB@ATTEMPT, or for all with --attempts");
    }
  }
  request.mutable_matchers()->Assign(matchers->begin(), matchers->end());
  const bool elapsed = args.Get("by") == "elapsed";
  request.set_alignment(elapsed ? v1::ALIGNMENT_ELAPSED : v1::ALIGNMENT_STEP);
  if (*steps && elapsed) {
    return absl::InvalidArgumentError("--steps and --by elapsed exclude each other: give one");
  }
  if (*steps) *request.mutable_steps() = **steps;
  request.set_max_points(static_cast<uint32_t>(points->value_or(0)));
  return request;
}

absl::StatusOr<Comparison> ReadComparison(QueryClient& client, const v1::CompareRequest& request,
                                          const std::vector<SubjectName>& subjects) {
  Comparison comparison;
  comparison.by_step = request.alignment() != v1::ALIGNMENT_ELAPSED;
  for (const SubjectName& subject : subjects) comparison.names.push_back(subject.Text());
  absl::Status status = client.Compare(request, [&](const v1::CompareResponse& response) {
    if (response.has_subjects()) comparison.subjects = response.subjects();
    if (response.has_metric()) comparison.metrics.push_back(response.metric());
    return true;
  });
  if (!status.ok()) return status;
  TACHO_RETURN_IF_ERROR(Check(comparison));
  const auto empty = [&](const v1::CompareMetric& metric) {
    const auto& columns = metric.columns();
    return std::all_of(columns.begin(), columns.end(), [](const v1::ComparedColumn& column) {
      return column.summary().count() == 0;
    });
  };
  for (const v1::CompareMetric& metric : comparison.metrics) {
    if (empty(metric)) comparison.missing.push_back(metric.metric().name());
  }
  comparison.metrics.erase(
      std::remove_if(comparison.metrics.begin(), comparison.metrics.end(), empty),
      comparison.metrics.end());
  return comparison;
}

bool IsCount(const v1::Metric& metric) {
  return metric.type() == v1::METRIC_TYPE_COUNTER || metric.type() == v1::METRIC_TYPE_HISTOGRAM;
}

Change ChangeOf(const v1::CompareMetric& metric, size_t subject) {
  const v1::ComparedSummary& first = metric.columns(0).summary();
  const v1::ComparedSummary& second = metric.columns(static_cast<int>(subject)).summary();
  if (!IsCount(metric.metric())) {
    return {second.shared() > 0, second.mean_difference(), second.relative_difference()};
  }
  if (!first.has_rate() || !second.has_rate()) return {};
  const double difference = second.rate() - first.rate();
  const double base = std::fabs(first.rate());
  return {true, difference, base == 0 ? kNotANumber : difference / base};
}

std::string AttemptsText(const v1::ComparedSubject& subject) {
  std::string text;
  for (int first = 0; first < subject.attempts_size();) {
    int last = first;
    while (last + 1 < subject.attempts_size() &&
           subject.attempts(last + 1) == subject.attempts(last) + 1) {
      ++last;
    }
    absl::StrAppend(&text, text.empty() ? "" : ", ", subject.attempts(first));
    if (last > first) absl::StrAppend(&text, "..", subject.attempts(last));
    first = last + 1;
  }
  return text;
}

std::vector<Curve> CurvesOf(const Comparison& comparison, const v1::CompareMetric& metric) {
  std::vector<Curve> curves;
  for (size_t i = 0; i < comparison.names.size(); ++i) {
    const v1::ComparedColumn& column = metric.columns(static_cast<int>(i));
    Curve& curve = curves.emplace_back();
    curve.name = comparison.names[i];
    for (int row = 0; row < metric.positions_size(); ++row) {
      if (column.counts(row) == 0) continue;
      curve.points.push_back({static_cast<double>(metric.positions(row)), column.min(row),
                              column.avg(row), column.max(row), column.counts(row),
                              column.non_finite(row)});
    }
  }
  return curves;
}

std::string PercentText(double fraction) {
  if (std::isnan(fraction)) return "";
  if (fraction == 0) return "0 %";
  // Beyond a factor of a hundred nobody reads decimals.
  const double percent = 100 * fraction;
  if (std::fabs(percent) >= 1e4 || std::fabs(percent) < 0.01) {
    return absl::StrFormat("%+.1e %%", percent);
  }
  return absl::StrFormat("%+.*f %%", std::fabs(percent) < 1 ? 3 : 2, percent);
}

std::string SignedText(double value) {
  if (std::isnan(value)) return "";
  return absl::StrCat(value > 0 ? "+" : "", ReadableNumber(value));
}

const char* const kComparisonJsonHelp =
    R"("by": "step"|"elapsed", "subjects": [{"name", "job", "attempts": [],
  "first_step" or null, "last_step", "first_time", "first_time_unix_ns", "last_time",
  "last_time_unix_ns"}], "attributes": [{"name", "values": []}], "equal_attributes",
  "metrics": [{"metric", "type", "unit", "columns": [{"name", "count", "non_finite", "min", "max",
  "avg", "last", "last_step" or "last_elapsed_ns", "first", "first_step" or "first_elapsed_ns",
  "increase", "rate"; but for the first "shared", "mean_difference", "max_difference",
  "relative_difference"}]}]; of counters and histograms, which count up, "avg" and "max_difference"
  are null and the differences are those of the rate, and of others "increase" and "rate" are null)";

void WriteComparison(JsonWriter& json, const Comparison& comparison, bool with_rows) {
  ComparisonDocument document(json, comparison);
  json.Field("by", comparison.by_step ? "step" : "elapsed");
  json.Key("subjects");
  json.BeginArray();
  for (size_t i = 0; i < comparison.names.size(); ++i) document.Subject(i);
  json.EndArray();
  json.Objects("attributes", comparison.subjects.attributes(), [&](const auto& attribute) {
    json.Field("name", attribute.name());
    json.Field("values", attribute.values());
  });
  json.Field("equal_attributes", comparison.subjects.equal_attributes());
  json.Objects("metrics", comparison.metrics,
               [&](const v1::CompareMetric& metric) { document.Metric(metric, with_rows); });
}

}  // namespace tacho::ctl
