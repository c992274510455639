// A job's index knows its metrics, label names, tasks and attempts, so that the usual questions of
// a page that opens cost no look at series. A store may have millions.
#include "server/promread/explore_answer.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/json_text.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"
#include "server/promread/kept_jobs.h"
#include "server/promread/series_labels.h"
#include "server/promread/step_series.h"

namespace tacho::server::promread {
namespace {

using storage::Matcher;

constexpr absl::string_view kBucket = "_bucket";
constexpr absl::string_view kByLimit = "results truncated due to limit";  // Prometheus' words.
// Entries of the store's report: far more than its limits on metrics let in.
constexpr size_t kWholeReport = 1 << 20;

std::string LeftOut(size_t most, absl::string_view of) {
  return absl::StrCat("the answer has the first ", most, " ", of,
                      ", which is its limit: name a metric, a job or labels in match[]");
}

// Whether it holds for every series: {__name__!=""} is how Grafana asks for everything.
bool HoldsAlways(const Matcher& matcher) {
  if (matcher.label() != kNameLabel && matcher.label() != "job" && matcher.label() != "attempt") {
    return false;
  }
  switch (matcher.op()) {
    case Matcher::Op::kNotEqual:
      return matcher.value().empty();
    case Matcher::Op::kMatches:
      return matcher.value() == ".+" || matcher.value() == ".*";
    default:
      return false;
  }
}

bool AsksForEverything(const ExploreRequest& request) {
  return request.selectors.empty() ||
         std::any_of(request.selectors.begin(), request.selectors.end(), [](const auto& query) {
           return std::all_of(query.matchers.begin(), query.matchers.end(), HoldsAlways);
         });
}

// The metrics of a job; none if it was dropped meanwhile.
absl::StatusOr<std::vector<storage::MetricUse>> MetricsOf(const SelectionWorld& world,
                                                          const std::string& job) {
  TACHO_RETURN_IF_ERROR(world.control.Check());
  auto metrics = world.store.Metrics(job);
  if (absl::IsNotFound(metrics.status())) return std::vector<storage::MetricUse>();
  return metrics;
}

// The name that LabelsOf() gives a label, where any series of the metric may have the others.
std::string NameOfOwn(const storage::MetricUse& use, const std::string& label) {
  constexpr std::array<absl::string_view, 6> kMade = {kNameLabel, "attempt", "host",
                                                      "job",      "metric",  "task"};
  const auto is_in = [](const auto& all, absl::string_view name) {
    return std::find(all.begin(), all.end(), name) != all.end();
  };
  std::string name = label;
  if (!is_in(kMade, name)) return name;
  do {
    name.insert(0, "exported_");
  } while (is_in(use.labels, name));
  return name;
}

// Hosts and tasks, by FindJob().
void AddPlaces(const SelectionWorld& world, const std::string& job, bool names,
               absl::string_view label, EntryList* found) {
  const auto detail = world.store.FindJob(job);
  if (!detail.has_value()) return;
  for (const storage::TaskInfo& task : detail->tasks) {
    if (task.task.has_value() && (names || label == "task")) {
      found->Add(names ? "task" : absl::StrCat(*task.task));
    }
    if (task.host.empty() || !KeepsRows(world.membership, job, task.host)) continue;
    if (names || label == "host") found->Add(names ? "host" : task.host);
  }
}

absl::Status AddNamesOfJob(const SelectionWorld& world, const std::string& job, EntryList* found) {
  TACHO_ASSIGN_OR_RETURN(const auto metrics, MetricsOf(world, job));
  if (metrics.empty()) return absl::OkStatus();
  for (const absl::string_view made :
       {kNameLabel, absl::string_view("attempt"), absl::string_view("job")}) {
    found->Add(made);
  }
  AddPlaces(world, job, true, "", found);
  for (const storage::MetricUse& use : metrics) {
    if (!MetricLabelsOf(use.metric).metric.empty()) found->Add("metric");
    for (const std::string& label : use.labels) found->Add(NameOfOwn(use, label));
  }
  return absl::OkStatus();
}

// Adds the values that a job's index knows; false if it knows none of this label.
absl::StatusOr<bool> AddValuesOfJob(const SelectionWorld& world, const ReadQuery& query,
                                    const std::string& job, absl::string_view label,
                                    EntryList* found) {
  TACHO_RETURN_IF_ERROR(world.control.Check());
  if (label == kNameLabel || label == "metric") {
    TACHO_ASSIGN_OR_RETURN(const auto metrics, MetricsOf(world, job));
    for (const storage::MetricUse& use : metrics) {
      const MetricLabels labels = MetricLabelsOf(use.metric);
      found->Add(label == "metric" ? labels.metric : labels.name);
    }
    if (label == kNameLabel && HasSteps(world.store, job)) found->Add(kStepMetric);
  } else if (label == "job") {
    found->Add(job);
  } else if (label == "attempt") {
    TACHO_ASSIGN_OR_RETURN(const auto attempts, SelectedAttempts(world, query, job));
    for (const uint32_t attempt : attempts) found->Add(absl::StrCat(attempt));
  } else if (label == "host" || label == "task") {
    AddPlaces(world, job, false, label, found);
  } else {
    return false;
  }
  return true;
}

absl::string_view TypeName(storage::MetricType type) {
  switch (type) {
    case storage::MetricType::kCounter:
      return "counter";
    case storage::MetricType::kHistogram:
      return "histogram";
    case storage::MetricType::kGauge:
      return "gauge";
  }
  return "unknown";
}

using Counts = std::map<std::string, uint64_t>;

// [{"name":"loss","value":3},...]: the largest first.
std::string TopList(const Counts& counts, uint64_t top) {
  std::vector<std::pair<std::string, uint64_t>> all(counts.begin(), counts.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (all.size() > top) all.resize(top);
  return absl::StrCat("[",
                      absl::StrJoin(all, ",",
                                    [](std::string* out, const auto& one) {
                                      absl::StrAppend(out, "{\"name\":", JsonString(one.first),
                                                      ",\"value\":", one.second, "}");
                                    }),
                      "]");
}

std::string SeriesJson(const LabelList& labels) {
  return absl::StrCat("{",
                      absl::StrJoin(labels, ",",
                                    [](std::string* out, const auto& label) {
                                      absl::StrAppend(out, JsonString(label.first), ":",
                                                      JsonString(label.second));
                                    }),
                      "}");
}

// By such keys, series have the order of their labels.
std::string SeriesKey(const LabelList& labels) {
  std::string key;
  for (const auto& [name, value] : labels) {
    key.append(name).push_back('\0');
    key.append(value).push_back('\0');
  }
  return key;
}

absl::Status FindLabelNames(const SelectionWorld& world, const ExploreRequest& request,
                            EntryList* found) {
  if (AsksForEverything(request)) {
    for (const std::string& job : SelectedJobs(world, request.everything)) {
      TACHO_RETURN_IF_ERROR(AddNamesOfJob(world, job, found));
    }
    return absl::OkStatus();
  }
  for (const ReadQuery& query : request.selectors) {
    TACHO_RETURN_IF_ERROR(VisitSeries(world, query, [&](const SelectedSeries& one) {
      for (const auto& [name, value] : one.labels) found->Add(name);
      return world.control.Check();
    }));
  }
  return absl::OkStatus();
}

absl::Status FindLabelValues(const SelectionWorld& world, const ListQuestion& question,
                             EntryList* found) {
  const ExploreRequest& request = question.request;
  std::vector<ReadQuery> queries = request.selectors;
  if (AsksForEverything(request)) {
    bool known = true;
    for (const std::string& job : SelectedJobs(world, request.everything)) {
      TACHO_ASSIGN_OR_RETURN(known,
                             AddValuesOfJob(world, request.everything, job, question.label, found));
      if (!known) break;
    }
    if (known) return absl::OkStatus();
    queries = {request.everything};
  }
  // The index then leaves out series without the label.
  TACHO_ASSIGN_OR_RETURN(const Matcher has_label,
                         Matcher::Create(question.label, Matcher::Op::kNotEqual, ""));
  for (ReadQuery& query : queries) {
    query.matchers.push_back(has_label);
    TACHO_RETURN_IF_ERROR(VisitSeries(world, query, [&](const SelectedSeries& one) {
      found->Add(ValueOf(one.labels, question.label));
      return world.control.Check();
    }));
  }
  return absl::OkStatus();
}

absl::Status FindSeries(const SelectionWorld& world, const ListQuestion& question,
                        EntryList* found) {
  if (question.request.selectors.empty()) {
    return errors::ErrorOf(
        errors::Failure::kMalformed,
        "match[]: a request for series needs one at least, as match[]={job=\"x\"}");
  }
  for (const ReadQuery& query : question.request.selectors) {
    const auto add = [&](const SelectedSeries& one) {
      found->Add(SeriesKey(one.labels), SeriesJson(one.labels));
      absl::Status few = CheckEntries(world, question, *found);
      return few.ok() ? world.control.Check() : few;
    };
    TACHO_RETURN_IF_ERROR(VisitSeries(world, query, add));
  }
  return absl::OkStatus();
}

absl::Status FindMetadata(const SelectionWorld& world, const ExploreRequest& request,
                          EntryList* found) {
  for (const std::string& job : SelectedJobs(world, request.everything)) {
    TACHO_ASSIGN_OR_RETURN(auto metrics, MetricsOf(world, job));
    if (HasSteps(world.store, job)) {
      const storage::MetricType gauge = storage::MetricType::kGauge;
      metrics.push_back({{std::string(kStepMetric), gauge, "", std::string(kStepHelp)}, 0, {}});
    }
    for (const storage::MetricUse& use : metrics) {
      std::string name = MetricLabelsOf(use.metric).name;
      if (use.metric.type == storage::MetricType::kHistogram && absl::EndsWith(name, kBucket)) {
        name.resize(name.size() - kBucket.size());
      }
      if (!request.metric.empty() && name != request.metric) continue;
      found->Add(name, absl::StrCat("{\"type\":\"", TypeName(use.metric.type),
                                    "\",\"help\":", JsonString(use.metric.help),
                                    ",\"unit\":", JsonString(use.metric.unit), "}"));
    }
  }
  return absl::OkStatus();
}

ExploreAnswer NamesAnswer(const EntryList& found, uint64_t limit) {
  ExploreAnswer answer;
  if (found.more()) {
    answer.warnings.push_back(limit == found.most() ? std::string(kByLimit)
                                                    : LeftOut(found.most(), "names or values"));
  }
  answer.data = "[";
  for (const auto& [name, unused] : found.entries()) {
    if (answer.data.size() >= kMaxDataBytes) {
      answer.warnings.push_back(LeftOut(kMaxDataBytes >> 20, "MiB of names or values"));
      break;
    }
    absl::StrAppend(&answer.data, answer.data.size() == 1 ? "" : ",", JsonString(name));
  }
  answer.data.push_back(']');
  return answer;
}

ExploreAnswer SeriesAnswer(const EntryList& found, uint64_t limit) {
  ExploreAnswer answer;
  answer.data = "[";
  uint64_t count = 0;
  for (const auto& [key, json] : found.entries()) {
    if (limit != 0 && count == limit) {
      answer.warnings.emplace_back(kByLimit);
      break;
    }
    if (answer.data.size() >= kMaxDataBytes) {
      answer.warnings.push_back(LeftOut(kMaxDataBytes >> 20, "MiB of series"));
      break;
    }
    absl::StrAppend(&answer.data, count++ == 0 ? "" : ",", json);
  }
  answer.data.push_back(']');
  return answer;
}

ExploreAnswer MetadataAnswer(const EntryList& found, const ExploreRequest& request) {
  ExploreAnswer answer;
  if (found.more()) answer.warnings.push_back(LeftOut(kMaxDataBytes >> 20, "MiB of metrics"));
  answer.data = "{";
  uint64_t families = 0;
  const std::string* family = nullptr;
  uint64_t in_family = 0;
  for (const auto& [name, definition] : found.entries()) {
    if (family == nullptr || *family != name) {
      if (request.limit != 0 && families == request.limit) break;
      absl::StrAppend(&answer.data, families++ == 0 ? "" : "],", JsonString(name), ":[");
      family = &name;
      in_family = 0;
    }
    if (request.limit_per_metric != 0 && in_family == request.limit_per_metric) continue;
    absl::StrAppend(&answer.data, in_family++ == 0 ? "" : ",", definition);
  }
  answer.data.append(families == 0 ? "}" : "]}");
  return answer;
}

}  // namespace

EntryList ListFor(const ListQuestion& question) {
  switch (question.kind) {
    case ListKind::kLabelNames:
    case ListKind::kLabelValues: {
      const uint64_t limit = question.request.limit;
      return EntryList(limit == 0 ? kMaxListed : std::min<uint64_t>(limit, kMaxListed));
    }
    case ListKind::kSeries:
      break;
    case ListKind::kMetadata:
      return EntryList(SIZE_MAX, kMaxDataBytes);
  }
  return EntryList();
}

absl::StatusOr<EntryList> FindEntries(const SelectionWorld& world, const ListQuestion& question) {
  EntryList found = ListFor(question);
  absl::Status status;
  switch (question.kind) {
    case ListKind::kLabelNames:
      status = FindLabelNames(world, question.request, &found);
      break;
    case ListKind::kLabelValues:
      status = FindLabelValues(world, question, &found);
      break;
    case ListKind::kSeries:
      status = FindSeries(world, question, &found);
      break;
    case ListKind::kMetadata:
      status = FindMetadata(world, question.request, &found);
      break;
  }
  if (!status.ok()) return status;
  return found;
}

absl::Status CheckEntries(const SelectionWorld& world, const ListQuestion& question,
                          const EntryList& entries) {
  if (question.kind != ListKind::kSeries || entries.entries().size() <= world.max_series) {
    return absl::OkStatus();
  }
  return TooManySeries(world.max_series);
}

ExploreAnswer AnswerOf(const ListQuestion& question, const EntryList& entries) {
  switch (question.kind) {
    case ListKind::kLabelNames:
    case ListKind::kLabelValues:
      break;
    case ListKind::kSeries:
      return SeriesAnswer(entries, question.request.limit);
    case ListKind::kMetadata:
      return MetadataAnswer(entries, question.request);
  }
  return NamesAnswer(entries, question.request.limit);
}

absl::StatusOr<ExploreAnswer> DescribeStore(const SelectionWorld& world,
                                            const ExploreRequest& request) {
  if (request.limit > kMaxTop) {
    return errors::ErrorOf(errors::Failure::kMalformed,
                           absl::StrCat("limit: it may be ", kMaxTop, " at most"));
  }
  const uint64_t top = request.limit == 0 ? kDefaultTop : request.limit;
  storage::Extent extent;
  uint64_t series = 0;
  Counts labels;
  Counts pairs;
  for (const storage::JobSummary& job : world.store.Jobs()) {
    if (!world.rights.MayTouch(job.name) || !MayKeepJob(world.membership, job.name)) continue;
    extent.Include(job.extent);
    series += job.series;
    pairs[absl::StrCat("job=", job.name)] = job.series;
    ++labels["job"];
    for (const auto& [label, values] :
         {std::pair("attempt", job.attempts), {"host", job.hosts}, {"task", job.tasks}}) {
      if (values > 0) labels[label] = std::max<uint64_t>(labels[label], values);
    }
  }
  TACHO_ASSIGN_OR_RETURN(const auto report, world.store.Cardinality("", kWholeReport));
  Counts metrics;
  uint64_t left_out = 0;
  for (const auto& job : report.jobs) {
    if (!world.rights.MayTouch(job.name) || !MayKeepJob(world.membership, job.name)) continue;
    if (!job.in_memory) {
      ++left_out;
      continue;
    }
    TACHO_ASSIGN_OR_RETURN(const auto uses, MetricsOf(world, job.name));
    for (const storage::MetricUse& use : uses) {
      metrics[MetricLabelsOf(use.metric).name] += use.series;
    }
  }
  for (const auto& use : report.labels) {
    if (!world.rights.MayTouch(use.job)) continue;
    labels[use.name] = std::max(labels[use.name], use.values);
  }
  for (const auto& [name, count] : metrics) pairs[absl::StrCat(kNameLabel, "=", name)] = count;
  if (!metrics.empty()) labels[std::string(kNameLabel)] = metrics.size();
  uint64_t label_pairs = 0;
  for (const auto& [name, count] : labels) label_pairs += count;
  const bool rows = extent.first_time_ns <= extent.last_time_ns;
  ExploreAnswer answer;
  answer.data = absl::StrCat(
      "{\"headStats\":{\"numSeries\":", series, ",\"numLabelPairs\":", label_pairs,
      ",\"chunkCount\":0,\"minTime\":", rows ? extent.first_time_ns / 1'000'000 : 0,
      ",\"maxTime\":", rows ? extent.last_time_ns / 1'000'000 : 0,
      "},\"seriesCountByMetricName\":", TopList(metrics, top),
      ",\"labelValueCountByLabelName\":", TopList(labels, top),
      ",\"memoryInBytesByLabelName\":[],\"seriesCountByLabelValuePair\":", TopList(pairs, top),
      "}");
  if (left_out > 0) {
    answer.warnings.push_back(absl::StrCat(left_out,
                                           " jobs are not in memory: the lists have them "
                                           "only as values of the label job"));
  }
  return answer;
}

}  // namespace tacho::server::promread
