// The cores of the TPUs of a job's hosts, as agents recorded them last (docs/chips.md, "Core
// states"), in groups of cores that are at the same place. In a hang most wait in one collective; a
// core elsewhere is the one to look at.
#pragma once

#include <cstdint>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/ctl/call/query_client.h"
#include "client/ctl/line/environment.h"
#include "client/ctl/text/json_writer.h"
#include "tacho/v1/agent_requests.pb.h"
#include "tacho/v1/query.pb.h"

namespace tacho::ctl {

struct TpuCore {
  std::string host;
  std::string core;  // Its number in the slice.
  std::string chip;  // Empty: unknown.
  int64_t time_ns = 0;
};

struct CoreGroup {
  std::string type;     // "TENSOR_CORE"
  std::string program;  // Fingerprint; empty: none is loaded.
  std::string counter;  // Program counter of its first sequencer; empty: unknown, "0": it waits.
  std::vector<TpuCore> cores;
};

// From events "tpu_core_state" of these hosts, of which the newest of each core counts. The largest
// group first.
std::vector<CoreGroup> GroupCores(const std::vector<v1::RecordedEvent>& events,
                                  const std::set<std::string>& hosts);

// Asks the collector for what agents recorded on the hosts of these tasks within 6 hours before
// `now`. Empty: nothing.
absl::StatusOr<std::vector<CoreGroup>> ReadCores(const v1::TakeStacksResponse& stacks,
                                                 absl::Time now, QueryClient* client);

// Nothing if there are none.
void PrintCores(const Environment& env, const std::vector<CoreGroup>& groups);
// The field "cores" of the open object.
void WriteCores(const std::vector<CoreGroup>& groups, JsonWriter* json);

}  // namespace tacho::ctl
