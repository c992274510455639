// The events with which a task ends: the agent, a trainer without one, and trainers themselves send
// them, and everything that judges jobs reads them.
#pragma once

#include <string_view>

namespace tacho {

// The task did what it was to do: its recorder was closed, or the trainer says so.
inline constexpr char kEndedKind[] = "ended";
// Its process is gone and left its record open, or it failed. The fields say what is known:
// "signal", "exit_code", "exception".
inline constexpr char kExitedKind[] = "exited";

// Whether the kind of an event (any type of string) is that of an end.
template <typename Text>
bool IsEndKind(const Text& kind) {
  const std::string_view text(kind.data(), kind.size());
  return text == kEndedKind || text == kExitedKind;
}

}  // namespace tacho
