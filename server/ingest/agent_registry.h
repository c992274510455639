// Which stream speaks for which agent.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace tacho::server::ingest {

// Thread-safe.
class AgentRegistry {
 public:
  // Makes `stream` (any number unique among live streams) speak for the agent. An older stream of
  // the same generation is one whose connection died unnoticed: it is told through its `evict`,
  // which is called with no lock held.
  //   ALREADY_EXISTS  a live stream uses this agent_id with another generation: two agents were
  //                   given one name, or the agent lost its spool and its old stream has not ended
  //                   yet.
  absl::Status Claim(const std::string& agent_id, uint64_t generation, uint64_t stream,
                     std::function<void()> evict) ABSL_LOCKS_EXCLUDED(mutex_);

  // `stream` speaks for nobody any more. Nothing happens if it did not.
  void Release(uint64_t stream) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Holder {
    uint64_t generation = 0;
    uint64_t stream = 0;
    std::function<void()> evict;
  };

  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Holder> holders_ ABSL_GUARDED_BY(mutex_);   // By agent id.
  absl::flat_hash_map<uint64_t, std::string> agents_ ABSL_GUARDED_BY(mutex_);  // By stream.
};

}  // namespace tacho::server::ingest
