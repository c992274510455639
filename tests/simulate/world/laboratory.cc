#include "tests/simulate/world/laboratory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulate/schedule/schedule.h"
#include "tests/simulate/transport/timeline.h"
#include "tests/simulate/world/disk_faults.h"

namespace tacho::simulate {
namespace {

constexpr char kCollector[] = "collector:7411";
constexpr int64_t kSecond = 1'000'000'000;
// When all faults are over, everything must be delivered in this time: a Throttle may ask for ten
// minutes, and a clock is confirmed after one more.
constexpr int64_t kDrainWithin = 2400;
// Until then sources go on, which shows the collector that clocks are right again.
constexpr int64_t kWorkBeforeDrain = 60;
// A collector believes rows about their agent's clock only after five minutes of a stream.
constexpr int64_t kBelieveWithin = 900;
constexpr int64_t kHour = 3600;
// How often processes that have ended are begun again in quiet hours, and how often all is read.
constexpr int64_t kLookEvery = 60;
constexpr int64_t kCheckEvery = 6 * kHour;

// Seconds until midnight; 0: it is of no interest.
int64_t UntilMidnight(const LaboratoryOptions& options) {
  return options.seed % 9 == 4 && options.days == 0 ? options.ticks / 2 : 0;
}

// Agents have spools that are full after less than a minute.
bool HasSmallSpools(const LaboratoryOptions& options) {
  return options.seed % 16 == 14 && options.days == 0;
}

Knobs KnobsOf(const LaboratoryOptions& options) {
  Knobs knobs = DrawKnobs(options.days > 0);
  if (HasSmallSpools(options)) {
    knobs.spool_bytes = 4 << 10;
    // The backlog goes about as fast as rows come. So a spool stays full while it is sent, and the
    // report of what it dropped overtakes what it kept.
    knobs.backlog_rows_per_second = 5;
    knobs.short_backlog = 2;
    knobs.series_per_job = 0;  // Refused rows would be hard to tell from those that are lost.
  }
  // A layout's rows are to be sealed again and again, or midnight is only one of many hours.
  if (UntilMidnight(options) > 0) knobs.seal_age = absl::Seconds(5);
  return knobs;
}

SimNetworkOptions NetworkOptions(uint64_t seed, const Knobs& knobs) {
  SimNetworkOptions options;
  options.seed = seed;
  options.latency_max = knobs.latency_max;
  options.bytes_per_second = knobs.bytes_per_second;
  return options;
}

}  // namespace

int64_t StartUnixNs(const LaboratoryOptions& options) {
  constexpr int64_t kUsual = 1'700'000'000 * kSecond;
  constexpr int64_t kMidnight = 1'700'006'400 * kSecond;
  const int64_t until = UntilMidnight(options);
  return until == 0 ? kUsual : kMidnight - until * kSecond;
}

Laboratory::Laboratory(LaboratoryOptions options)
    : options_(std::move(options)),
      knobs_(KnobsOf(options_)),
      network_(NetworkOptions(options_.seed, knobs_)) {
  network_clock = [] { return absl::UnixEpoch() + absl::Nanoseconds(LaboratoryNs()); };
  collector_ = std::make_unique<CollectorHost>(kCollector, knobs_, ScheduleRandom(), &network_,
                                               &model_, options_.log);
  for (int i = 0; i < knobs_.agents; ++i) {
    AgentOptions agent;
    agent.knobs = knobs_;
    agent.number = i;
    agent.collectors = {kCollector};
    agent.sources = 1 + static_cast<int>(ScheduleRandom() % 2);
    agent.period = absl::Milliseconds(500 + static_cast<int64_t>(ScheduleRandom() % 4000));
    agent.seed = ScheduleRandom();
    agent.restless = IsRestless();
    // Some runs have trainers too.
    if (HasTrainers()) agent.ring_directory = absl::StrCat("rings-", i);
    agents_.push_back(std::make_unique<AgentHost>(agent, &network_, &model_, options_.log));
  }
}

int64_t Laboratory::Now() const { return LaboratoryNs() / kSecond; }

HostId Laboratory::HostOf(int number) const {
  return number == 0 ? collector_->host() : agents_[static_cast<size_t>(number - 1)]->host();
}
SimDisk* Laboratory::DiskOf(int number) {
  return number == 0 ? collector_->disk() : agents_[static_cast<size_t>(number - 1)]->disk();
}
std::string Laboratory::NameOf(int number) const {
  return number == 0 ? kCollector : agents_[static_cast<size_t>(number - 1)]->name();
}

void Laboratory::ForEachPath(int number, const std::function<void(const std::string&)>& visit) {
  for (int other = 1; other <= static_cast<int>(agents_.size()); ++other) {
    if (number == 0 || number == other) visit(NameOf(other));
  }
}

void Laboratory::After(int64_t seconds, std::function<void()> undo) {
  undo_.push_back({Now() + seconds, std::move(undo)});
}

void Laboratory::UndoDue(bool all) {
  std::vector<Undo> later;
  std::vector<Undo> due;
  for (Undo& one : undo_) (all || one.at_s <= Now() ? due : later).push_back(std::move(one));
  undo_ = std::move(later);
  for (const Undo& one : due) one.undo();
}

void Laboratory::CauseOnDisk(const Fault& fault) {
  SimDisk* const disk = DiskOf(fault.host);
  BeginOnDisk(fault, disk);
  After(fault.seconds, [disk, kind = fault.kind] { EndOnDisk(kind, disk); });
}

void Laboratory::Part(const Fault& fault) {
  const auto part = [this, host = fault.host](bool parted) {
    ForEachPath(host, [this, parted](const std::string& name) {
      network_.Partition(name, kCollector, parted);
    });
  };
  part(true);
  After(fault.seconds, [part] { part(false); });
}

void Laboratory::Cause(const Fault& fault) {
  if (!options_.left_out.contains(planned_++)) CauseNow(fault);
}

void Laboratory::CauseNow(const Fault& fault) {
  result_.faults.push_back(Describe(fault));
  options_.log.Warn("fault", {{"text", Describe(fault)}});
  AgentHost* const agent =
      fault.host == 0 ? nullptr : agents_[static_cast<size_t>(fault.host - 1)].get();
  switch (fault.kind) {
    case FaultKind::kCollectorKill:
    case FaultKind::kAgentKill:
      // Supervise() sees that it is dead.
      return DiskOf(fault.host)->power()->KillAtOperation(static_cast<uint64_t>(fault.amount));
    case FaultKind::kSyncLies:
      BeginOnDisk(fault, DiskOf(fault.host));
      [[fallthrough]];
    case FaultKind::kCollectorPowerCut:
    case FaultKind::kAgentPowerCut:
      return DiskOf(fault.host)->power()->CutAtOperation(static_cast<uint64_t>(fault.amount));
    case FaultKind::kCollectorRestart:
      return collector_->Stop(End::kOrderly);
    case FaultKind::kAgentRestart:
      return agent->Stop(End::kOrderly);
    case FaultKind::kCut:
      return network_.Reset(NameOf(fault.host));
    case FaultKind::kCutAfter:
      return network_.CutAfterBytes(NameOf(fault.host), static_cast<uint64_t>(fault.amount));
    case FaultKind::kHalfOpen:
      return ForEachPath(fault.host,
                         [this](const std::string& name) { network_.HalfOpen(name, kCollector); });
    case FaultKind::kPartition:
      return Part(fault);
    case FaultKind::kClockStep:
      StepWallClock(HostOf(fault.host), fault.amount * kSecond);
      return After(fault.seconds,
                   [this, fault] { StepWallClock(HostOf(fault.host), -fault.amount * kSecond); });
    case FaultKind::kRot:
      absl::StrAppend(&result_.faults.back(), ": ", collector_->Rot());
      return;
    case FaultKind::kSpoolLost:
      if (!HasTrainers()) agent->LoseSpool();
      return;
    case FaultKind::kSpoolCopied:
      if (HasTrainers()) return;
      agent->CopySpool();
      return After(fault.seconds, [agent] { agent->RestoreSpool(); });
    case FaultKind::kDrift:
      return SetDrift(HostOf(fault.host), static_cast<int>(fault.amount));
    case FaultKind::kSuspend:
      // It does not answer its peers meanwhile.
      Suspend(HostOf(fault.host), fault.seconds * kSecond);
      return Part(fault);
    default:
      return CauseOnDisk(fault);
  }
}

void Laboratory::Supervise() {
  // Whether a kill or a power cut ended it, the disk knows.
  if (collector_->disk()->power()->dead()) collector_->Stop(End::kDead);
  for (const auto& agent : agents_) {
    // As its log says: the directory is to be moved away.
    if (agent->says_old_copy()) agent->LoseSpool();
    if (agent->disk()->power()->dead()) agent->Stop(End::kDead);
  }
  if (collector_->is_running() && collector_->wants_to_end()) {
    if (collector_->had_no_error()) {
      result_.wrong =
          absl::StrCat("after ", Now(), " s: the collector ends, and its disk was full");
    }
    collector_->Stop(End::kOrderly);
  }
  if (!collector_->is_running()) {
    if (const absl::Status status = collector_->Start(); !status.ok()) {
      options_.log.Warn("the collector does not start", {{"reason", status.message()}});
    }
  }
  for (const auto& agent : agents_) {
    if (agent->is_running()) continue;
    if (const absl::Status status = agent->Start(); !status.ok()) {
      options_.log.Warn("an agent does not start", {{"reason", status.message()}});
    }
  }
}

bool Laboratory::Check(bool all) {
  if (!result_.wrong.empty()) return false;
  uint64_t lost = 0;
  bool only_dropped = true;
  for (const auto& agent : agents_) {
    agent->Observe();
    lost += agent->lost_samples();
    only_dropped = only_dropped && !agent->lost_otherwise();
    if (result_.wrong.empty()) result_.wrong = agent->wrong();
  }
  if (collector_->is_running()) ++result_.checks;
  if (result_.wrong.empty()) result_.wrong = collector_->Check(all, lost, only_dropped);
  if (!result_.wrong.empty()) {
    result_.wrong = absl::StrCat("after ", Now(), " s: ", result_.wrong);
  }
  return result_.wrong.empty();
}

void Laboratory::QueryParts() {
  std::string wrong = collector_->QueryParts();
  if (!wrong.empty() && result_.wrong.empty()) {
    result_.wrong = absl::StrCat("after ", Now(), " s: ", wrong);
  }
}

void Laboratory::Evening() {
  constexpr int64_t kLength = 200;
  constexpr int64_t kEvery = 5;
  for (const int64_t until = Now() + kLength; Now() < until && result_.wrong.empty();) {
    SleepNs(kEvery * kSecond);
    Supervise();
    QueryParts();
  }
}

std::string Laboratory::WhatWaits() const {
  for (const auto& agent : agents_) {
    if (!agent->is_running()) return absl::StrCat(agent->name(), " does not run");
    if (agent->waiting() > 0) {
      return absl::StrCat(agent->name(), " still has ", agent->waiting(), " messages");
    }
    if (agent->HasRings()) return absl::StrCat(agent->name(), " still has rings");
  }
  const std::string why = collector_->WhyNotReady();
  return why.empty() ? "" : absl::StrCat("the collector is not ready: ", why);
}

void Laboratory::EndFaults() {
  UndoDue(true);
  for (int number = 0; number <= static_cast<int>(agents_.size()); ++number) {
    SetDrift(HostOf(number), 0);
    StepWallClock(HostOf(number), -WallClockError(HostOf(number)));
    DiskOf(number)->Set({});
  }
}

void Laboratory::Drain() {
  EndFaults();
  const int64_t quiet_at = Now() + kWorkBeforeDrain;
  const int64_t until = quiet_at + kDrainWithin;
  const int64_t believed_by = quiet_at + kBelieveWithin;
  while (Now() < quiet_at || (!collector_->WhyNotReady().empty() && Now() < believed_by)) {
    SleepNs(5 * kSecond);
    Supervise();
  }
  for (const auto& agent : agents_) agent->StopSources();
  std::string waits;
  do {
    SleepNs(5 * kSecond);
    Supervise();
    waits = WhatWaits();
  } while (!waits.empty() && Now() < until && result_.wrong.empty() && !collector_->RefusesLies());
  if (!result_.wrong.empty() || collector_->RefusesLies()) return;
  if (!waits.empty() && !collector_->HasSaidDamage()) {
    result_.wrong = absl::StrCat(kDrainWithin, " s after the last fault ", waits);
    return;
  }
  if (HasEvening()) Evening();
  Check(true);
}

void Laboratory::Burst(uint64_t seed) {
  const std::vector<Fault> plan = PlanFaults({.seed = seed,
                                              .agents = static_cast<int>(agents_.size()),
                                              .seconds = options_.ticks,
                                              .lies = options_.seed % 7 == 0,
                                              .refusals = ReachesFurther(),
                                              .large = options_.seed % 17 == 16,
                                              .tight = options_.seed % 8 == 7,
                                              .rot = options_.seed % 9 == 8,
                                              .clocks = options_.seed % 13 == 12,
                                              .outages = HasSmallSpools(options_),
                                              .midnight = UntilMidnight(options_)});
  Supervise();
  const int64_t begin = Now();
  size_t next = 0;
  for (int64_t second = 0; second < options_.ticks && result_.wrong.empty(); ++second) {
    const int64_t due = (begin + second) * kSecond;
    if (due > LaboratoryNs()) SleepNs(due - LaboratoryNs());
    UndoDue(false);
    for (; next < plan.size() && plan[next].at_s <= second; ++next) Cause(plan[next]);
    Supervise();
    if (ReachesFurther()) QueryParts();
    if (second % knobs_.check_every_s == knobs_.check_every_s - 1) Check(false);
  }
}

Fault Laboratory::LongFault(int64_t seconds) const {
  constexpr FaultKind kKinds[] = {FaultKind::kPartition, FaultKind::kSuspend, FaultKind::kDiskFull,
                                  FaultKind::kDiskSlow};
  return {.at_s = Now(),
          .kind = kKinds[ScheduleRandom() % 4],
          .host = static_cast<int>(ScheduleRandom() % (agents_.size() + 1)),
          .amount = 5000,  // Bytes that are left, or ms of a sync.
          .seconds = seconds};
}

void Laboratory::Rest() {
  EndFaults();
  constexpr int64_t kHours[] = {1, 5, 13, 25, 50};
  constexpr int64_t kPeriods[] = {300, 1800, 3 * kHour};
  const int64_t length = kHours[ScheduleRandom() % 5] * kHour;
  const absl::Duration trickle = absl::Seconds(kPeriods[ScheduleRandom() % 3]);
  for (const auto& agent : agents_) agent->SetTrickle(trickle);
  if (ScheduleRandom() % 2 == 0) {
    const int64_t most = std::min(length, 20 * kHour);
    Cause(LongFault(1 + static_cast<int64_t>(ScheduleRandom() % static_cast<uint64_t>(most))));
  }
  const int64_t until = Now() + length;
  for (int64_t check_at = Now() + kCheckEvery; Now() < until && result_.wrong.empty();) {
    SleepNs(kLookEvery * kSecond);
    UndoDue(false);
    Supervise();
    if (Now() < check_at) continue;
    Check(false);
    check_at = Now() + kCheckEvery;
  }
  for (const auto& agent : agents_) agent->SetTrickle(absl::ZeroDuration());
}

LaboratoryResult Laboratory::Run() {
  Burst(options_.seed);
  const int64_t until = options_.days * 24 * kHour;
  for (uint64_t again = 1; Now() < until && result_.wrong.empty(); ++again) {
    Rest();
    if (result_.wrong.empty()) Burst(options_.seed + (again << 32));
  }
  if (result_.wrong.empty()) Drain();
  result_.rows = model_.rows();
  result_.acknowledged = model_.acknowledged_rows();
  result_.refused_samples = collector_->refused_samples();
  result_.range_samples = collector_->range_samples();
  result_.virtual_seconds = static_cast<double>(LaboratoryNs()) / kSecond;
  return std::move(result_);
}

}  // namespace tacho::simulate
