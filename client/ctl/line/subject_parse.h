// JOB[@ATTEMPT]: what 'plot', 'compare' and 'report' are asked about.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tacho::ctl {

struct SubjectName {
  std::string job;
  std::optional<uint32_t> attempt;

  // As it was typed.
  std::string Text() const;
};

// What follows the last '@' is an attempt if it is a number; nothing after it stands for none, so
// that "a@1@" is the job "a@1". Every other text is the name of a job as it is.
SubjectName ParseSubject(absl::string_view text);

}  // namespace tacho::ctl
