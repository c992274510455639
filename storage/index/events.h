// An event as the column family "events" holds it, under EventKey().
//
//   varint task + 1, or 0 for none · varint attempt · string host · byte 1 and zig-zag varint step,
//   or byte 0 · string kind · string message · varint fields · each as string name, string value
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "storage/model/event.h"

namespace tacho::storage {

std::string EncodeEvent(const Event& event);

// Everything but the job and the time, which are in the key. nullopt if the bytes are no event.
std::optional<Event> DecodeEvent(absl::string_view bytes);

// One event of lost messages: kind "data_lost", its host is the agent's id.
Event LossEvent(absl::string_view agent_id, int64_t time_ns, absl::string_view reason,
                uint64_t rows, uint64_t first_sequence, uint64_t last_sequence);

// Not thread-safe. What is counted and then not written, because the disk refuses, stays counted:
// an event may count some messages twice.
class LossRuns {
 public:
  static constexpr int64_t kRunNs = int64_t{60} * 1'000'000'000;
  static constexpr size_t kMaxAgents = 4096;  // Past it every run ends.

  struct Loss {
    std::string agent_id;
    uint64_t sequence = 0;
    uint64_t rows = 0;
    std::string reason;
    int64_t time_ns = 0;
  };
  // What to write: a new event under `number`, or again that of the agent's run, which the new one
  // replaces.
  struct Record {
    Event event;
    uint64_t number = 0;
  };
  const Record& Add(const Loss& loss, uint64_t number);

 private:
  struct Run {
    Record record;
    uint64_t messages = 0;
    uint64_t rows = 0;
    uint64_t first_sequence = 0;
    uint64_t last_sequence = 0;
  };
  absl::flat_hash_map<std::string, Run> runs_;  // By agent.
};

}  // namespace tacho::storage
