// What the conditions of progress are evaluated over: faults of several sizes, on several fleets,
// and healthy runs that look like trouble.
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/support/scenario.h"
#include "tests/support/synthetic_noise.h"

namespace tacho::testing {
namespace {

constexpr double kAt = 700;

class List {
 public:
  explicit List(uint64_t seed) : seed_(seed) {}

  // A fault on one host, or on all.
  Scenario& Add(std::string condition, std::string name, Fault fault, FleetOptions fleet = {}) {
    fleet.seed = seed_ * 1000 + list_.size();
    fault.at_seconds = kAt + 60 * SyntheticUniform(fleet.seed, NoiseStream::kDelay, 0, 0);
    Scenario& made = list_.emplace_back();
    made.name = std::move(name);
    made.condition = std::move(condition);
    made.at_seconds = fault.at_seconds;
    made.until_seconds = fault.until_seconds;
    if (fault.host != kAllHosts) {
      made.host = SyntheticHost(fault.host);
      made.task = fault.host * fleet.tasks_per_host;
    }
    made.fleet = std::move(fleet);
    made.faults = {fault};
    return made;
  }
  Scenario& Healthy(std::string name, FleetOptions fleet) {
    Scenario& made = Add("", std::move(name), {}, std::move(fleet));
    made.faults.clear();
    made.host.reset();
    made.at_seconds = 0;
    return made;
  }
  std::vector<Scenario> Take() { return std::move(list_); }

 private:
  uint64_t seed_;
  std::vector<Scenario> list_;
};

void AddStops(List* list) {
  for (const uint32_t tasks : {4, 16, 64}) {
    list->Add("Stalled", absl::StrCat("hang of one of ", tasks),
              {.kind = FaultKind::kHang, .host = tasks / 3}, {.tasks = tasks})
        .may_follow = {"TrainerSilent"};
  }
  list->Add("Stalled", "hang before the last row of its step",
            {.kind = FaultKind::kHang, .host = 5, .amount = 1})
      .may_follow = {"TrainerSilent"};
  list->Add("Stalled", "hang of a job with slow steps", {.kind = FaultKind::kHang, .host = 2},
            {.tasks = 8, .compute = 40, .checkpoint_every = 1000, .eval_every = 1000})
      .may_follow = {"TrainerSilent"};
  list->Add("Stalled", "input of all stops", {.kind = FaultKind::kDataStall}).may_follow = {
      "TrainerSilent"};
}

void AddSlowHosts(List* list) {
  for (const double amount : {0.15, 0.3, 1.0}) {
    list->Add("Straggling", absl::StrCat("one of 32 hosts ", 100 * amount, " % slower"),
              {.kind = FaultKind::kSlowHost, .host = 11, .amount = amount}, {.tasks = 32})
        .may_follow = {"ThroughputDropped"};
  }
  // Chance decides which of its tasks is the slowest.
  Scenario& wide = list->Add("Straggling", "slow host of 8 tasks a host",
                             {.kind = FaultKind::kSlowHost, .host = 3, .amount = 0.3},
                             {.tasks = 64, .tasks_per_host = 8});
  wide.task.reset();
  wide.may_follow = {"ThroughputDropped"};
  list->Add("Straggling", "slow input of one host",
            {.kind = FaultKind::kSlowInput, .host = 3, .amount = 0.4}, {.tasks = 16})
      .may_follow = {"ThroughputDropped"};
  list->Add("Straggling", "slow host, only waits in the barrier recorded",
            {.kind = FaultKind::kSlowHost, .host = 9, .amount = 0.3},
            {.omit = {server::conditions::Signal::kCompute, server::conditions::Signal::kDataWait}})
      .may_follow = {"ThroughputDropped"};
  list->Add("Straggling", "one of 16 hosts twice as slow in one step of three",
            {.kind = FaultKind::kNowAndThen, .host = 4, .amount = 1})
      .may_follow = {"ThroughputDropped"};
  list->Add("Straggling", "slow host without barriers, only step times recorded",
            {.kind = FaultKind::kSlowHost, .host = 9, .amount = 0.3},
            {.synchronous = false,
             .omit = {server::conditions::Signal::kCompute, server::conditions::Signal::kDataWait,
                      server::conditions::Signal::kCommWait}});
}

// Measured from the beginning of the first long checkpoint.
void AddLongPhases(List* list) {
  for (const double seconds : {500, 800}) {
    Scenario& scenario = list->Add(
        "PhaseLong", absl::StrCat("a checkpoint takes ", seconds, " s, after some of 6 s"),
        {.kind = FaultKind::kLongSave, .amount = seconds});
    const SyntheticFleet fleet(scenario.fleet, scenario.faults, scenario.duration_seconds);
    scenario.at_seconds = fleet.CheckpointAfter(scenario.at_seconds).value();
  }
}

void AddSlowJobs(List* list) {
  for (const double amount : {0.2, 0.5}) {
    list->Add("InputBound", absl::StrCat("input takes ", 100 * amount, " % of each step"),
              {.kind = FaultKind::kInputBound, .amount = amount})
        .may_follow = {"ThroughputDropped", "LowUtilization"};
    list->Add("ThroughputDropped", absl::StrCat("all compute ", 100 * amount, " % longer"),
              {.kind = FaultKind::kSlowdown, .amount = amount});
  }
  list->Add("LowUtilization", "chips at a quarter", {.kind = FaultKind::kLowUse, .amount = 0.25});
  list->Add("LowUtilization", "a chip is not used", {.kind = FaultKind::kIdleChip, .host = 4})
      .task.reset();
  Scenario& slower = list->Add(
      "SlowerThanBaseline", "an attempt slower than the one before",
      {.kind = FaultKind::kSlowdown, .amount = 0.3},
      {.attempt = 1,
       .baselines = {{.job = "synthetic", .attempt = 0, .steps = 900, .step_time_median = 0.94}}});
  slower.faults[0].at_seconds = slower.at_seconds = 0;
}

void AddLostHosts(List* list) {
  list->Add("TaskMissing", "a task goes while others go on",
            {.kind = FaultKind::kMissingTask, .host = 6})
      .may_follow = {"TrainerSilent", "LowUtilization"};
  Scenario& never =
      list->Add("TaskMissing", "a task never comes", {.kind = FaultKind::kNeverStarted, .host = 6});
  never.faults[0].at_seconds = never.at_seconds = 0;
  never.host.reset();
  list->Add("AgentSilent", "an agent falls silent", {.kind = FaultKind::kSilentAgent, .host = 6});
  list->Add("TrainerSilent", "a trainer falls silent",
            {.kind = FaultKind::kSilentTrainer, .host = 6})
      .may_follow = {"TaskMissing"};
  list->Add("ClockSkewed", "a clock 30 s ahead",
            {.kind = FaultKind::kClockSkew, .host = 6, .amount = 30})
      .task.reset();
  list->Add("DataLoss", "1,000 rows lost",
            {.kind = FaultKind::kDataLoss, .host = 6, .amount = 1000})
      .task.reset();
}

void AddSlowCollectives(List* list) {
  list->Add("SlowCollective", "the collective of all takes twice as long",
            {.kind = FaultKind::kSlowComm, .amount = 0.2}, {.collectives = true})
      .may_follow = {"ThroughputDropped"};
  list->Add("SlowCollective", "a slow link in a ring",
            {.kind = FaultKind::kSlowLink, .host = 5, .amount = 0.15}, {.collectives = true})
      .may_follow = {"ThroughputDropped"};
  Scenario& from_start = list->Add("SlowCollective", "a link that is slow from the beginning",
                                   {.kind = FaultKind::kSlowLink, .host = 2, .amount = 0.2},
                                   {.tasks = 8, .collectives = true});
  from_start.faults[0].at_seconds = from_start.at_seconds = 0;
  list->Add("Straggling", "slow host of a job with collectives",
            {.kind = FaultKind::kSlowHost, .host = 9, .amount = 0.3}, {.collectives = true})
      .may_follow = {"ThroughputDropped"};
  list->Healthy("healthy, collectives", {.tasks = 32, .collectives = true});
  list->Healthy("healthy, noisy collectives",
                {.collectives = true, .comm_noise = 0.3, .noise = 0.05});
  list->Healthy("healthy, collectives without barriers",
                {.synchronous = false, .collectives = true});
}

void AddHealthy(List* list) {
  for (int i = 0; i < 8; ++i) list->Healthy(absl::StrCat("healthy ", i), {.tasks = 16});
  list->Healthy("healthy, 64 hosts", {.tasks = 64});
  list->Healthy("healthy, noisy", {.noise = 0.05, .host_spread = 0.02});
  list->Healthy("healthy, one task", {.tasks = 1});
  list->Healthy("healthy, without barriers", {.synchronous = false});
  list->Healthy("healthy, steps of 40 s", {.tasks = 8, .compute = 40, .compile_seconds = 300});
  list->Healthy("healthy, long checkpoints, told by events",
                {.checkpoint_every = 300, .checkpoint_seconds = 200});
  list->Healthy("healthy, long checkpoints, not told",
                {.checkpoint_every = 150, .checkpoint_seconds = 70, .events = false});
  list->Healthy("healthy, long evaluations", {.eval_every = 400, .eval_seconds = 240});
  list->Healthy("healthy, compiles for 10 minutes", {.compile_seconds = 600});
  list->Healthy("healthy, a row every 50 steps", {.log_every = 50});
  list->Healthy("healthy, ends well", {.steps = 800});
  list->Healthy(
      "healthy, only loss recorded",
      {.omit = {server::conditions::Signal::kCompute, server::conditions::Signal::kDataWait,
                server::conditions::Signal::kCommWait, server::conditions::Signal::kStepTime}});
}

}  // namespace

std::vector<Scenario> ProgressScenarios(uint64_t seed) {
  List list(seed);
  AddStops(&list);
  AddSlowHosts(&list);
  AddLongPhases(&list);
  AddSlowJobs(&list);
  AddLostHosts(&list);
  AddHealthy(&list);
  AddSlowCollectives(&list);
  return list.Take();
}

}  // namespace tacho::testing
