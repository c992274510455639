// The flags that commands which ask agents have in common.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/ctl/line/command.h"

namespace tacho::ctl {

// Adds each --task to the request's tasks.
//   INVALID_ARGUMENT  one is no number; the text says which.
template <typename Request>
absl::Status AddTasks(const Invocation& invocation, Request* request);
absl::StatusOr<uint32_t> ParseTask(absl::string_view text);

// The milliseconds of a flag with a time from 1ms to 1m; those of `usual` without it.
//   INVALID_ARGUMENT  the text names the flag.
absl::StatusOr<uint32_t> RequestMilliseconds(const Invocation& invocation, absl::string_view flag,
                                             absl::Duration usual);

template <typename Request>
absl::Status AddTasks(const Invocation& invocation, Request* request) {
  for (const std::string& text : invocation.args.GetAll("task")) {
    const auto task = ParseTask(text);
    if (!task.ok()) return task.status();
    request->add_tasks(*task);
  }
  return absl::OkStatus();
}

}  // namespace tacho::ctl
