#include "tests/simulate/world/disk_faults.h"

#include <cstddef>
#include <cstdint>

#include "proto/base/check.h"

namespace tacho::simulate {

void BeginOnDisk(const Fault& fault, SimDisk* disk) {
  SimDisk::Faults faults = disk->faults();
  switch (fault.kind) {
    case FaultKind::kDiskFull:
      faults.capacity = disk->power()->bytes() + static_cast<uint64_t>(fault.amount);
      break;
    case FaultKind::kDiskSlow:
      faults.sync_ns = fault.amount * 1'000'000;
      break;
    case FaultKind::kAppendFails:
      faults.failing_appends = static_cast<int>(fault.amount);
      faults.late = fault.seconds % 2 == 0;
      break;
    case FaultKind::kSyncFails:
      faults.failing_syncs = static_cast<int>(fault.amount);
      break;
    case FaultKind::kSyncLies:
      faults.lying_syncs = 1;
      break;
    case FaultKind::kNoRoom:
      faults.full_append = static_cast<int>(fault.amount);
      break;
    case FaultKind::kSlowLook:
      faults.look_ns = fault.amount * 1'000'000;
      break;
    case FaultKind::kNoRoomForLarge:
      faults.full_size = static_cast<size_t>(fault.amount);
      faults.kill_after = static_cast<uint64_t>(fault.effects);
      break;
    default:
      TACHO_CHECK(false);  // No fault of a disk.
  }
  disk->Set(faults);
}

void EndOnDisk(FaultKind kind, SimDisk* disk) {
  SimDisk::Faults faults = disk->faults();
  const SimDisk::Faults none;
  switch (kind) {
    case FaultKind::kDiskFull:
      faults.capacity = none.capacity;
      break;
    case FaultKind::kDiskSlow:
      faults.sync_ns = none.sync_ns;
      break;
    case FaultKind::kAppendFails:
      faults.failing_appends = none.failing_appends;
      faults.late = none.late;
      break;
    case FaultKind::kSyncFails:
      faults.failing_syncs = none.failing_syncs;
      break;
    case FaultKind::kNoRoom:
      faults.full_append = none.full_append;
      break;
    case FaultKind::kSlowLook:
      faults.look_ns = none.look_ns;
      break;
    case FaultKind::kNoRoomForLarge:
      faults.full_size = none.full_size;
      faults.kill_after = none.kill_after;
      break;
    default:
      TACHO_CHECK(false);  // No fault of a disk.
  }
  disk->Set(faults);
}

}  // namespace tacho::simulate
