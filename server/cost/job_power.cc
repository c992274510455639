// Power is read host by host, so that what a host's own power contains can be compared with that of
// its chips, and so that a large job can be judged by some of its hosts.
#include "server/cost/job_power.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/string_view.h"
#include "proto/base/saturate.h"
#include "proto/base/status_macros.h"
#include "storage/index/matcher.h"
#include "storage/model/series_reader.h"

namespace tacho::server::cost {
namespace {

using conditions::Signal;

constexpr char kHeldMetric[] = "chip_held_info";
constexpr char kChipInfoMetric[] = "chip_info";
constexpr char kHostInfoMetric[] = "host_info";
// A sample so long before and after a window may belong to a piece within it.
constexpr int64_t kMarginNs = 600'000'000'000;

struct PowerSeries {
  storage::SeriesPtr series;
  double factor = 1;
  std::string chip;  // Empty: power of the host.
  std::vector<TimeWindow> windows;
};
struct HostPower {
  std::vector<PowerSeries> chips;
  std::vector<PowerSeries> host;
  double host_share = 1;  // Of the host's power that is the job's.
};

using ByHost = std::map<std::string, HostPower>;
// Windows of a chip, by its label.
using HeldChips = std::map<std::string, std::map<std::string, std::vector<TimeWindow>>>;

std::string ChipOf(const storage::Series& series) {
  for (const char* label : {"chip", "gpu", "index", "uuid"}) {
    const absl::string_view value = series.labels->Find(label);
    if (!value.empty()) return std::string(value);
  }
  return "set " + std::to_string(series.labels->number);
}

// Metrics of a job with the signal chip_power, or in `names` for hosts: by name, with their rank.
struct Ranked {
  uint32_t rank = 0;
  double factor = 1;
  bool host = false;
};
absl::StatusOr<std::map<std::string, Ranked>> PowerMetrics(const storage::Store& store,
                                                           const std::string& job,
                                                           const conditions::SignalNames& signals,
                                                           const std::vector<std::string>& hosts) {
  std::map<std::string, Ranked> found;
  const auto metrics = store.Metrics(job);
  if (absl::IsNotFound(metrics.status())) return found;
  if (!metrics.ok()) return metrics.status();
  for (const storage::MetricUse& use : *metrics) {
    if (use.metric.type == storage::MetricType::kHistogram) continue;
    const auto match = signals.Find(use.metric.name);
    if (match.has_value() && match->signal == Signal::kChipPower) {
      found[use.metric.name] = {match->rank, match->factor, false};
      continue;
    }
    const std::string normal = conditions::NormalisedName(use.metric.name);
    for (size_t i = 0; i < hosts.size(); ++i) {
      if (conditions::NormalisedName(hosts[i]) != normal) continue;
      found[use.metric.name] = {static_cast<uint32_t>(i), 1, true};
      break;
    }
  }
  return found;
}

absl::StatusOr<std::vector<storage::SeriesPtr>> SeriesOf(const storage::Store& store,
                                                         const std::string& job,
                                                         std::vector<std::string> metrics) {
  if (metrics.empty()) return std::vector<storage::SeriesPtr>();
  storage::Selector selector;
  selector.job = job;
  selector.metrics = std::move(metrics);
  return store.FindSeries(selector, kMaxPowerSeries);
}

std::vector<TimeWindow> WholeTime(const goodput::JobGoodput& goodput) {
  std::vector<TimeWindow> windows;
  for (const auto& attempt : goodput.attempts) {
    windows.push_back({attempt.ledger.begin_ns, attempt.ledger.end_ns});
  }
  return Joined(std::move(windows));
}

class PowerFinder {
 public:
  PowerFinder(const storage::Store& store, const goodput::JobGoodput& goodput,
              const HostWindows& hosts, const conditions::SignalNames& signals,
              const PowerNames& names)
      : store_(store), goodput_(goodput), hosts_(hosts), signals_(signals), names_(names) {}

  // Series of the job itself come first: then those of its hosts are the same once more.
  absl::StatusOr<ByHost> Find(const query::QueryControl& control) {
    TACHO_RETURN_IF_ERROR(FindIn(goodput_.job, /*own=*/true));
    if (!found_.empty() || names_.hosts_job == goodput_.job) return std::move(found_);
    TACHO_RETURN_IF_ERROR(ReadHeld(control));
    TACHO_RETURN_IF_ERROR(FindIn(names_.hosts_job, /*own=*/false));
    return std::move(found_);
  }

 private:
  absl::Status FindIn(const std::string& job, bool own) {
    TACHO_ASSIGN_OR_RETURN(const auto metrics,
                           PowerMetrics(store_, job, signals_, names_.host_power));
    std::vector<std::string> wanted;
    for (const auto& [name, ranked] : metrics) wanted.push_back(name);
    TACHO_ASSIGN_OR_RETURN(const auto all, SeriesOf(store_, job, std::move(wanted)));
    // By host and by what it is the power of: one quantity under two names counts once.
    std::map<std::pair<std::string, bool>, uint32_t> best;
    for (const auto& series : all) {
      const Ranked& ranked = metrics.at(series->metric->name);
      const auto [place, fresh] =
          best.try_emplace({series->source->host, ranked.host}, ranked.rank);
      if (!fresh) place->second = std::min(place->second, ranked.rank);
    }
    std::map<std::string, std::set<std::string>> chips;
    for (const auto& series : all) {
      const std::string& host = series->source->host;
      const Ranked& ranked = metrics.at(series->metric->name);
      if (ranked.rank != best.at({host, ranked.host})) continue;
      PowerSeries power{series, ranked.factor, ranked.host ? "" : ChipOf(*series), {}};
      if (!ranked.host) chips[host].insert(power.chip);
      power.windows = WindowsOf(host, power.chip, own);
      if (power.windows.empty()) continue;
      (ranked.host ? found_[host].host : found_[host].chips).push_back(std::move(power));
    }
    for (const auto& [host, of_job] : held_) {
      const auto found = found_.find(host);
      if (found == found_.end() || chips[host].empty()) continue;
      found->second.host_share = std::min(
          1.0, static_cast<double>(of_job.size()) / static_cast<double>(chips[host].size()));
    }
    return absl::OkStatus();
  }

  std::vector<TimeWindow> WindowsOf(const std::string& host, const std::string& chip,
                                    bool own) const {
    const auto found = hosts_.find(host);
    if (own && found == hosts_.end()) return WholeTime(goodput_);
    if (found == hosts_.end()) return {};
    const auto held = held_.find(host);
    if (chip.empty() || held == held_.end()) return found->second;
    const auto of_chip = held->second.find(chip);
    return of_chip == held->second.end() ? std::vector<TimeWindow>() : of_chip->second;
  }

  // When processes of the job held which chips.
  absl::Status ReadHeld(const query::QueryControl& control) {
    TACHO_ASSIGN_OR_RETURN(
        auto matcher,
        storage::Matcher::Create("training_job", storage::Matcher::Op::kEqual, goodput_.job));
    storage::Selector selector;
    selector.job = names_.hosts_job;
    selector.metrics = {kHeldMetric};
    selector.matchers.push_back(std::move(matcher));
    TACHO_ASSIGN_OR_RETURN(const auto all, store_.FindSeries(selector, kMaxPowerSeries));
    if (all.empty()) return absl::OkStatus();
    const auto view = store_.OpenView(all);
    for (const auto& series : all) {
      TACHO_RETURN_IF_ERROR(control.Check());
      storage::ReadOptions options;
      options.begin_ns = goodput_.total.begin_ns;
      options.end_ns = goodput_.total.end_ns + 1;
      const auto reader = view->Read(series, options);
      // A sample says that the chip was held since the one before, as power is known between two.
      PowerFollower follower;
      std::vector<TimeWindow> windows;
      storage::Chunk chunk;
      for (;;) {
        TACHO_ASSIGN_OR_RETURN(const bool more, reader->Next({}, &chunk));
        if (!more) break;
        const auto& columns = chunk.samples().columns;
        for (size_t i = 0; i < columns.size(); ++i) {
          const auto piece = follower.Add(columns.times[i], columns.values[i]);
          if (piece.has_value()) windows.push_back({piece->from_ns, piece->to_ns});
        }
        windows = Joined(std::move(windows));
      }
      auto& known = held_[series->source->host][ChipOf(*series)];
      known.insert(known.end(), windows.begin(), windows.end());
      known = Joined(std::move(known));
    }
    return absl::OkStatus();
  }

  const storage::Store& store_;
  const goodput::JobGoodput& goodput_;
  const HostWindows& hosts_;
  const conditions::SignalNames& signals_;
  const PowerNames& names_;
  HeldChips held_;
  ByHost found_;
};

absl::Status ReadSeries(const PowerSeries& power, storage::ReadView* view, EnergyMeter* meter,
                        uint64_t* samples) {
  storage::ReadOptions options;
  options.begin_ns = power.windows.front().begin_ns - kMarginNs;
  options.end_ns = power.windows.back().end_ns + kMarginNs;
  options.read_once = true;
  const auto reader = view->Read(power.series, options);
  storage::Chunk chunk;
  meter->Begin(power.windows);
  for (;;) {
    TACHO_ASSIGN_OR_RETURN(const bool more, reader->Next({}, &chunk));
    if (!more) break;
    const auto& columns = chunk.samples().columns;
    *samples += columns.size();
    for (size_t i = 0; i < columns.size(); ++i) {
      meter->Add(columns.times[i], columns.values[i] * power.factor);
    }
  }
  meter->End();
  return absl::OkStatus();
}

absl::StatusOr<Energy> ReadAll(const std::vector<PowerSeries>& series,
                               const std::vector<goodput::BucketSpan>& spans,
                               const query::QueryControl& control, storage::ReadView* view,
                               uint64_t* samples) {
  EnergyMeter meter(spans);
  for (const PowerSeries& one : series) {
    TACHO_RETURN_IF_ERROR(control.Check());
    TACHO_RETURN_IF_ERROR(ReadSeries(one, view, &meter, samples));
  }
  return meter.energy();
}

double CoveredShare(const Energy& energy) {
  return energy.due_ns > 0 ? energy.covered_ns / energy.due_ns : 0;
}

// Adds what counts of one host. Some exporters say 0 for the power of a host that cannot tell it.
void Count(const HostPower& power, const Energy& chips, const Energy& host, bool has_chips,
           JobEnergy* energy) {
  const bool only_one = has_chips && !power.chips.empty() && !power.host.empty();
  const bool host_counts =
      !power.host.empty() &&
      (!only_one || (host.total() > 0 && CoveredShare(host) >= CoveredShare(chips)));
  if (host_counts) {
    energy->hosts.Add(host);
    ++energy->hosts_counted;
  }
  if (power.chips.empty() || (only_one && host_counts)) return;
  energy->chips.Add(chips);
  std::set<std::string> distinct;
  for (const PowerSeries& one : power.chips) distinct.insert(one.chip);
  energy->chips_counted += static_cast<uint32_t>(distinct.size());
}

Energy Times(const Energy& energy, double times) {
  Energy scaled;
  scaled.Add(energy, times);
  return scaled;
}

}  // namespace

PowerNames PowerNamesOf(const config::v1::Cost& config) {
  return {config.hosts_job().empty() ? PowerNames().hosts_job : config.hosts_job(),
          {config.host_power().begin(), config.host_power().end()},
          config.host_power_has_chips()};
}

Energy JobEnergy::total() const {
  Energy sum = chips;
  sum.Add(hosts);
  return sum;
}

absl::StatusOr<HostWindows> HostWindowsOf(const storage::Store& store,
                                          const goodput::JobGoodput& goodput) {
  std::map<uint32_t, TimeWindow> of_attempts;
  for (const auto& attempt : goodput.attempts) {
    of_attempts[attempt.attempt] = {attempt.ledger.begin_ns, attempt.ledger.end_ns};
  }
  TACHO_ASSIGN_OR_RETURN(const auto entities, store.Entities(goodput.job));
  HostWindows hosts;
  for (const auto& incarnation : entities.incarnations) {
    const auto attempt = of_attempts.find(incarnation.attempt);
    if (incarnation.host.empty() || attempt == of_attempts.end()) continue;
    hosts[incarnation.host].push_back(attempt->second);
  }
  for (auto& [host, windows] : hosts) windows = Joined(std::move(windows));
  return hosts;
}

absl::StatusOr<ChipsSeen> ChipsOnHosts(const storage::Store& store, const HostWindows& hosts,
                                       const std::string& job, const PowerNames& names) {
  ChipsSeen seen;
  TACHO_ASSIGN_OR_RETURN(const auto all, SeriesOf(store, names.hosts_job,
                                                  {kChipInfoMetric, kHeldMetric, kHostInfoMetric}));
  std::map<std::string, std::set<std::string>> chips, held;
  std::set<std::string> kinds, preemptible;
  for (const auto& series : all) {
    const std::string& host = series->source->host;
    if (!hosts.contains(host)) continue;
    if (series->metric->name == kHostInfoMetric) {
      if (series->labels->Find("preemptible") == "true") preemptible.insert(host);
    } else if (series->metric->name == kHeldMetric) {
      if (series->labels->Find("training_job") == job) held[host].insert(ChipOf(*series));
    } else {
      chips[host].insert(ChipOf(*series));
      kinds.emplace(series->labels->Find("kind"));
    }
  }
  for (const auto& [host, all_chips] : chips) {
    const auto of_job = held.find(host);
    seen.chips +=
        static_cast<uint32_t>(of_job == held.end() ? all_chips.size() : of_job->second.size());
  }
  if (kinds.size() == 1) seen.kind = *kinds.begin();
  seen.all_preemptible = !hosts.empty() && preemptible.size() == hosts.size();
  return seen;
}

absl::StatusOr<bool> PowerIsRecorded(const storage::Store& store, const std::string& job,
                                     const conditions::SignalNames& signals,
                                     const PowerNames& names) {
  for (const std::string* one : {&job, &names.hosts_job}) {
    TACHO_ASSIGN_OR_RETURN(const auto metrics,
                           PowerMetrics(store, *one, signals, names.host_power));
    if (!metrics.empty()) return true;
  }
  return false;
}

absl::StatusOr<std::optional<JobEnergy>> EnergyOf(
    const storage::Store& store, const goodput::JobGoodput& goodput, const HostWindows& hosts,
    const conditions::SignalNames& signals, const PowerNames& names,
    const query::QueryControl& control, uint64_t max_samples) {
  PowerFinder finder(store, goodput, hosts, signals, names);
  TACHO_ASSIGN_OR_RETURN(const ByHost found, finder.Find(control));
  if (found.empty()) return std::optional<JobEnergy>();
  std::vector<storage::SeriesPtr> all;
  for (const auto& [host, power] : found) {
    for (const PowerSeries& one : power.chips) all.push_back(one.series);
    for (const PowerSeries& one : power.host) all.push_back(one.series);
  }
  std::vector<goodput::BucketSpan> spans = goodput.spans;
  goodput::JoinShortest(std::max<size_t>(1, kMaxMeterSteps / all.size()), &spans);
  const auto view = store.OpenView(all);
  JobEnergy energy;
  uint64_t samples = 0;
  size_t read = 0, number = 0;
  for (const auto& [host, power] : found) {
    if (number++ % energy.read_every != 0) continue;
    TACHO_ASSIGN_OR_RETURN(const Energy chips,
                           ReadAll(power.chips, spans, control, view.get(), &samples));
    TACHO_ASSIGN_OR_RETURN(const Energy whole,
                           ReadAll(power.host, spans, control, view.get(), &samples));
    Count(power, chips, Times(whole, power.host_share), names.host_power_has_chips, &energy);
    if (++read == 1 && found.size() > 1) {
      energy.read_every = 1 + samples * found.size() / (max_samples + 1);
    }
  }
  const double times = static_cast<double>(found.size()) / static_cast<double>(read);
  energy.chips = Times(energy.chips, times);
  energy.hosts = Times(energy.hosts, times);
  energy.chips_counted = SaturatingCast<uint32_t>(std::round(energy.chips_counted * times));
  energy.hosts_counted = SaturatingCast<uint32_t>(std::round(energy.hosts_counted * times));
  return std::optional<JobEnergy>(energy);
}

}  // namespace tacho::server::cost
