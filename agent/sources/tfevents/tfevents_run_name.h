// Which job, task and attempt a run directory stands for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "re2/re2.h"
#include "tacho/config/v1/agent.pb.h"

namespace tacho::agent {

struct TfeventsRunName {
  std::string job;
  uint32_t task = 0;
  std::optional<uint32_t> attempt;  // Only if the pattern has such a group and it took part.
};

class TfeventsRunNamer {
 public:
  //   INVALID_ARGUMENT  the pattern is no RE2, or the job's template names a group that the pattern
  //                     does not have, or has a brace without its partner.
  static absl::StatusOr<TfeventsRunNamer> Create(
      const config::v1::Agent::TfeventsDirectory& config);

  // `directory` is relative to the log directory, "." for the log directory itself.
  //   NOT_FOUND         the pattern does not match.
  //   INVALID_ARGUMENT  it does, but gives no job's name or a task or attempt that is no number.
  absl::StatusOr<TfeventsRunName> Name(absl::string_view directory) const;

 private:
  // A piece of the job's template: a text, or the number of a group.
  struct Piece {
    std::string text;
    int group = 0;
  };

  TfeventsRunNamer() = default;
  absl::Status ParseTemplate(absl::string_view text);

  std::unique_ptr<RE2> pattern_;
  std::vector<Piece> job_;
  int task_group_ = 0;     // 0: the pattern has none.
  int attempt_group_ = 0;  // 0: the pattern has none.
  uint32_t task_ = 0;
};

}  // namespace tacho::agent
