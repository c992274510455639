// NVML, opened, with its devices: all that must be opened again after the driver or a GPU came
// back.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/sources/chips/call_worker.h"
#include "agent/sources/gpu/gpu_reader.h"
#include "agent/sources/gpu/gpu_values.h"
#include "agent/sources/gpu/nvml_library.h"
#include "agent/sources/gpu/xid_listener.h"

namespace tacho::agent {

// One GPU, with a thread of its own, so that one that hangs holds up no other. One thread.
class GpuWatch {
 public:
  GpuWatch(std::shared_ptr<const NvmlLibrary> library, nvml::Device device, GpuIdentity identity,
           GpuReaderOptions options);

  // Asks for a reading, unless one is still awaited. `now` is a steady clock's, as below.
  void Ask(absl::Time now);
  // The reading that came since the last call, if one did. Waits at most `wait` for it.
  std::optional<GpuReading> Take(absl::Duration wait);
  // For how long an answer has been awaited; zero if none is.
  absl::Duration Awaited(absl::Time now) const;

  const GpuIdentity& identity() const { return identity_; }
  nvml::Device device() const { return device_; }

 private:
  struct State;

  const nvml::Device device_;
  const GpuIdentity identity_;
  const std::shared_ptr<State> state_;
  CallWorker worker_;
  absl::Time asked_;
};

struct GpuSession {
  std::shared_ptr<const NvmlLibrary> library;
  std::string driver;  // Version; may be empty.
  std::vector<std::unique_ptr<GpuWatch>> gpus;
  std::unique_ptr<XidListener> listener;
};

// Opens sessions on a thread of its own, since a driver in trouble may hang here too.
class GpuOpener {
 public:
  GpuOpener(std::string library, GpuReaderOptions options);

  // Begins to open, unless that is under way.
  void Start(absl::Time now);
  // A result that came since the last call. Waits at most `wait` for it. Errors are those of
  // NvmlLibrary::Load(), or UNAVAILABLE if the devices cannot be counted.
  std::optional<absl::StatusOr<GpuSession>> Take(absl::Duration wait);
  absl::Duration Awaited(absl::Time now) const;

 private:
  struct State;

  const std::string library_;
  const GpuReaderOptions options_;
  std::shared_ptr<State> state_;
  CallWorker worker_;
  absl::Time asked_;
};

}  // namespace tacho::agent
