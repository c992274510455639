// Joins three views of TPUs in each poll: chips in sysfs, processes that hold them, and what their
// libtpu reports. Each part may be missing, and the others are recorded all the same.
#include "agent/sources/tpu/tpu_source.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/sources/tpu/tpu_points.h"
#include "interop/tpu_metric_service.pb.h"

namespace tacho::agent {
namespace {

namespace fs = std::filesystem;

constexpr char kInventoryKey[] = "tpu/inventory";
constexpr const char* kStates[] = {"ok", "idle", "held_without_metrics", "absent", "unknown"};

bool IsHere(const TpuChip& chip) {
  std::error_code error;
  return std::all_of(chip.devices.begin(), chip.devices.end(),
                     [&](const std::string& device) { return fs::exists(device, error); });
}

}  // namespace

TpuSource::TpuSource(const config::v1::Tpu& config, TpuOptions options)
    : config_(config),
      options_(std::move(options)),
      places_{.addresses = {config.addresses().begin(), config.addresses().end()},
              .ports = options_.metrics_ports},
      wanted_(WantedTpuMetrics(config.distributions())),
      log_("tpu", options_.log),
      cadence_(absl::Nanoseconds(config.interval())),
      events_(config.job(), options_.host),
      rows_(config.job(), options_.host, SeriesRows::Leaves::kLate),
      total_rows_(config.job(), options_.host, SeriesRows::Leaves::kLate),
      holder_watch_(config.proc()),
      jobs_(config.proc(), options_.rings),
      hang_watch_(absl::Nanoseconds(config.hung_after())) {}

TpuSource::~TpuSource() = default;

absl::Time TpuSource::Poll(absl::Time now, RowSink* sink) {
  if (!cadence_.TakeDue(now)) return cadence_.due();
  if (!totals_.has_value()) totals_.emplace(now);
  FindChips(sink);
  if (inventory_->slots().empty() && places_.addresses.empty()) return cadence_.due();
  std::set<std::string> paths;
  std::set<uint32_t> numbers;
  for (const auto& [path, chip] : devices_) paths.insert(path);
  for (const auto& [number, chip] : chips_) numbers.insert(number);
  const ChipHolders& holders = holder_watch_.Look(options_.steady_now(), paths);
  const std::vector<TpuGroup> groups = GroupsOf(places_, holders, devices_, numbers);
  KeepPorts(groups);
  Sample sample;
  TpuLook look;
  look.chips = &sample;
  look.totals = &*totals_;
  totals_->BeginRound();
  for (const TpuGroup& group : groups) LookAt(group, &look);
  AddChips(holders, groups, look, &sample);
  SetStatus(groups);
  TellHolders(now, holders, &sample);
  const bool new_error = errors_.Tell(now, look.errors, !AnyUp(), &events_);
  TellTroubles(now, new_error, look.activity);
  Write(now, look, sink);
  return cadence_.due();
}

void TpuSource::FindChips(RowSink* sink) {
  const absl::Time steady = options_.steady_now();
  if (steady - found_ < kChipsAgain) return;
  found_ = steady;
  if (!inventory_.has_value()) inventory_.emplace(sink->ReadCheckpoint(kInventoryKey));
  std::vector<TpuChip> found = FindTpuChips(config_.sys(), config_.dev());
  found.resize(std::min(found.size(), ChipInventory::kMaxChips));
  std::vector<ChipHere> here;
  for (const TpuChip& chip : found) here.push_back({chip.pci, static_cast<uint32_t>(here.size())});
  const std::vector<uint32_t> numbers = inventory_->Place(here, 0);
  chips_.clear();
  devices_.clear();
  for (size_t i = 0; i < found.size(); ++i) {
    for (const std::string& device : found[i].devices) devices_[device] = numbers[i];
    chips_[numbers[i]] = std::move(found[i]);
  }
  const std::string encoded = inventory_->Encode();
  if (!here.empty() && encoded != sink->ReadCheckpoint(kInventoryKey)) {
    sink->WriteCheckpoint({kInventoryKey, encoded}).IgnoreError();  // Tried again in a minute.
  }
}

void TpuSource::KeepPorts(const std::vector<TpuGroup>& groups) {
  std::set<std::string> addresses;
  std::set<std::vector<std::string>> keys;
  for (const TpuGroup& group : groups) {
    addresses.insert(group.addresses.begin(), group.addresses.end());
    keys.insert(group.addresses);
  }
  std::erase_if(ports_, [&](const auto& port) { return !addresses.contains(port.first); });
  std::erase_if(places_of_, [&](const auto& place) { return !keys.contains(place.first); });
}

TpuSource::Port& TpuSource::PortAt(const std::string& address) {
  Port& port = ports_[address];
  if (port.client == nullptr) {
    port.client = std::make_unique<TpuClient>(address, absl::Nanoseconds(config_.timeout()));
  }
  return port;
}

TpuAnswers TpuSource::Ask(const TpuGroup& group) {
  TpuAnswers answers;
  const absl::Time steady = options_.steady_now();
  for (const std::string& address : group.addresses) {
    Port& port = PortAt(address);
    if (steady < port.ask_again) continue;
    TpuAnswer answer = port.client->Ask(steady, wanted_);
    port.up = answer.status.ok() || !answer.metrics.empty();
    if (absl::IsDeadlineExceeded(answer.status)) {
      port.pause = std::clamp(port.pause * 2, kPauseMin, kPauseMax);
      port.ask_again = steady + port.pause;
    } else {
      port.pause = absl::ZeroDuration();
    }
    answers.emplace_back(address, std::move(answer));
  }
  return answers;
}

void TpuSource::LookAt(const TpuGroup& group, TpuLook* look) {
  const TpuAnswers answers = Ask(group);
  for (const auto& [address, answer] : answers) {
    // Nobody listening is a state, not a trouble.
    if (!answer.status.ok() && !absl::IsUnavailable(answer.status)) {
      log_.Warn("a libtpu fails", {{"reason", answer.status.message()}});
    }
  }
  const int per_chip = chips_.empty() ? 1 : chips_.begin()->second.generation->devices_per_chip;
  RecordGroup(answers, group, per_chip, &places_of_[group.addresses], look);
  for (const std::string& address : group.addresses) {
    look->chips->Add(kTpuPortUp, {{"port", address}}, ports_[address].up ? 1 : 0);
    look->activity.held |= ports_[address].up && !group.pids.empty();
  }
}

void TpuSource::AddChips(const ChipHolders& holders, const std::vector<TpuGroup>& groups,
                         const TpuLook& look, Sample* sample) {
  if (inventory_->slots().empty()) return;
  uint32_t present = 0;
  for (const ChipSlot& slot : inventory_->slots()) {
    const std::string chip = absl::StrCat(slot.chip);
    const absl::string_view state = StateOf(slot.chip, holders, groups, look);
    present += state == "absent" ? 0 : 1;
    for (const char* one : kStates) {
      sample->Add(kTpuState, {{"chip", chip}, {"state", one}}, state == one ? 1 : 0);
    }
    const auto found = chips_.find(slot.chip);
    if (found != chips_.end()) AddConstants(slot.chip, found->second, sample);
  }
  sample->Add(kTpusExpected, inventory_->expected());
  sample->Add(kTpusPresent, present);
}

const char* TpuSource::StateOf(uint32_t chip, const ChipHolders& holders,
                               const std::vector<TpuGroup>& groups, const TpuLook& look) const {
  const auto found = chips_.find(chip);
  if (found == chips_.end() || !IsHere(found->second)) return "absent";
  if (look.told.contains(absl::StrCat(chip))) return "ok";
  for (const TpuGroup& group : groups) {
    if (!group.chips.contains(chip) || group.pids.empty()) continue;
    const bool up = std::any_of(group.addresses.begin(), group.addresses.end(),
                                [this](const std::string& address) {
                                  const auto port = ports_.find(address);
                                  return port != ports_.end() && port->second.up;
                                });
    return up ? "ok" : "held_without_metrics";
  }
  return holders.complete ? "idle" : "unknown";
}

void TpuSource::AddConstants(uint32_t chip, const TpuChip& found, Sample* sample) const {
  const Labels labels = {{"chip", absl::StrCat(chip)}};
  const TpuGeneration& generation = *found.generation;
  sample->Add(kTpuInfo,
              {{"chip", absl::StrCat(chip)},
               {"kind", generation.kind},
               {"generation", generation.name},
               {"cores", absl::StrCat(generation.cores)},
               {"devices", absl::StrCat(generation.devices_per_chip)},
               {"pci", found.pci}},
              1);
  sample->Add(kTpuPeakFlops, labels, generation.flops_per_second);
  sample->Add(kTpuHbmBytes, labels, generation.hbm_bytes);
  sample->Add(kTpuHbmBandwidth, labels, generation.bytes_per_second);
}

bool TpuSource::AnyUp() const {
  return std::any_of(ports_.begin(), ports_.end(), [](const auto& port) { return port.second.up; });
}

void TpuSource::SetStatus(const std::vector<TpuGroup>& groups) {
  status_ = absl::OkStatus();
  const bool any_up =
      std::any_of(ports_.begin(), ports_.end(), [](const auto& port) { return port.second.up; });
  if (any_up) return;
  for (const TpuGroup& group : groups) {
    if (group.pids.empty()) continue;
    const std::string who = absl::StrCat("process ", absl::StrJoin(group.pids, ", "));
    status_ = absl::UnavailableError(
        group.addresses.empty()
            ? absl::StrCat(who,
                           " holds TPUs with TPU_RUNTIME_METRICS_PORTS set to nothing, which "
                           "switches libtpu's metrics off: leave it unset")
            : absl::StrCat(who, " holds TPUs, but no libtpu answers at ",
                           absl::StrJoin(group.addresses, ", "),
                           ": see its log for 'metric server port', and set sources.tpu.addresses "
                           "if it listens elsewhere"));
  }
}

void TpuSource::TellHolders(absl::Time now, const ChipHolders& holders, Sample* sample) {
  HeldChips held;
  for (const ChipHolder& holder : holders.holders) {
    std::set<uint32_t>& chips = held[holder.pid];
    for (const std::string& device : holder.devices) {
      if (devices_.contains(device)) chips.insert(devices_.at(device));
    }
  }
  jobs_.Look(options_.steady_now(), now, held, &events_, sample);
}

void TpuSource::TellTroubles(absl::Time now, bool new_error, const TpuActivity& activity) {
  const bool hung = hang_watch_.Look(options_.steady_now(), activity);
  if (hung) {
    events_.Add(now, "tpu_looks_hung",
                absl::StrCat("chips are held, and nothing was executed for ",
                             absl::FormatDuration(absl::Nanoseconds(config_.hung_after()))),
                {});
  }
  if (SnapshotAsked()) {
    Snapshot(now, "asked");
  } else if (hung || new_error) {
    Snapshot(now, hung ? "hung" : "error");
  }
}

bool TpuSource::SnapshotAsked() {
  std::error_code error;
  if (config_.snapshot_file().empty() || !fs::exists(config_.snapshot_file(), error)) return false;
  if (options_.steady_now() - snapshot_ < kBetweenSnapshots) return false;  // The file waits.
  if (fs::remove(config_.snapshot_file(), error)) return true;
  log_.Warn("takes no snapshot: the file that asks for it cannot be removed",
            {{"file", config_.snapshot_file()}, {"reason", error.message()}});
  return false;
}

void TpuSource::Snapshot(absl::Time now, const std::string& reason) {
  const absl::Time steady = options_.steady_now();
  if (steady - snapshot_ < kBetweenSnapshots) return;
  snapshot_ = steady;
  bool any = false;
  for (auto& [address, port] : ports_) {
    if (!port.up) continue;
    tpu::monitoring::runtime::GetTpuRuntimeStatusResponse response;
    const absl::Status status = port.client->CoreStates(config_.hlo_locations(), &response);
    if (!status.ok()) {
      events_.Add(now, "tpu_core_states_missing", status.message(),
                  {{"port", address}, {"reason", reason}});
      continue;
    }
    for (TpuCoreState& state : CoreStatesOf(response)) {
      any = true;
      state.fields["reason"] = reason;
      events_.Add(now, "tpu_core_state", state.text, state.fields);
    }
  }
  if (!any) log_.Warn("no libtpu reports the state of its cores");
}

void TpuSource::Write(absl::Time now, const TpuLook& look, RowSink* sink) {
  Sample& sample = *look.chips;
  for (const TpuMetric& metric : TpuMetrics()) {
    if (metric.kind == TpuMetricKind::kErrors && look.errors.contains(metric.libtpu)) {
      sample.Add(metric.metric, static_cast<double>(errors_.Count(metric.libtpu)));
    }
  }
  Sample totals;
  RecordTotals(*totals_, &totals);
  sample.Add(kTpuLeftOut,
             static_cast<double>(look.left_out + totals.left_out() + totals_->left_out()));
  absl::Status status = rows_.Write(now, sample, sink);
  status.Update(total_rows_.Write(now, totals, sink));
  log_.WarnIfLost(status);
  events_.Flush(sink);
}

}  // namespace tacho::agent
