#include "tests/simulate/world/faults.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tacho::simulate {
namespace {

struct KindRow {
  FaultKind kind;
  int weight;
  const char* text;
};
constexpr KindRow kKinds[] = {
    {FaultKind::kCollectorKill, 6, "is killed at the n-th effect on its disk"},
    {FaultKind::kCollectorPowerCut, 6, "loses power at the n-th effect on its disk"},
    {FaultKind::kCollectorRestart, 3, "is restarted"},
    {FaultKind::kAgentKill, 4, "is killed at the n-th effect on its disk"},
    {FaultKind::kAgentPowerCut, 4, "loses power at the n-th effect on its disk"},
    {FaultKind::kAgentRestart, 2, "is restarted"},
    {FaultKind::kCut, 6, "loses its connections"},
    {FaultKind::kCutAfter, 6, "loses its connections after so many bytes"},
    {FaultKind::kHalfOpen, 3, "has half-open connections"},
    {FaultKind::kPartition, 4, "is cut off"},
    {FaultKind::kClockStep, 8, "has its clock set by so many seconds"},
    {FaultKind::kDrift, 2, "has a clock that drifts by so many millionths"},
    {FaultKind::kSuspend, 4, "is suspended"},
    {FaultKind::kDiskFull, 4, "has a disk with so many bytes left"},
    {FaultKind::kDiskSlow, 3, "has a disk that syncs in so many ms"},
    {FaultKind::kAppendFails, 2, "has so many appends fail"},
    {FaultKind::kSyncFails, 2, "has so many syncs fail"},
    // Only with the seeds that ask for it.
    {FaultKind::kSyncLies, 0,
     "has a disk that lies about a sync, and loses power at the n-th effect on it"},
    {FaultKind::kNoRoom, 0, "has a disk that refuses the n-th append for want of room"},
    {FaultKind::kNoRoomForLarge, 0,
     "has a disk that refuses the next append of so many bytes for want of room"},
    {FaultKind::kSpoolLost, 0, "loses its spool"},
    {FaultKind::kSpoolCopied, 0, "has its spool copied, and gets the copy back"},
    {FaultKind::kRot, 0, "has a bit changed in a file that was synced"},
    {FaultKind::kSlowLook, 0, "has a disk that says in so many ms what room is left"},
};

bool IsOfCollector(FaultKind kind) { return kind <= FaultKind::kCollectorRestart; }
bool IsOfAgent(FaultKind kind) {
  return kind >= FaultKind::kAgentKill && kind <= FaultKind::kAgentRestart;
}

class Planner {
 public:
  explicit Planner(const FaultPlanOptions& options) : options_(options), random_(options.seed) {}

  std::vector<Fault> Plan() {
    // A few kinds of fault, often, show more than many kinds, each once.
    for (const KindRow& row : kKinds) {
      if (row.weight > 0 && Below(3) == 0) weights_.emplace_back(row.kind, row.weight);
    }
    const int count = weights_.empty() ? 0 : static_cast<int>(Below(options_.seconds / 20 + 2));
    std::vector<Fault> plan;
    for (int i = 0; i < count; ++i) plan.push_back(One());
    for (int64_t left = options_.lies ? 1 + Below(3) : 0; left > 0; --left) {
      plan.push_back(
          {.at_s = Below(options_.seconds), .kind = FaultKind::kSyncLies, .amount = AnyScale(40)});
    }
    if (options_.refusals) AddRefusals(&plan);
    if (options_.clocks) AddClocks(&plan);
    if (options_.large) AddLargeRefusals(&plan);
    if (options_.tight) AddTightDisks(&plan);
    if (options_.midnight > 0) AddMidnight(&plan);
    if (options_.outages) AddOutages(&plan);
    for (int64_t left = options_.rot ? 1 + Below(4) : 0; left > 0; --left) {
      const int64_t at = Below(options_.seconds);
      plan.push_back({.at_s = at, .kind = FaultKind::kRot});
      // Much is read only at the next start.
      if (Below(3) != 0) plan.push_back({.at_s = at + Below(20), .kind = Restart(), .amount = 1});
    }
    std::sort(plan.begin(), plan.end(),
              [](const Fault& a, const Fault& b) { return a.at_s < b.at_s; });
    return plan;
  }

 private:
  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(std::max<int64_t>(1, bound)));
  }
  // From 1 to `most`, each order of magnitude as often.
  int64_t AnyScale(int64_t most) {
    int64_t scale = 1;
    while (scale < most && Below(5) != 0) scale *= 4;
    return std::min(most, scale + Below(scale));
  }

  FaultKind Kind() {
    int sum = 0;
    for (const auto& [kind, weight] : weights_) sum += weight;
    int64_t at = Below(sum);
    for (const auto& [kind, weight] : weights_) {
      at -= weight;
      if (at < 0) return kind;
    }
    return weights_.front().first;
  }

  Fault One() {
    Fault fault = {.at_s = Below(options_.seconds), .kind = Kind()};
    const bool of_collector = IsOfCollector(fault.kind) || Below(2) == 0;
    fault.host =
        of_collector && !IsOfAgent(fault.kind) ? 0 : 1 + static_cast<int>(Below(options_.agents));
    fault.seconds = AnyScale(options_.seconds / 4);
    switch (fault.kind) {
      case FaultKind::kClockStep:
        // Of the agents only the first may lie.
        fault.host = Below(3) == 0 ? 1 : 0;
        fault.amount = AnyScale(400 * 86400) * (Below(2) == 0 ? 1 : -1);
        break;
      case FaultKind::kCollectorKill:
      case FaultKind::kCollectorPowerCut:
      case FaultKind::kAgentKill:
      case FaultKind::kAgentPowerCut:
        fault.amount = AnyScale(300);
        break;
      case FaultKind::kDrift:
        fault.amount = Below(400) - 200;
        break;
      case FaultKind::kCutAfter:
        fault.amount = AnyScale(20'000);
        break;
      case FaultKind::kDiskFull:
        fault.amount = Below(3) == 0 ? 0 : AnyScale(200'000);
        break;
      case FaultKind::kDiskSlow:
        fault.amount = AnyScale(5'000);
        break;
      case FaultKind::kSuspend:
        fault.seconds = AnyScale(300);
        break;
      case FaultKind::kAppendFails:
      case FaultKind::kSyncFails:
        fault.amount = AnyScale(3);
        break;
      default:
        break;
    }
    return fault;
  }

  // Refused writes of any kind, and now and then the end of the process that met them.
  void AddRefusals(std::vector<Fault>* plan) {
    for (int64_t left = 10 + Below(20); left > 0; --left) {
      const bool fails = Below(4) == 0;
      plan->push_back(
          {.at_s = Below(options_.seconds),
           .kind = fails ? FaultKind::kAppendFails : FaultKind::kNoRoom,
           .host = static_cast<int>(std::max<int64_t>(0, Below(6) - 2)) % (options_.agents + 1),
           .amount = fails ? 1 : AnyScale(60),
           .seconds = 1 + Below(20)});
    }
    for (int64_t left = Below(4); left > 0; --left) {
      plan->push_back(
          {.at_s = Below(options_.seconds),
           .kind = Below(2) == 0 ? FaultKind::kCollectorKill : FaultKind::kCollectorPowerCut,
           .amount = AnyScale(40)});
    }
    for (int64_t left = Below(3); left > 0; --left) {
      plan->push_back({.at_s = Below(options_.seconds),
                       .kind = Below(2) == 0 ? FaultKind::kSpoolLost : FaultKind::kSpoolCopied,
                       .host = 1 + static_cast<int>(Below(options_.agents)),
                       .seconds = 5 + Below(30)});
    }
  }

  FaultKind Restart() {
    constexpr FaultKind kEnds[] = {FaultKind::kCollectorRestart, FaultKind::kCollectorKill,
                                   FaultKind::kCollectorPowerCut};
    return kEnds[Below(3)];
  }

  void AddLargeRefusals(std::vector<Fault>* plan) {
    for (int64_t left = 20 + Below(20); left > 0; --left) {
      plan->push_back({.at_s = Below(options_.seconds),
                       .kind = FaultKind::kNoRoomForLarge,
                       .amount = 300 + AnyScale(4000),
                       .seconds = 20,
                       .effects = Below(2) == 0 ? AnyScale(200) : 0});
    }
    for (int64_t left = Below(3); left > 0; --left) {
      plan->push_back(
          {.at_s = Below(options_.seconds), .kind = FaultKind::kCollectorKill, .amount = 1});
    }
  }

  // First there is no room, then enough for a few records of the log but not for a table, and then
  // the process is killed.
  void AddTightDisks(std::vector<Fault>* plan) {
    for (int64_t left = 2 + Below(6); left > 0; --left) {
      const int64_t at = Below(options_.seconds);
      const int64_t full_for = 1 + Below(6);
      const int64_t tight_for = 4 + Below(12);
      plan->push_back(
          {.at_s = at, .kind = FaultKind::kDiskFull, .amount = Below(1000), .seconds = full_for});
      plan->push_back({.at_s = at + full_for,
                       .kind = FaultKind::kDiskFull,
                       .amount = 50 + AnyScale(4000),
                       .seconds = tight_for});
      plan->push_back({.at_s = at + full_for + 1 + Below(tight_for),
                       .kind = FaultKind::kCollectorKill,
                       .amount = AnyScale(20)});
    }
  }

  // Rows are taken, cannot be sealed for want of a day, and go back; others of the same layouts
  // come while the store looks for room. Then the process is killed.
  void AddMidnight(std::vector<Fault>* plan) {
    const int64_t begin = std::max<int64_t>(0, options_.midnight - 1 - Below(10));
    const int64_t length = 30 + Below(40);
    plan->push_back({.at_s = begin,
                     .kind = FaultKind::kDiskFull,
                     .amount = 300'000 + Below(1'500'000),
                     .seconds = length});
    plan->push_back({.at_s = begin,
                     .kind = FaultKind::kSlowLook,
                     .amount = 50 + Below(800),
                     .seconds = length});
    for (int64_t left = 1 + Below(2); left > 0; --left) {
      plan->push_back(
          {.at_s = begin + 10 + Below(length),
           .kind = Below(2) == 0 ? FaultKind::kCollectorKill : FaultKind::kCollectorPowerCut,
           .amount = AnyScale(20)});
    }
  }

  void AddOutages(std::vector<Fault>* plan) {
    for (int64_t left = 3 + Below(5); left > 0; --left) {
      plan->push_back({.at_s = Below(options_.seconds),
                       .kind = FaultKind::kPartition,
                       .host = 1 + static_cast<int>(Below(options_.agents)),
                       .seconds = 30 + Below(40)});
    }
  }

  // Beyond what agents' rows may be ahead, or retention keeps: an hour back at least, or 31 days
  // ahead. A collector that starts meanwhile has no earlier time to compare with.
  void AddClocks(std::vector<Fault>* plan) {
    for (int64_t left = 2 + Below(6); left > 0; --left) {
      const int64_t days = 86'400 * (31 + Below(300));
      const Fault step = {.at_s = Below(options_.seconds),
                          .kind = FaultKind::kClockStep,
                          .amount = Below(2) == 0 ? days : -3600 * (1 + Below(48)),
                          .seconds = 5 + Below(40)};
      plan->push_back(step);
      if (Below(2) == 0) continue;
      plan->push_back({.at_s = step.at_s + 1, .kind = FaultKind::kCollectorRestart});
    }
  }

  const FaultPlanOptions options_;
  std::mt19937_64 random_;
  std::vector<std::pair<FaultKind, int>> weights_;  // Of the kinds that this plan has.
};

}  // namespace

std::vector<Fault> PlanFaults(const FaultPlanOptions& options) { return Planner(options).Plan(); }

std::string Describe(const Fault& fault) {
  const char* text = "";
  for (const KindRow& row : kKinds) {
    if (row.kind == fault.kind) text = row.text;
  }
  const std::string who =
      fault.host == 0 ? "the collector" : absl::StrCat("agent-", fault.host - 1);
  const std::string killed =
      fault.effects == 0 ? "" : absl::StrCat(", then killed at effect ", fault.effects);
  return absl::StrCat("at ", fault.at_s, " s: ", who, " ", text, " (amount ", fault.amount,
                      ", for ", fault.seconds, " s", killed, ")");
}

}  // namespace tacho::simulate
