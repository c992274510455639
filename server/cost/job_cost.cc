#include "server/cost/job_cost.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/goodput/job_goodput.h"
#include "server/goodput/ledger_spans.h"
#include "storage/model/series_reader.h"

namespace tacho::server::cost {
namespace {

using conditions::Signal;
using Attributes = std::map<std::string, std::string>;

constexpr size_t kMaxAccuracySeries = 10'000;

std::optional<double> Positive(const Attributes& attributes, const char* key) {
  const auto found = attributes.find(key);
  double value = 0;
  if (found == attributes.end() || !absl::SimpleAtod(found->second, &value)) return std::nullopt;
  if (!std::isfinite(value) || value <= 0) return std::nullopt;
  return value;
}

// What an attempt leaves out is as in the one before, and before the first that says it as there.
std::map<uint32_t, Attributes> AttributesOf(const storage::JobDetail& detail) {
  constexpr const char* kKeys[] = {"device_count", "device_kind", "capacity_type",
                                   "tokens_per_step"};
  std::map<uint32_t, Attributes> known;
  Attributes newest;
  for (const storage::AttemptInfo& info : detail.attempts) {
    for (const char* key : kKeys) {
      const auto found = info.attributes.find(key);
      if (found != info.attributes.end()) newest[key] = found->second;
    }
    known[info.attempt] = newest;
  }
  Attributes next;
  for (auto attempt = known.rbegin(); attempt != known.rend(); ++attempt) {
    attempt->second.insert(next.begin(), next.end());
    next = attempt->second;
  }
  return known;
}

// Points between 0 and 1 of one series.
struct Curve {
  std::optional<std::pair<int64_t, double>> first;
  std::optional<double> best;
};

absl::Status ReadCurve(const storage::SeriesPtr& series, double factor, storage::ReadView* view,
                       Curve* curve) {
  const auto reader = view->Read(series, {});
  storage::Chunk chunk;
  for (;;) {
    TACHO_ASSIGN_OR_RETURN(const bool more, reader->Next({}, &chunk));
    if (!more) return absl::OkStatus();
    const auto& columns = chunk.samples().columns;
    for (size_t i = 0; i < columns.size(); ++i) {
      const double value = columns.values[i] * factor;
      if (!(value >= 0 && value <= 1)) continue;
      if (!curve->first.has_value() || columns.times[i] < curve->first->first) {
        curve->first = {columns.times[i], value};
      }
      curve->best = std::max(value, curve->best.value_or(value));
    }
  }
}

// The best metric that means accuracy on held-out data, else in training, of the lowest task.
absl::StatusOr<std::optional<Accuracy>> AccuracyOf(const storage::Store& store,
                                                   const storage::JobDetail& detail,
                                                   const conditions::SignalNames& names,
                                                   const query::QueryControl& control) {
  using Place = std::pair<bool, uint32_t>;  // Training comes after held-out data.
  Place best{true, std::numeric_limits<uint32_t>::max()};
  std::string metric;
  double factor = 1;
  for (const storage::Metric& one : detail.metrics) {
    const auto match = names.Find(one.name);
    if (one.type == storage::MetricType::kHistogram || !match.has_value()) continue;
    if (match->signal != Signal::kEvalAccuracy && match->signal != Signal::kAccuracy) continue;
    const Place place{match->signal == Signal::kAccuracy, match->rank};
    if (!metric.empty() && place >= best) continue;
    best = place;
    metric = one.name;
    factor = match->factor;
  }
  if (metric.empty()) return std::optional<Accuracy>();
  storage::Selector selector;
  selector.job = detail.summary.name;
  selector.metrics = {metric};
  const auto all = store.FindSeries(selector, kMaxAccuracySeries);
  if (absl::IsResourceExhausted(all.status())) return std::optional<Accuracy>();
  if (!all.ok()) return all.status();
  if (all->empty()) return std::optional<Accuracy>();
  const auto task = (*all)[0]->source->task;  // They are by task.
  Curve curve;
  const auto view = store.OpenView(*all);
  for (const storage::SeriesPtr& series : *all) {
    TACHO_RETURN_IF_ERROR(control.Check());
    if (series->source->task != task || series->labels->number != (*all)[0]->labels->number) {
      continue;
    }
    TACHO_RETURN_IF_ERROR(ReadCurve(series, factor, view.get(), &curve));
  }
  if (!curve.best.has_value()) return std::optional<Accuracy>();
  return std::optional<Accuracy>({metric, task, curve.first->second, *curve.best});
}

// Sets the chips of the attempts, asking the agents where attributes leave it open.
absl::Status FillChips(const storage::Store& store, const std::string& job,
                       const std::map<uint32_t, Attributes>& attributes, const HostWindows& hosts,
                       const PowerNames& names, std::vector<AttemptUse>* attempts) {
  std::optional<ChipsSeen> seen;
  for (AttemptUse& use : *attempts) {
    const auto found = attributes.find(use.attempt);
    const Attributes none;
    const Attributes& told = found == attributes.end() ? none : found->second;
    const auto text = [&told](const char* key) {
      const auto entry = told.find(key);
      return entry == told.end() ? std::string() : entry->second;
    };
    use.kind = text("device_kind");
    use.capacity_type = CapacityTypeOf(text("capacity_type"));
    const auto devices = Positive(told, "device_count");
    if (devices.has_value()) use.chips = ChipsOf(use.kind, *devices);
    if (use.chips.has_value() && !use.kind.empty() && !use.capacity_type.empty()) continue;
    if (!seen.has_value()) {
      auto chips = ChipsOnHosts(store, hosts, job, names);
      // Too many to look through: they are not known.
      if (absl::IsResourceExhausted(chips.status())) chips = ChipsSeen();
      if (!chips.ok()) return chips.status();
      seen = *std::move(chips);
    }
    if (!use.chips.has_value() && seen->chips > 0) use.chips = seen->chips;
    if (use.kind.empty()) use.kind = seen->kind;
    if (use.capacity_type.empty() && seen->all_preemptible) use.capacity_type = "spot";
  }
  return absl::OkStatus();
}

absl::Status FillEnergy(const storage::Store& store, const goodput::JobGoodput& goodput,
                        const HostWindows& hosts, const CostSettings& settings,
                        const query::QueryControl& control, CostInputs* inputs) {
  auto energy = EnergyOf(store, goodput, hosts, settings.signals, settings.power, control);
  if (absl::IsResourceExhausted(energy.status()) && control.Check().ok()) {
    inputs->no_energy = absl::StrCat("the job ", settings.power.hosts_job, " has more than ",
                                     kMaxPowerSeries, " series of power, too many to look through");
    return absl::OkStatus();
  }
  if (!energy.ok()) return energy.status();
  inputs->energy = *std::move(energy);
  if (!inputs->energy.has_value()) {
    inputs->no_energy = "no power of the job's chips or hosts is recorded";
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const CostSettings>> CostSettingsOf(
    const config::v1::Collector& config) {
  TACHO_ASSIGN_OR_RETURN(auto prices, PriceList::Create(config.cost()));
  return std::make_shared<const CostSettings>(
      CostSettings{std::move(prices), PowerNamesOf(config.cost()),
                   conditions::ConfiguredNames(config.conditions().signals())});
}

absl::StatusOr<JobCost> CostOf(const storage::Store& store, absl::string_view job,
                               const CostSettings& settings, absl::Time now,
                               const query::QueryControl& control,
                               const goodput::AgentReports& reports) {
  TACHO_ASSIGN_OR_RETURN(const auto goodput,
                         goodput::GoodputOf(store, job, settings.signals, now, control,
                                            goodput::LedgerSpans::kHeldSpans, reports));
  const std::optional<storage::JobDetail> detail = store.FindJob(job);
  if (!detail.has_value()) return absl::NotFoundError(absl::StrCat("no job \"", job, "\""));
  TACHO_ASSIGN_OR_RETURN(const HostWindows hosts, HostWindowsOf(store, goodput));
  CostInputs inputs;
  inputs.total = goodput.total;
  std::vector<goodput::Ledger> ledgers;
  for (const auto& attempt : goodput.attempts) ledgers.push_back(attempt.ledger);
  const auto amounts = WithTimeAfter(ledgers, goodput.total);
  for (size_t i = 0; i < amounts.size(); ++i) {
    inputs.attempts.push_back({.attempt = goodput.attempts[i].attempt, .ns = amounts[i]});
  }
  const auto attributes = AttributesOf(*detail);
  TACHO_RETURN_IF_ERROR(
      FillChips(store, goodput.job, attributes, hosts, settings.power, &inputs.attempts));
  TACHO_RETURN_IF_ERROR(FillEnergy(store, goodput, hosts, settings, control, &inputs));
  inputs.tokens_per_step = goodput.tokens_per_step;
  if (!inputs.tokens_per_step.has_value() && !attributes.empty()) {
    inputs.tokens_per_step = Positive(attributes.rbegin()->second, "tokens_per_step");
  }
  TACHO_ASSIGN_OR_RETURN(inputs.accuracy, AccuracyOf(store, *detail, settings.signals, control));
  JobCost cost = FiguresOf(std::move(inputs), settings.prices);
  cost.job = goodput.job;
  return cost;
}

}  // namespace tacho::server::cost
