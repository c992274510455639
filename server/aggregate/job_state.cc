// Decides once for each layout which column goes into which cell by which rule. Regular
// expressions, labels and names are looked at here and never in a scrape that finds no new layout.
#include "server/aggregate/job_state.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/aggregate/exposition_name.h"

namespace tacho::server::aggregate {
namespace {

using storage::MetricType;

constexpr char kBound[] = "le";

// One line; that is all that the format knows to escape in a help text.
std::string HelpOf(const storage::Metric& metric) {
  std::string help =
      metric.help.empty() ? absl::StrCat("Metric ", metric.name, " of a job.") : metric.help;
  if (!metric.unit.empty()) absl::StrAppend(&help, " Unit: ", metric.unit, ".");
  return absl::StrReplaceAll(help, {{"\\", "\\\\"}, {"\n", "\\n"}});
}

std::string LabelText(absl::string_view name, absl::string_view value) {
  return absl::StrCat(",", name, "=\"", EscapeLabelValue(value), "\"");
}

// The series of one histogram have the same text.
std::string HistogramKey(const storage::Series& series) {
  std::string key = series.metric->name;
  for (const auto& [name, value] : series.labels->labels) {
    if (name != kBound) absl::StrAppend(&key, "\n", name, "=", value);
  }
  return key;
}

const char* TypeOf(Cell::Kind kind) {
  if (kind == Cell::Kind::kCounter) return "counter";
  return kind == Cell::Kind::kHistogram ? "histogram" : "gauge";
}

Cell::Kind KindOf(MetricType type) {
  if (type == MetricType::kCounter) return Cell::Kind::kCounter;
  return type == MetricType::kHistogram ? Cell::Kind::kHistogram : Cell::Kind::kGauge;
}

// Counts the lines of a cell that is shown.
size_t LinesOf(const JobState& state, const Cell& cell) {
  if (cell.kind == Cell::Kind::kRate) return 1;
  if (cell.kind == Cell::Kind::kHistogram) return cell.buckets.size() + 2;
  return StatsOf(state, cell).size();
}

}  // namespace

const std::vector<AggregateStat>& StatsOf(const JobState& state, const Cell& cell) {
  const AggregateRule& rule = state.rules->rules[cell.rule];
  return cell.kind == Cell::Kind::kCounter ? rule.counter_stats : rule.gauge_stats;
}

std::string EscapeLabelValue(absl::string_view value) {
  return absl::StrReplaceAll(value, {{"\\", "\\\\"}, {"\n", "\\n"}, {"\"", "\\\""}});
}

JobState::JobState(storage::JobId job, absl::string_view job_name, const AggregateRules& all_rules)
    : id(job), name(job_name), rules(&all_rules) {}

const std::vector<uint32_t>& JobState::RulesOfMetric(const storage::Series& series) {
  const auto [found, is_new] = rules_of_.try_emplace(series.metric_id);
  if (!is_new) return found->second;
  for (uint32_t i = 0; i < rules->rules.size(); ++i) {
    const AggregateRule& rule = rules->rules[i];
    if (rule.MatchesJob(name) && rule.MatchesMetric(series.metric->name)) {
      found->second.push_back(i);
    }
  }
  return found->second;
}

uint32_t JobState::AddLine(Cell cell, ColumnTargets* targets) {
  const auto [line, is_new] =
      cell_of_line_.try_emplace(absl::StrCat(cell.family->name, "{", *cell.labels, cell.tail),
                                static_cast<uint32_t>(cells.size()));
  if (!is_new) {
    const Cell& there = cells[line->second];
    // Chips may be reported both under their job and under that of the hosts: they are one group.
    const bool joins = there.metric == cell.metric && there.kind == cell.kind &&
                       rules->rules[there.rule].to_jobs != rules->rules[cell.rule].to_jobs;
    if (joins) return line->second;
    ++targets->conflicts;
    return kNoCell;
  }
  cells.push_back(std::move(cell));
  cells_changed = true;
  return line->second;
}

uint32_t JobState::AddCell(const storage::Series& series, uint32_t rule_index,
                           const std::string& group_labels, ColumnTargets* targets) {
  const AggregateRule& rule = rules->rules[rule_index];
  const storage::Metric& metric = *series.metric;
  Cell cell;
  cell.kind = KindOf(metric.type);
  cell.rule = rule_index;
  cell.metric = metric.name;
  const auto labels =
      labels_.insert(absl::StrCat("job=\"", EscapeLabelValue(name), "\"", group_labels)).first;
  cell.labels = &*labels;
  const ExpositionName exposition = ExpositionNameOf(rule.rename, metric.name, metric.type);
  if (!exposition.metric_label.empty()) cell.tail = LabelText("metric", exposition.metric_label);
  const auto family = [&](std::string family_name) {
    return std::make_shared<CellFamily>(
        CellFamily{std::move(family_name), TypeOf(cell.kind), HelpOf(metric)});
  };
  cell.family = family(exposition.family);
  Cell rate = cell;
  const uint32_t added = AddLine(std::move(cell), targets);
  if (added != kNoCell && rate.kind == Cell::Kind::kCounter && rule.counter_rate) {
    rate.kind = Cell::Kind::kRate;
    rate.counter = added;
    rate.family = std::make_shared<CellFamily>(
        CellFamily{RateFamily(exposition.family), "gauge",
                   absl::StrCat("Growth per second of: ", HelpOf(metric))});
    AddLine(std::move(rate), targets);
  }
  return added;
}

uint32_t JobState::FindOrAddCell(const storage::Series& series, uint32_t rule_index,
                                 ColumnTargets* targets) {
  const AggregateRule& rule = rules->rules[rule_index];
  const bool plain = rule.by.empty() && series.job_id == id;
  if (plain) {
    const auto found = plain_cell_of_.find({rule_index, series.metric_id});
    if (found != plain_cell_of_.end()) return found->second;
  }
  std::string group;
  for (const std::string& label : rule.by) {
    group += LabelText(label, AggregateLabel(series, label));
  }
  std::string key = absl::StrCat(rule_index, "\n", series.metric->name, "\n", group);
  auto found = cell_of_.find(key);
  if (found == cell_of_.end()) {
    uint32_t& groups = groups_[{rule_index, series.metric->name}];
    if (groups >= rule.max_groups) {
      ++targets->without_group;
      return kNoCell;
    }
    const uint32_t cell = AddCell(series, rule_index, group, targets);
    if (cell == kNoCell) return kNoCell;
    ++groups;
    found = cell_of_.emplace(std::move(key), cell).first;
  }
  if (plain) plain_cell_of_[{rule_index, series.metric_id}] = found->second;
  return found->second;
}

void JobState::AddBuckets(const storage::Layout& layout, const LayoutPlan& plan,
                          const std::vector<uint32_t>& columns, ColumnTargets* targets) {
  // The buckets of each histogram, ascending.
  std::vector<std::tuple<std::string, double, uint32_t>> found;  // Key, bound, counter.
  for (uint32_t i = 0; i < plan.counters.size(); ++i) {
    const uint32_t column = plan.counters[i].column;
    const storage::Series& series = *layout.series[column];
    double bound = 0;
    if (series.metric->type != MetricType::kHistogram) continue;
    if (!std::binary_search(columns.begin(), columns.end(), column)) continue;
    const bool is_number = absl::SimpleAtod(series.labels->Find(kBound), &bound);
    if (!is_number || std::isnan(bound)) continue;
    found.emplace_back(HistogramKey(series), bound, i);
  }
  std::sort(found.begin(), found.end());
  const std::string* key_above = nullptr;
  for (size_t i = found.size(); i-- > 0;) {
    const double bound = std::get<1>(found[i]);
    const uint32_t counter = std::get<2>(found[i]);
    const storage::Series& series = *layout.series[plan.counters[counter].column];
    const uint32_t cell = FindOrAddCell(series, targets->rule, targets);
    if (cell == kNoCell) continue;
    std::vector<Cell::Bucket>& buckets = cells[cell].buckets;
    auto bucket = std::find_if(buckets.begin(), buckets.end(),
                               [bound](const auto& b) { return b.bound == bound; });
    if (bucket == buckets.end()) {
      bucket = buckets.insert(buckets.end(), {bound, 0});
      cells_changed = true;
    }
    const bool has_next = key_above != nullptr && *key_above == std::get<0>(found[i]);
    const uint32_t next = has_next ? targets->buckets.back().bucket : kNoCell;
    targets->buckets.push_back(
        {counter, cell, static_cast<uint32_t>(bucket - buckets.begin()), next});
    targets->used = true;
    key_above = &std::get<0>(found[i]);
  }
}

ColumnTargets JobState::MakeTargets(const storage::Layout& layout, const LayoutPlan& plan,
                                    uint32_t rule, const std::vector<uint32_t>& columns) {
  ColumnTargets targets;
  targets.rule = rule;
  ColumnCells cells_of;
  size_t counter = 0;
  for (const uint32_t column : columns) {
    const storage::Series& series = *layout.series[column];
    if (series.metric->type == MetricType::kHistogram) continue;
    const uint32_t cell = FindOrAddCell(series, rule, &targets);
    if (cell == kNoCell) continue;
    cells_of.values.push_back({column, cell});
    while (counter < plan.counters.size() && plan.counters[counter].column < column) ++counter;
    if (counter < plan.counters.size() && plan.counters[counter].column == column) {
      cells_of.counters.push_back({static_cast<uint32_t>(counter), cell});
    }
  }
  targets.used = !cells_of.values.empty();
  targets.cells = &*column_cells_.insert(std::move(cells_of)).first;
  AddBuckets(layout, plan, columns, &targets);
  return targets;
}

void JobState::BriefCells() {
  briefs.clear();
  briefs.reserve(cells.size());
  for (const Cell& cell : cells) {
    CellBrief& brief = briefs.emplace_back();
    brief.rule = cell.rule;
    brief.conflicts = cell.conflicts;
    if (cell.kind == Cell::Kind::kRate) brief.counter = cell.counter;
    if (!cell.conflicts) brief.lines = static_cast<uint32_t>(LinesOf(*this, cell));
  }
  cells_changed = false;
}

void JobState::FindRules(const storage::Series& series, std::vector<uint32_t>* found) {
  found->clear();
  bool is_configured = false;
  for (const uint32_t rule : RulesOfMetric(series)) {
    if (rule >= rules->configured && is_configured) return;
    const bool matches = rules->rules[rule].MatchesLabels(series);
    if (matches && !rules->rules[rule].keep) return;
    // This holds for rules with other labels too: the rest of the metric would make the same lines.
    is_configured |= rule < rules->configured && rules->rules[rule].keep;
    if (matches) found->push_back(rule);
  }
}

void JobState::PlanLayout(const storage::Layout& layout, LayoutPlan* plan) {
  std::vector<std::vector<uint32_t>> columns_of(rules->rules.size());
  std::vector<uint32_t> found;
  for (uint32_t column = 0; column < layout.series.size(); ++column) {
    const storage::Series& series = *layout.series[column];
    highest_series = std::max(highest_series, series.id);
    FindRules(series, &found);
    for (const uint32_t rule : found) columns_of[rule].push_back(column);
  }
  for (uint32_t rule = 0; rule < columns_of.size(); ++rule) {
    if (columns_of[rule].empty()) continue;
    if (rules->rules[rule].to_jobs) {
      plan->to_jobs.emplace_back(rule, std::move(columns_of[rule]));
    } else {
      plan->own.push_back(MakeTargets(layout, *plan, rule, columns_of[rule]));
    }
  }
}

}  // namespace tacho::server::aggregate
