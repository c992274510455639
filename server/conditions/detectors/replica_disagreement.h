// ReplicaDisagreement: scalars that must be the same on all tasks are not.
//
// Definition. At each of the newest `steps` steps that at least two tasks have recorded, the values
// of a replica scalar (a checksum or norm of the weights, say) are grouped: by their bits if
// `tolerance` is 0, NaN being equal to NaN; else those within `tolerance` of the group's first
// value, relative. The largest group is right (of equally large ones that with the lowest task);
// the others are the minority. The condition is true if there is one at `least_steps` of those
// steps. Tasks that have not recorded a step yet are left out at it. Source: redundancy against
// silent data corruption, as in Hochschild et al., "Cores that don't count" (HotOS 2021); replicas
// of data-parallel training are such redundancy already.
//
// Needs replica_scalar on two tasks. Critical. Reasons: ReplicasDiffer; with two tasks, or no
// group of more than half, ReplicasDifferNoMajority: then who is right is not known, and the
// culprits are all but the first group. Culprits: by how many of the steps they differed at
// (score). Limits: values must come from the same point of the same step, and be the same by
// design: reductions in another order differ in the last bits, for which there is `tolerance`.
#pragma once

#include <cstdint>

#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

struct ReplicaDisagreementSettings {
  uint32_t steps = 20;
  uint32_t least_steps = 1;
  double tolerance = 0;

  friend bool operator==(const ReplicaDisagreementSettings&,
                         const ReplicaDisagreementSettings&) = default;
};

Finding DetectReplicaDisagreement(const JobWindow& window,
                                  const ReplicaDisagreementSettings& settings);

}  // namespace tacho::server::conditions
