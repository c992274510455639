// Runs a program, takes what it writes, and ends it when its time is over.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tacho::agent {

struct ChildOutput {
  int exit_status = 0;  // As a shell has it: 128 and the signal's number if one ended it.
  std::string text;     // Standard output and standard error, at most kMaxChildOutput of it.
};

inline constexpr size_t kMaxChildOutput = 64 << 10;

// The program is looked up in PATH and gets `input` as a file on its standard input, which may be
// empty. It is the leader of a process group of its own, all of which is killed at the deadline,
// and when the program itself has ended.
//   NOT_FOUND          there is no such program.
//   DEADLINE_EXCEEDED  it did not end in time; the text has the end of what it wrote.
//   UNAVAILABLE        it could not be started.
absl::StatusOr<ChildOutput> RunChild(const std::vector<std::string>& arguments,
                                     const std::string& input, absl::Duration timeout);

}  // namespace tacho::agent
