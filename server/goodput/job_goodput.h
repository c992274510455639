// The ledger and the step figures of one job, always made from all that the store holds of it, so
// that late rows, imports and a restart of the collector give what an uninterrupted watch would
// have given. Memory does not grow with the number of steps; time does: there are two walks over
// the reference task's steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/conditions/window/signal_names.h"
#include "server/goodput/attempt_facts.h"
#include "server/goodput/host_losses.h"
#include "server/goodput/ledger.h"
#include "server/goodput/step_figures.h"
#include "server/query/read/query_control.h"
#include "storage/store.h"

namespace tacho::server::goodput {

// At most so many attempts count, the newest ones, and so many of their events.
inline constexpr size_t kMaxGoodputAttempts = 10'000;
inline constexpr size_t kMaxPhaseEvents = 200'000;
inline constexpr size_t kMaxLosingHosts = 1000;

struct JobGoodput {
  std::string job;
  Ledger total;
  struct Attempt {
    uint32_t attempt = 0;
    Ledger ledger;
  };
  std::vector<Attempt> attempts;  // Ascending.
  std::vector<BucketSpan> spans;  // How `total` came about; empty if not asked for.
  uint64_t spans_joined = 0;
  StepFigures steps;                      // They describe `steps_attempt`.
  std::vector<float> step_times;          // The `steps.sampled` behind them, in their order; s.
  std::optional<uint32_t> steps_attempt;  // The newest attempt with steps.
  // Over all attempts, by the counter of tokens; nullopt: it is not recorded.
  std::optional<double> tokens_per_step;
  std::optional<uint32_t> reference_task;
  std::string step_metric;
  // Its newest attempt, whose attributes and hosts follow.
  uint32_t attempt = 0;
  AttemptAttributes attributes;
  std::vector<std::string> hosts;  // The hosts that its tasks ran on last; ascending.
  // What the whole job lost to single hosts, the worst first; at most kMaxLosingHosts. The time is
  // in the buckets of `total`, too.
  struct Losing {
    std::string host;
    HostLoss seconds = {};
  };
  std::vector<Losing> losing_hosts;
  double lost_seconds = 0;         // To all hosts, those that are not listed included.
  uint64_t loss_judged_steps = 0;  // 0: nothing that is recorded tells work from waiting.
  bool has_steps = false;
  bool has_phases = false;  // Events of phases were recorded.
};

// With at most `max_spans` spans; 0: none. `reports` may be null (attempt_facts.h).
//   NOT_FOUND  there is no such job.
//   others     from the store and the control.
absl::StatusOr<JobGoodput> GoodputOf(const storage::Store& store, absl::string_view job,
                                     const conditions::SignalNames& names, absl::Time now,
                                     const query::QueryControl& control, size_t max_spans = 0,
                                     const AgentReports& reports = nullptr);

}  // namespace tacho::server::goodput
