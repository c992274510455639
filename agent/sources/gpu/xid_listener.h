// Waits for events of GPUs, above all XID errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "agent/sources/chips/call_worker.h"
#include "agent/sources/gpu/nvml_library.h"

namespace tacho::agent {

struct GpuEvent {
  size_t device = 0;  // In the order of the constructor's; that many for one it does not know.
  uint64_t type = 0;  // One of NVML's bits.
  uint64_t data = 0;  // The XID.
  absl::Time time;
};

// One thread for all GPUs. Used from one other thread, but for the waiting.
class XidListener {
 public:
  // At most this many events wait to be taken. A GPU in trouble reports the same event thousands of
  // times; those beyond the bound are only counted.
  static constexpr size_t kMaxWaiting = 256;

  XidListener(std::shared_ptr<const NvmlLibrary> library, std::vector<nvml::Device> devices);
  ~XidListener();  // The thread ends within a second, or when the driver lets it.

  struct Heard {
    std::vector<GpuEvent> events;     // Since the last call.
    std::vector<uint64_t> xids;       // By device, since the start.
    std::vector<uint64_t> last_xids;  // 0: none.
    uint64_t left_out = 0;            // Events that had no room, since the start.
  };
  Heard Take();

 private:
  struct State;
  const std::shared_ptr<State> state_;
  CallWorker worker_;
};

}  // namespace tacho::agent
