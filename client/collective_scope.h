// One collective within a step, until the end of the block.
#pragma once

#include <cstdint>

namespace tacho::client {

class RecorderState;

//   auto step = recorder.Step(n);
//   step.Phase("compute");
//   Backward();
//   {
//     auto collective = step.Collective("dp-allreduce", gradient_bytes);
//     AllReduce(gradients);
//   }                                       // Time belongs to "compute" again.
//   {
//     auto collective = step.Collective("pp-send", activation_bytes, /*peer=*/3);
//     SendTo(3, activations);
//   }
//
// The row of the step has, with the name in lower case and '_' for whatever is no letter or digit:
//   collective_dp_allreduce_seconds, collective_dp_allreduce_bytes
//   collective_pp_send_peer_3_seconds, collective_pp_send_peer_3_bytes
// Several of one name in a step add up. Without bytes there is no metric of bytes. The time is time
// of the phase "comm" (comm_wait_seconds), too, and not of the phase around it. The collector then
// tells who makes others wait (Straggling) from a collective that is slow itself (SlowCollective,
// docs/conditions/progress.md). For that, all its members record it under one name, and groups that
// work side by side have different names. Both ends record an exchange with a peer.
//
// A collective that runs beside other work: put the scope around the wait for its end. The scope
// measures the time of this thread, so a collective within a compiled program does not show.
//
// A collective within a collective is refused and counted, and does nothing; the outer one
// continues. A step that ends within a collective ends it.
//
// Must not outlive its recorder, and belongs to the same thread. Allocates nothing and makes no
// system call, except at the first use of a name, which declares metrics.
class [[nodiscard]] CollectiveScope {
 public:
  CollectiveScope(CollectiveScope&& other) noexcept;
  CollectiveScope& operator=(CollectiveScope&&) = delete;
  ~CollectiveScope() { End(); }

  // Ends the collective now; the end of the block then does nothing.
  void End() noexcept;

 private:
  friend class StepScope;
  CollectiveScope(RecorderState* state, uint64_t number) noexcept
      : state_(state), number_(number) {}

  RecorderState* state_;  // Null: nothing to do.
  uint64_t number_;       // Its number in the recorder, because it may have ended already.
};

}  // namespace tacho::client
