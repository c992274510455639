// A fault of the fleet, as one line of words:
//
//   slow     job=J host=H|task=N [factor=1.5]   own compute takes so much longer
//   input    job=J [host=H|task=N] [factor=20]  so much longer waits for data
//   hang     job=J host=H|task=N                never reaches the barrier; the others wait in it
//   crash    job=J host=H|task=N                the same, and its chips are free
//   nan      job=J task=N                       its loss and gradient; a step later everybody's
//   spike    job=J [factor=4]                   loss of everybody, falling back over 50 steps
//   disagree job=J task=N                       its weights are not those of the others
//   leak     job=J host=H [chip=N] [bytes=6e9]  HBM grows by so much a second, to its end
//   ecc      job=J host=H [chip=N]              uncorrectable errors, remapped rows, an XID
//   throttle job=J host=H [factor=0.6]          clock and power down, heat up, its tasks slower
//   restart  job=J [to=STEP] [down=SECONDS]     a new attempt from an earlier step
//   end      job=J [status=succeeded|failed]
//   recover  job=J                              everything above that can end ends
//
// Each takes step=S: at the end of that step (a hang: in it) instead of at the next.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tacho::fleet {

enum class FaultKind : uint8_t {
  kSlow,
  kInput,
  kHang,
  kCrash,
  kNan,
  kSpike,
  kDisagree,
  kLeak,
  kEcc,
  kThrottle,
  kRestart,
  kEnd,
  kRecover,
};

struct Fault {
  FaultKind kind = FaultKind::kRecover;
  std::string text;  // As it was given.
  std::string job;
  std::string host;  // Empty: not given.
  std::optional<uint32_t> task;
  std::optional<uint32_t> chip;  // The number at the host, from 0.
  std::optional<double> factor;
  double bytes_per_second = 6e9;
  std::optional<int64_t> step;     // Begins at this step; nullopt: now.
  std::optional<int64_t> to_step;  // Where a restart continues; nullopt: the last checkpoint.
  double down_seconds = 3;
  std::string status = "succeeded";
};

//   INVALID_ARGUMENT  says which word is wrong and what is expected.
absl::StatusOr<Fault> ParseFault(absl::string_view line);

}  // namespace tacho::fleet
