// Faults of a plan that are those of a disk: what each sets there, and takes back when it ends.
#pragma once

#include "tests/simulate/disk/sim_disk.h"
#include "tests/simulate/world/faults.h"

namespace tacho::simulate {

// `fault` is of a kind from kDiskFull to kNoRoomForLarge.
void BeginOnDisk(const Fault& fault, SimDisk* disk);
// Faults of other kinds go on; of two of one kind, the first to end ends both.
void EndOnDisk(FaultKind kind, SimDisk* disk);

}  // namespace tacho::simulate
