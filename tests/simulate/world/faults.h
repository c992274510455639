// What goes wrong in a simulation, and when: a list that follows from the seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tacho::simulate {

enum class FaultKind {
  kCollectorKill,
  kCollectorPowerCut,
  kCollectorRestart,  // In good order.
  kAgentKill,
  kAgentPowerCut,
  kAgentRestart,
  kCut,          // All connections of a host.
  kCutAfter,     // The connections of a host, after `amount` more bytes.
  kHalfOpen,     // Connections of a host die without a word.
  kPartition,    // A host reaches no collector for `seconds`.
  kClockStep,    // The wall clock of a host, by `amount` seconds, for `seconds`; then back.
  kDrift,        // Clocks of a host run faster by `amount` millionths.
  kSuspend,      // A host stands still for `seconds`.
  kDiskFull,     // Only `amount` bytes more fit, for `seconds`.
  kDiskSlow,     // A sync takes `amount` ms, for `seconds`.
  kAppendFails,  // `amount` appends to files fail.
  kSyncFails,    // `amount` syncs fail.
  kSyncLies,     // A sync of the collector's log does nothing; then a power cut, as above.
  // Only with the seeds that ask for them:
  kNoRoom,          // The `amount`-th append is refused for want of room; then there is some again.
  kNoRoomForLarge,  // The same of the next append of `amount` bytes or more: sealed rows, tables.
  kSpoolLost,       // An agent's spool is gone.
  kSpoolCopied,     // An agent's spool is copied now, and `seconds` later the copy takes its place.
  kRot,             // A bit of a file of the collector changes that was synced.
  kSlowLook,        // To find out how much room is left takes `amount` ms, for `seconds`.
};

struct Fault {
  int64_t at_s = 0;
  FaultKind kind = FaultKind::kCut;
  int host = 0;  // 0: the collector; else agent `host` - 1.
  int64_t amount = 0;
  int64_t seconds = 0;
  int64_t effects = 0;  // kNoRoomForLarge: the process is killed at this effect after the refusal.
};

// How many agents there are.
struct FaultPlanOptions {
  uint64_t seed = 1;
  int agents = 3;
  int64_t seconds = 600;  // Faults come in this time.
  bool lies = false;      // Whether the collector's disk lies about syncs too.
  bool refusals = false;  // Whether disks refuse writes again and again, and spools are lost too.
  bool large = false;     // Whether the collector's disk refuses large writes again and again.
  bool tight = false;   // Whether the collector's disk has room for its log only, and it is killed.
  bool rot = false;     // Whether bits change on the collector's disk.
  bool clocks = false;  // Whether the collector's clock is set by much, again and again.
  bool outages = false;  // Whether agents are cut off for as long as fills a small spool.
  // Seconds until midnight, when the collector's disk has room for rows, but not for another day;
  // 0: that is not in the plan.
  int64_t midnight = 0;
};
// Clock steps are such that most clocks are right at any time, the collector's or those of most
// agents: only then can it be known which rows are right.
std::vector<Fault> PlanFaults(const FaultPlanOptions& options);

// "at 12 s: the collector's power is cut".
std::string Describe(const Fault& fault);

}  // namespace tacho::simulate
