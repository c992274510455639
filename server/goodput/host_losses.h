// Seconds that a synchronous job lost to its slowest hosts: all tasks of a step wait for the last.
// Pure. docs/goodput.md defines it for users.
//
// Definition. A task's own work in a step is the time in which it does not wait for others: its
// step time less what it waits in collectives, or where that is not recorded its input, compute and
// checkpoint time. A host's own work is that of its slowest task. With m the lower median of the
// hosts' own work and s = 1.4826 x the median of |own - m|, a host is slow in the step if
//   own - m > max(r x m, kDeviations x s, kLeastSeconds),
// where r is kLeastRatio, or kFewHostsRatio if fewer than kFewHosts say too little about s.
// The step then lost max(own) - m. That is shared by time: of each moment after m, the slow hosts
// that are still at work in it bear equal parts. So all of it goes to one host if one is slow, and
// the shares always add up to the loss. The reason is the phase in which the host's slowest task is
// furthest above the median of that phase.
//
// The whole difference counts once it is over the threshold, nothing below it: the noise of healthy
// hosts is not charged to anybody. Fewer than kLeastHosts hosts that recorded a step are no basis.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tacho::server::goodput {

// In the order of v1::LossReason, which begins with 1.
enum class LossReason : uint8_t { kInput, kCompute, kCommunication, kCheckpoint, kCount };
inline constexpr size_t kLossReasons = static_cast<size_t>(LossReason::kCount);
absl::string_view LossReasonName(LossReason reason);  // "input", …

// What a task recorded of one step, in seconds. NaN, infinite and negative values count as absent.
struct RecordedStep {
  double step = 0;
  double input = 0;
  double compute = 0;
  double comm_wait = 0;
  double checkpoint = 0;
};

// A task's own work in one step, by phase. Communication is what is left of its own work beside the
// recorded phases: sending and receiving, mostly.
struct OwnWork {
  std::array<double, kLossReasons> phases = {};
  double total = 0;
};
// False if nothing tells the task's own work from its waiting: neither its waiting nor its compute
// time is recorded. For one task the other phases may be absent, and are 0.
bool OwnWorkOf(const RecordedStep& recorded, OwnWork* own);

// The loss of one host, in seconds by reason.
using HostLoss = std::array<double, kLossReasons>;

// Adds up the losses of a job's steps. Not thread-safe.
class HostLosses {
 public:
  static constexpr double kLeastRatio = 0.1;
  static constexpr double kFewHostsRatio = 0.15;
  static constexpr size_t kFewHosts = 8;
  static constexpr double kDeviations = 6;
  static constexpr double kLeastSeconds = 0.001;
  static constexpr size_t kLeastHosts = 2;

  struct TaskStep {
    size_t host = 0;  // Its number in the order of the caller's.
    OwnWork own;
  };
  // What one step lost, or several for which it stands.
  struct StepLoss {
    double seconds = 0;
    double median_seconds = 0;  // The hosts' own work in one step: m. Only if seconds > 0.
  };
  // One step, with those tasks that recorded it. It stands for `steps` steps. No more is lost than
  // `most_seconds` for all of them: what the step took.
  StepLoss AddStep(const std::vector<TaskStep>& tasks, double steps, double most_seconds);

  // By host.
  const std::map<size_t, HostLoss>& losses() const { return losses_; }
  uint64_t judged_steps() const { return judged_; }

 private:
  std::map<size_t, HostLoss> losses_;
  uint64_t judged_ = 0;
};

}  // namespace tacho::server::goodput
