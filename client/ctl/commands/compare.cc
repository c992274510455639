// 'compare': tables of figures for people; JSON and CSV with every place for programs.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/ctl/call/call_error.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"
#include "client/ctl/views/comparison.h"

namespace tacho::ctl {
namespace {

std::string StepsText(const v1::ComparedSubject& subject) {
  if (!subject.has_first_step()) return "";
  return absl::StrCat(subject.first_step(), "..", subject.last_step());
}

void PrintSubjects(const Environment& env, const Comparison& comparison) {
  const std::string zone = ZoneName(env.now, env.zone);
  Table table({{"JOB", Align::kLeft, true},
               {"ATTEMPTS", Align::kRight, true},
               {"STEPS", Align::kRight, false},
               {absl::StrCat("FIRST SEEN (", zone, ")"), Align::kLeft, false},
               {"FOR", Align::kRight, false}});
  for (size_t i = 0; i < comparison.names.size(); ++i) {
    const v1::ComparedSubject& subject = comparison.subjects.subjects(static_cast<int>(i));
    const bool seen = subject.has_first_unix_ns();
    table.AddRow({comparison.names[i], AttemptsText(subject), StepsText(subject),
                  seen ? ReadableTime(subject.first_unix_ns(), env.zone) : "no samples",
                  seen ? ReadableDuration(
                             absl::Nanoseconds(subject.last_unix_ns() - subject.first_unix_ns()))
                       : ""});
  }
  table.Print(*env.out, env.width, env.unicode);
}

void PrintAttributes(const Environment& env, const Comparison& comparison) {
  const v1::CompareSubjects& subjects = comparison.subjects;
  if (subjects.attributes().empty()) {
    if (subjects.equal_attributes() > 0) {
      *env.out << "\nAttributes: all " << subjects.equal_attributes() << " are equal\n";
    }
    return;
  }
  std::vector<TableColumn> columns = {{"ATTRIBUTE", Align::kLeft, true}};
  for (const std::string& name : comparison.names) columns.push_back({name, Align::kLeft, true});
  Table table(std::move(columns));
  for (const v1::AttributeDifference& attribute : subjects.attributes()) {
    std::vector<std::string> cells = {attribute.name()};
    cells.insert(cells.end(), attribute.values().begin(), attribute.values().end());
    table.AddRow(std::move(cells));
  }
  *env.out << '\n';
  table.Print(*env.out, env.width, env.unicode);
  if (subjects.equal_attributes() > 0) {
    *env.out << "(" << subjects.equal_attributes() << " more "
             << (subjects.equal_attributes() == 1 ? "is" : "are") << " equal)\n";
  }
}

struct SummaryColumn {
  TableColumn column;
  // The cells of one run's figures; `index` is the run's place.
  std::string (*text)(const v1::CompareMetric& metric, size_t index);
  int worth;  // Where the terminal is narrow, columns of the lowest worth are left out first.
  bool is_difference = false;  // Has nothing to say of the first job.
  bool is_of_counts = false;   // Is there only if a metric counts.
};

const v1::ComparedSummary& SummaryOf(const v1::CompareMetric& metric, size_t index) {
  return metric.columns(static_cast<int>(index)).summary();
}

template <double (v1::ComparedSummary::*kFigure)() const>
std::string FigureText(const v1::CompareMetric& metric, size_t index) {
  return ReadableNumber((SummaryOf(metric, index).*kFigure)());
}

// A count has no average.
template <double (v1::ComparedSummary::*kFigure)() const>
std::string UncountedText(const v1::CompareMetric& metric, size_t index) {
  return IsCount(metric.metric()) ? "" : FigureText<kFigure>(metric, index);
}

std::string RateText(const v1::CompareMetric& metric, size_t index) {
  const v1::ComparedSummary& summary = SummaryOf(metric, index);
  return summary.has_rate() ? ReadableNumber(summary.rate()) : "";
}

std::string DifferenceText(const v1::CompareMetric& metric, size_t index) {
  const Change change = ChangeOf(metric, index);
  return change.known ? SignedText(change.difference) : "";
}

std::string RelativeText(const v1::CompareMetric& metric, size_t index) {
  const Change change = ChangeOf(metric, index);
  return change.known ? PercentText(change.relative) : "";
}

std::string LargestText(const v1::CompareMetric& metric, size_t index) {
  const bool shares = SummaryOf(metric, index).shared() > 0;
  return shares ? UncountedText<&v1::ComparedSummary::max_difference>(metric, index) : "";
}

std::string SharedText(const v1::CompareMetric& metric, size_t index) {
  const uint64_t shared = SummaryOf(metric, index).shared();
  return shared > 0 ? absl::StrCat(shared) : "";
}

std::string NonFiniteText(const v1::CompareMetric& metric, size_t index) {
  const uint64_t non_finite = SummaryOf(metric, index).non_finite();
  return non_finite > 0 ? absl::StrCat(non_finite) : "";
}

const std::vector<SummaryColumn>& SummaryColumns() {
  using Summary = v1::ComparedSummary;
  static const auto* const columns =
      new std::vector<SummaryColumn>{{{"AVG", Align::kRight}, UncountedText<&Summary::avg>, 8},
                                     {{"RATE/S", Align::kRight}, RateText, 8, false, true},
                                     {{"LAST", Align::kRight}, FigureText<&Summary::last>, 6},
                                     {{"MIN", Align::kRight}, FigureText<&Summary::min>, 4},
                                     {{"MAX", Align::kRight}, FigureText<&Summary::max>, 3},
                                     {{"DIFFERENCE", Align::kRight}, DifferenceText, 7, true},
                                     {{"CHANGE", Align::kRight}, RelativeText, 9, true},
                                     {{"LARGEST", Align::kRight}, LargestText, 2, true},
                                     {{"SHARED", Align::kRight}, SharedText, 1, true},
                                     {{"NON-FINITE", Align::kRight}, NonFiniteText, 5}};
  return *columns;
}

Table MetricTable(const Comparison& comparison, int least_worth) {
  const bool counts =
      std::any_of(comparison.metrics.begin(), comparison.metrics.end(),
                  [](const v1::CompareMetric& metric) { return IsCount(metric.metric()); });
  std::vector<SummaryColumn> shown;
  for (const SummaryColumn& one : SummaryColumns()) {
    if (one.worth >= least_worth && (counts || !one.is_of_counts)) shown.push_back(one);
  }
  std::vector<TableColumn> columns = {{"METRIC", Align::kLeft, true}, {"JOB", Align::kLeft, true}};
  for (const SummaryColumn& one : shown) columns.push_back(one.column);
  Table table(std::move(columns));
  for (const v1::CompareMetric& metric : comparison.metrics) {
    for (size_t i = 0; i < comparison.names.size(); ++i) {
      std::vector<std::string> cells = {metric.metric().name(), comparison.names[i]};
      for (const SummaryColumn& one : shown) {
        const bool nothing = SummaryOf(metric, i).count() == 0 || (one.is_difference && i == 0);
        cells.push_back(nothing ? "" : one.text(metric, i));
      }
      table.AddRow(std::move(cells));
    }
  }
  return table;
}

// The width of the table when its names are as short as they may become.
size_t NarrowestWidth(const Comparison& comparison, const Table& table) {
  size_t metric = 6;
  size_t name = 3;
  for (const v1::CompareMetric& one : comparison.metrics) {
    metric = std::max(metric, DisplayWidth(one.metric().name()));
  }
  for (const std::string& one : comparison.names) name = std::max(name, DisplayWidth(one));
  const auto saved = [](size_t width) { return width - std::min(width, Table::kNarrowest); };
  return table.Width() - saved(metric) - saved(name);
}

void PrintMetrics(const Environment& env, const Comparison& comparison) {
  constexpr int kIndispensable = 9;
  int least_worth = 1;
  Table table = MetricTable(comparison, least_worth);
  while (env.width > 0 && least_worth < kIndispensable &&
         NarrowestWidth(comparison, table) > env.width) {
    table = MetricTable(comparison, ++least_worth);
  }
  *env.out << '\n';
  table.Print(*env.out, env.width, env.unicode);
  if (least_worth > 1) *env.out << "\nMore figures: a wider terminal, or -o csv\n";
}

void WriteSummaryCsv(std::ostream& out, const Comparison& comparison) {
  out << CsvLine({"metric", "unit", "job", "count", "non_finite", "min", "max", "avg", "last",
                  comparison.by_step ? "last_step" : "last_elapsed_ns", "shared", "mean_difference",
                  "max_difference", "relative_difference", "first",
                  comparison.by_step ? "first_step" : "first_elapsed_ns", "increase", "rate"});
  for (const v1::CompareMetric& metric : comparison.metrics) {
    for (size_t i = 0; i < comparison.names.size(); ++i) {
      const v1::ComparedSummary& summary = SummaryOf(metric, i);
      const bool is_count = IsCount(metric.metric());
      std::vector<std::string> fields = {metric.metric().name(),
                                         metric.metric().unit(),
                                         comparison.names[i],
                                         absl::StrCat(summary.count()),
                                         absl::StrCat(summary.non_finite()),
                                         ExactNumber(summary.min()),
                                         ExactNumber(summary.max()),
                                         is_count ? "" : ExactNumber(summary.avg()),
                                         ExactNumber(summary.last()),
                                         absl::StrCat(summary.last_position())};
      if (i == 0) {
        fields.resize(fields.size() + 4);
      } else {
        const Change change = ChangeOf(metric, i);
        fields.push_back(absl::StrCat(summary.shared()));
        fields.push_back(ExactNumber(change.difference));
        fields.push_back(is_count ? "" : ExactNumber(summary.max_difference()));
        fields.push_back(ExactNumber(change.relative));
      }
      fields.push_back(ExactNumber(summary.first()));
      fields.push_back(absl::StrCat(summary.first_position()));
      fields.push_back(summary.has_increase() ? ExactNumber(summary.increase()) : "");
      fields.push_back(summary.has_rate() ? ExactNumber(summary.rate()) : "");
      out << CsvLine(fields);
    }
  }
}

void WriteRowsCsv(std::ostream& out, const Comparison& comparison) {
  out << CsvLine({"metric", comparison.by_step ? "step" : "elapsed_ns", "job", "avg", "min", "max",
                  "count", "non_finite", "difference"});
  for (const v1::CompareMetric& metric : comparison.metrics) {
    for (int row = 0; row < metric.positions_size(); ++row) {
      for (size_t i = 0; i < comparison.names.size(); ++i) {
        const v1::ComparedColumn& column = metric.columns(static_cast<int>(i));
        if (column.counts(row) == 0) continue;
        out << CsvLine({metric.metric().name(), absl::StrCat(metric.positions(row)),
                        comparison.names[i], ExactNumber(column.avg(row)),
                        ExactNumber(column.min(row)), ExactNumber(column.max(row)),
                        absl::StrCat(column.counts(row)), absl::StrCat(column.non_finite(row)),
                        column.difference().empty() ? "" : ExactNumber(column.difference(row))});
      }
    }
  }
}

void Show(const Invocation& invocation, const Comparison& comparison) {
  std::ostream& out = *invocation.env.out;
  const bool rows = invocation.args.Has("rows");
  if (invocation.common.format == Format::kJson) {
    JsonWriter json(out);
    json.BeginObject();
    WriteComparison(json, comparison, rows);
    json.EndObject();
    return;
  }
  if (invocation.common.format == Format::kCsv) {
    return rows ? WriteRowsCsv(out, comparison) : WriteSummaryCsv(out, comparison);
  }
  PrintSubjects(invocation.env, comparison);
  PrintAttributes(invocation.env, comparison);
  if (!comparison.metrics.empty()) PrintMetrics(invocation.env, comparison);
}

int RunCompare(const Invocation& invocation) {
  std::vector<SubjectName> subjects;
  for (const std::string& operand : invocation.args.positionals()) {
    subjects.push_back(ParseSubject(operand));
  }
  if (invocation.args.Has("rows") && invocation.common.format == Format::kTable) {
    return UsageError(invocation.env, "compare",
                      "--rows needs -o csv or -o json; to draw curves: tachoctl plot");
  }
  const auto request = ParseCompareRequest(invocation.args, subjects);
  if (!request.ok()) {
    return UsageError(invocation.env, "compare", std::string(request.status().message()));
  }
  QueryClient client = Connect(invocation);
  const absl::StatusOr<Comparison> comparison = ReadComparison(client, *request, subjects);
  if (!comparison.ok()) return CallError(invocation, client, comparison.status());
  Show(invocation, *comparison);
  const bool explained =
      !comparison->missing.empty() &&
      ReportUnknownMetrics(invocation, client, subjects[0].job, comparison->missing);
  if (!comparison->metrics.empty()) return kOk;
  if (explained) return kNothing;
  *invocation.env.err
      << "tachoctl: no metric has samples in two of these runs; widen --metric, --match or "
         "--steps\n";
  return kNothing;
}

}  // namespace

Command CompareCommand() {
  std::vector<FlagSpec> flags = CompareFlags();
  flags.push_back({.name = "rows", .help = "With CSV and JSON: also every place with its values."});
  return {
      .name = "compare",
      .group = CommandGroup::kCompare,
      .operands = "JOB[@ATTEMPT]...",
      .summary = "Compare runs: attributes that differ, and the figures of each metric",
      .details = absl::StrCat(
          R"(The first run is the baseline. The values of all tasks and chips are averaged at each step (or elapsed
time). DIFFERENCE is the mean difference at the places that both runs have (steps, or 200 parts of
the time), CHANGE the same relative to the baseline's average there, LARGEST the largest difference,
SHARED the number of such places. AVG, MIN and MAX are of all finite samples, and LAST is the value at
the last step, whatever --points is: that is only for --rows. Counters, and the observations of
histograms, have no average: RATE/S is their growth per second, of one series on average, and
DIFFERENCE and CHANGE compare that.

Examples:
  tachoctl compare bert-base bert-large
  tachoctl compare bert-base@0 bert-base@1 --metric loss --steps 1000:2000
  tachoctl compare bert-base bert-large --by elapsed --rows -o csv

JSON: {)",
          kComparisonJsonHelp, R"(}
  with --rows each metric has "rows": [{"step" or "elapsed_ns", "avg": [], "min": [], "max": [],
  "difference": []}], one entry a job and null where it has none.)"),
      .flags = std::move(flags),
      .min_operands = 2,
      .max_operands = kAnyNumber,
      .run = RunCompare};
}

}  // namespace tacho::ctl
