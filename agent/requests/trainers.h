// The trainers of a job on this machine, by their rings.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/sources/rings/trainer_process.h"
#include "client/ring/ring_types.h"
#include "tacho/v1/agent_requests.pb.h"

namespace tacho::agent {

// Further rings of a directory are not looked at.
inline constexpr size_t kMaxRings = 4096;

struct Trainer {
  std::string ring;  // Its path.
  client::RingInfo info;
  std::vector<client::RingAttribute> attributes;
  std::unique_ptr<TrainerProcess> process;
};

// The newest ring of each task that the request asks for, by task. Their processes may be gone.
//   NOT_FOUND  the directory cannot be listed.
absl::StatusOr<std::vector<Trainer>> FindTrainers(const std::string& directory,
                                                  const v1::AgentRequest& request);

}  // namespace tacho::agent
