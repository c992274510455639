// Keeps the state of each GPU over readings, events and the death of a driver. Threads of GpuWatch
// and GpuOpener call the driver, because a call may never return; this code only takes their
// answers.
#include "agent/sources/gpu/gpu_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tacho::agent {
namespace {

constexpr char kInventoryKey[] = "gpu/inventory";

GpuReaderOptions ReaderOptionsOf(const config::v1::Gpu& config) {
  return {.gpm = config.gpm(), .pcie_throughput = config.pcie_throughput()};
}

ChipHere HereOf(const GpuIdentity& gpu) {
  std::string place = gpu.pci;
  if (place.empty()) place = gpu.uuid.empty() ? absl::StrCat("index ", gpu.index) : gpu.uuid;
  return {std::move(place), gpu.minor.value_or(gpu.index)};
}

GpuNames NamesOf(const config::v1::Gpu& config, const std::string& host) {
  return {.tacho = config.names() != "dcgm",
          .dcgm = config.names() == "dcgm" || config.names() == "both",
          .host = host,
          .dcgm_host_label = config.dcgm_host_label(),
          .driver = ""};
}

}  // namespace

GpuSource::GpuSource(const config::v1::Gpu& config, GpuOptions options)
    : config_(config),
      options_(std::move(options)),
      cadence_(absl::Nanoseconds(config.interval())),
      hang_after_(absl::Nanoseconds(config.hang_after())),
      log_("gpu", options_.log),
      events_(config.job(), options_.host),
      rows_(config.job(), options_.host, SeriesRows::Leaves::kLate),
      jobs_(config.proc(), options_.rings),
      names_(NamesOf(config, options_.host)),
      opener_(config.library(), ReaderOptionsOf(config)) {}

const char* GpuSource::NameOf(State state) {
  switch (state) {
    case State::kOk:
      return "ok";
    case State::kAbsent:
      return "absent";
    case State::kLost:
      return "lost";
    case State::kHanging:
      return "hanging";
    case State::kResetRequired:
      return "reset_required";
  }
  return "";
}

absl::Time GpuSource::Poll(absl::Time now, RowSink* sink) {
  if (!cadence_.TakeDue(now)) return cadence_.due();
  if (!inventory_.has_value()) inventory_.emplace(sink->ReadCheckpoint(kInventoryKey));
  if (!session_.has_value()) Open(now, sink);
  Sample sample;
  if (session_.has_value()) {
    TakeEvents();
    TakeReadings(now, &sample);
    CloseIfDone();
  }
  TellHolders(now, &sample);
  AddStates(&sample);
  log_.WarnIfLost(rows_.Write(now, sample, sink));
  events_.Flush(sink);
  return cadence_.due();
}

void GpuSource::Open(absl::Time now, RowSink* sink) {
  const absl::Time steady = options_.steady_now();
  if (opener_.Awaited(steady) == absl::ZeroDuration() && steady >= retry_at_) {
    opener_.Start(steady);
  }
  std::optional<absl::StatusOr<GpuSession>> opened = opener_.Take(options_.wait);
  if (opened.has_value() && opened->ok()) {
    Adopt(**std::move(opened), now, sink);
    return;
  }
  const bool hangs = opener_.Awaited(steady) >= hang_after_;
  if (!opened.has_value() && !hangs) return;
  if (hangs) {
    status_ = absl::DeadlineExceededError(
        "the NVIDIA driver does not answer; if nvidia-smi hangs too, the machine needs a restart");
  } else {
    Retry(retry_);
    retry_ = std::min(retry_ * 2, kRetryMax);
    // Without a library this is no machine with GPUs, unless there were some, or should be.
    const bool wanted = config_.expected() > 0 || !inventory_->slots().empty();
    status_ = !wanted && absl::IsNotFound(opened->status())
                  ? absl::OkStatus()
                  : absl::Status(opened->status().code(),
                                 absl::StrCat("no GPUs can be read: ", opened->status().message(),
                                              "; see what nvidia-smi says, or set "
                                              "sources.gpu.enabled to false"));
  }
  if (!status_.ok()) log_.Warn("cannot use the GPUs", {{"reason", status_.message()}});
  for (const ChipSlot& slot : inventory_->slots()) {
    Enter(slot.chip, hangs ? State::kHanging : State::kAbsent, now);
  }
}

void GpuSource::Retry(absl::Duration after) { retry_at_ = options_.steady_now() + after; }

void GpuSource::Adopt(GpuSession session, absl::Time now, RowSink* sink) {
  session_ = std::move(session);
  status_ = absl::OkStatus();
  names_.driver = session_->driver;
  retry_ = kRetryMin;
  Retry(kRetryMissing);
  reopen_ = false;
  told_xids_.assign(session_->gpus.size(), 0);
  std::vector<ChipHere> present;
  for (const auto& gpu : session_->gpus) present.push_back(HereOf(gpu->identity()));
  chips_ = inventory_->Place(present, config_.expected());
  const std::string encoded = inventory_->Encode();
  if (encoded != sink->ReadCheckpoint(kInventoryKey)) {
    // Said again after the next opening, should the sink be full now.
    sink->WriteCheckpoint({kInventoryKey, encoded}).IgnoreError();
  }
  std::erase_if(records_, [this](const auto& record) {
    return std::none_of(inventory_->slots().begin(), inventory_->slots().end(),
                        [&record](const ChipSlot& slot) { return slot.chip == record.first; });
  });
  for (const ChipSlot& slot : inventory_->slots()) {
    const bool here = std::find(chips_.begin(), chips_.end(), slot.chip) != chips_.end();
    if (!here) Enter(slot.chip, State::kAbsent, now);
  }
}

void GpuSource::TakeReadings(absl::Time now, Sample* sample) {
  const absl::Time steady = options_.steady_now();
  const absl::Time real_end = MonotonicNow() + options_.wait;
  std::vector<std::optional<GpuReading>> late;
  for (const auto& gpu : session_->gpus) {
    late.push_back(gpu->Take(absl::ZeroDuration()));
    gpu->Ask(steady);
  }
  for (size_t i = 0; i < session_->gpus.size(); ++i) {
    GpuWatch& gpu = *session_->gpus[i];
    const bool hangs = gpu.Awaited(steady) >= hang_after_;
    const absl::Duration wait =
        hangs ? absl::ZeroDuration() : std::max(absl::ZeroDuration(), real_end - MonotonicNow());
    std::optional<GpuReading> reading = gpu.Take(wait);
    if (!reading.has_value()) reading = std::move(late[i]);
    if (reading.has_value()) {
      Enter(chips_[i], StateOf(*reading), now);
      AddReading(ChipAt(i), *reading, names_, sample);
      // A lost GPU reports no processes, but they hold it until they end.
      if (reading->trouble == nvml::kSuccess) records_[chips_[i]].pids = reading->pids;
    } else if (hangs) {
      Enter(chips_[i], State::kHanging, now);
    }
    AddInfo(ChipAt(i), sample);
  }
}

GpuSource::State GpuSource::StateOf(const GpuReading& reading) {
  switch (reading.trouble) {
    case nvml::kSuccess:
      return State::kOk;
    case nvml::kResetRequired:
      return State::kResetRequired;
    case nvml::kGpuIsLost:
      return State::kLost;
    default:
      // The driver went, or is another one now: the library must be loaded again.
      log_.Warn("the driver fails", {{"reason", session_->library->Describe(reading.trouble)}});
      reopen_ = true;
      return State::kAbsent;
  }
}

void GpuSource::CloseIfDone() {
  const bool all_well = std::all_of(records_.begin(), records_.end(), [](const auto& record) {
    return record.second.state == State::kOk || record.second.state == State::kHanging;
  });
  const bool look_again = options_.steady_now() >= retry_at_ &&
                          (!all_well || session_->gpus.size() < inventory_->expected());
  if (!reopen_ && !look_again) return;
  const bool hangs = std::any_of(
      session_->gpus.begin(), session_->gpus.end(),
      [this](const auto& gpu) { return gpu->Awaited(options_.steady_now()) >= hang_after_; });
  // The driver is not shut down under a call that it holds; nor are the others given up for one.
  if (hangs && !reopen_) return;
  if (reopen_) log_.Warn("loads NVML again");
  session_.reset();
  chips_.clear();
  Retry(reopen_ ? kRetryMin : absl::ZeroDuration());
}

void GpuSource::Enter(uint32_t chip, State state, absl::Time now) {
  State& before = records_[chip].state;
  if (before == state) return;
  before = state;
  const std::string number = absl::StrCat(chip);
  const std::string text = state == State::kOk        ? "is back"
                           : state == State::kAbsent  ? "is missing: the driver does not list it"
                           : state == State::kLost    ? "is lost: it fell off the bus"
                           : state == State::kHanging ? "hangs: the driver does not answer for it"
                                                      : "must be reset before it works again";
  const std::string line = absl::StrCat("GPU ", number, " ", text);
  if (state != State::kOk) log_.Warn("a GPU does not work", {{"gpu", number}, {"reason", text}});
  events_.Add(now, absl::StrCat("chip_", NameOf(state)), line, {{"chip", number}});
}

void GpuSource::TakeEvents() {
  const XidListener::Heard heard = session_->listener->Take();
  for (size_t i = 0; i < chips_.size(); ++i) {
    ChipRecord& record = records_[chips_[i]];
    record.xids += static_cast<double>(heard.xids[i] - std::exchange(told_xids_[i], heard.xids[i]));
    if (heard.last_xids[i] != 0) record.last_xid = static_cast<double>(heard.last_xids[i]);
  }
  for (const GpuEvent& event : heard.events) TellEvent(event);
  if (heard.left_out > 0) {
    log_.Warn("counted events of GPUs without recording them", {{"events", heard.left_out}});
  }
}

void GpuSource::TellEvent(const GpuEvent& event) {
  const std::string chip = event.device < chips_.size() ? absl::StrCat(chips_[event.device]) : "";
  std::map<std::string, std::string> fields = {{"chip", chip}};
  std::string kind;
  std::string text;
  if (event.type == nvml::kEventXid) {
    kind = "chip_xid";
    fields["xid"] = absl::StrCat(event.data);
    text = absl::StrCat("XID ", event.data);
  } else if (event.type == nvml::kEventUnavailable) {
    kind = "chip_unavailable";
    text = "the driver has taken it out of use";
  } else {
    kind = "chip_recovery_action";
    text = "the driver asks for another recovery action";
  }
  if (!MayTell(event.time, absl::StrCat(kind, " ", chip))) return;
  events_.Add(event.time, kind, absl::StrCat("GPU ", chip, ": ", text), fields);
}

bool GpuSource::MayTell(absl::Time now, const std::string& what) {
  Minute& minute = minutes_[what];
  if (now - minute.begin >= absl::Minutes(1) || now < minute.begin) minute = {now, 0};
  return ++minute.events <= kEventsPerMinute;
}

GpuChip GpuSource::ChipAt(size_t gpu) const {
  const auto record = records_.find(chips_[gpu]);
  GpuChip chip = {absl::StrCat(chips_[gpu]), session_->gpus[gpu]->identity()};
  if (record != records_.end()) {
    chip.xids = record->second.xids;
    chip.last_xid = record->second.last_xid;
  }
  return chip;
}

void GpuSource::AddInfo(const GpuChip& chip, Sample* sample) const {
  sample->Add(kChipInfo,
              {{"chip", chip.chip},
               {"kind", chip.identity.name},
               {"uuid", chip.identity.uuid},
               {"pci", chip.identity.pci},
               {"serial", chip.identity.serial},
               {"driver", names_.driver}},
              1);
}

void GpuSource::TellHolders(absl::Time now, Sample* sample) {
  HeldChips held;
  for (const auto& [chip, record] : records_) {
    for (const uint32_t pid : record.pids) held[static_cast<int>(pid)].insert(chip);
  }
  jobs_.Look(options_.steady_now(), now, held, &events_, sample);
}

void GpuSource::AddStates(Sample* sample) const {
  const uint32_t expected = std::max(inventory_->expected(), config_.expected());
  if (expected == 0) return;
  uint32_t present = 0;
  for (const ChipSlot& slot : inventory_->slots()) {
    const auto record = records_.find(slot.chip);
    if (record == records_.end()) continue;
    present += record->second.state == State::kOk ? 1 : 0;
    for (const State state :
         {State::kOk, State::kAbsent, State::kLost, State::kHanging, State::kResetRequired}) {
      sample->Add(kChipState, {{"chip", absl::StrCat(slot.chip)}, {"state", NameOf(state)}},
                  record->second.state == state ? 1 : 0);
    }
  }
  sample->Add(kChipsExpected, expected);
  sample->Add(kChipsPresent, present);
}

}  // namespace tacho::agent
