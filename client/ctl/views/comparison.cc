#include "client/ctl/views/comparison.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/line/query_options.h"
#include "client/ctl/text/number_format.h"
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

}  // namespace

const std::vector<FlagSpec>& CompareFlags() {
  static const auto* const flags = new std::vector<FlagSpec>{
      {.name = "by",
       .placeholder = "AXIS",
       .help = "Align by step, or by the time elapsed since each began. Default: step.",
       .choices = {"step", "elapsed"}},
      {.name = "metric",
       .placeholder = "NAME",
       .help = "Only this metric. Repeat for more. Default: all that at least two have.",
       .repeated = true},
      MatchFlag(),
      StepsFlag(),
      AttemptsFlag("effective"),
      {.name = "points",
       .letter = 'n',
       .placeholder = "N",
       .help = "Compare at most N places along the axis. Default: 200."}};
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
    return absl::InvalidArgumentError("--steps and --by elapsed contradict; give one");
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

}  // namespace tacho::ctl
