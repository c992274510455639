#include "agent/sources/gpu/gpu_session.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "agent/sources/chips/chip_inventory.h"

namespace tacho::agent {
namespace {

struct Found {
  std::shared_ptr<const NvmlLibrary> library;
  std::string driver;
  std::vector<std::pair<nvml::Device, GpuIdentity>> devices;
};

absl::StatusOr<Found> Find(const std::string& path) {
  auto library = NvmlLibrary::Load(path);
  if (!library.ok()) return library.status();
  Found found;
  found.library = *std::move(library);
  const nvml::Functions& calls = found.library->calls();
  char text[nvml::kTextBytes] = {};
  if (calls.driver_version != nullptr &&
      calls.driver_version(text, nvml::kTextBytes - 1) == nvml::kSuccess) {
    found.driver = text;
  }
  uint32_t count = 0;
  if (const int result = calls.device_count(&count); result != nvml::kSuccess) {
    return absl::UnavailableError(
        absl::StrCat("the GPUs cannot be counted: ", found.library->Describe(result)));
  }
  count = std::min(count, static_cast<uint32_t>(ChipInventory::kMaxChips));
  for (uint32_t index = 0; index < count; ++index) {
    nvml::Device device = nullptr;
    // A GPU that is lost has no handle any more; the inventory misses it.
    if (calls.device_by_index(index, &device) != nvml::kSuccess) continue;
    found.devices.emplace_back(device, IdentifyGpu(*found.library, device, index));
  }
  return found;
}

}  // namespace

struct GpuWatch::State {
  State(std::shared_ptr<const NvmlLibrary> library, nvml::Device device, GpuReaderOptions options)
      : reader(std::move(library), device, options) {}

  GpuReader reader;  // Only the worker's thread uses it.
  absl::Mutex mutex;
  std::optional<GpuReading> reading ABSL_GUARDED_BY(mutex);
};

GpuWatch::GpuWatch(std::shared_ptr<const NvmlLibrary> library, nvml::Device device,
                   GpuIdentity identity, GpuReaderOptions options)
    : device_(device),
      identity_(std::move(identity)),
      state_(std::make_shared<State>(std::move(library), device, options)) {}

void GpuWatch::Ask(absl::Time now) {
  const bool begun = worker_.Start([state = state_, now] {
    GpuReading reading = state->reader.Read(now);
    const absl::MutexLock lock(&state->mutex);
    state->reading = std::move(reading);
  });
  if (begun) asked_ = now;
}

std::optional<GpuReading> GpuWatch::Take(absl::Duration wait) {
  worker_.WaitIdle(wait);
  const absl::MutexLock lock(&state_->mutex);
  return std::exchange(state_->reading, std::nullopt);
}

absl::Duration GpuWatch::Awaited(absl::Time now) const {
  return worker_.idle() ? absl::ZeroDuration() : now - asked_;
}

struct GpuOpener::State {
  absl::Mutex mutex;
  std::optional<absl::StatusOr<Found>> found ABSL_GUARDED_BY(mutex);
};

GpuOpener::GpuOpener(std::string library, GpuReaderOptions options)
    : library_(std::move(library)), options_(options), state_(std::make_shared<State>()) {}

void GpuOpener::Start(absl::Time now) {
  const bool begun = worker_.Start([state = state_, path = library_] {
    absl::StatusOr<Found> found = Find(path);
    const absl::MutexLock lock(&state->mutex);
    state->found = std::move(found);
  });
  if (begun) asked_ = now;
}

std::optional<absl::StatusOr<GpuSession>> GpuOpener::Take(absl::Duration wait) {
  worker_.WaitIdle(wait);
  std::optional<absl::StatusOr<Found>> found;
  {
    const absl::MutexLock lock(&state_->mutex);
    found = std::exchange(state_->found, std::nullopt);
  }
  if (!found.has_value()) return std::nullopt;
  if (!found->ok()) return found->status();
  GpuSession session;
  session.library = (*found)->library;
  session.driver = (*found)->driver;
  std::vector<nvml::Device> devices;
  for (auto& [device, identity] : (*found)->devices) {
    devices.push_back(device);
    session.gpus.push_back(
        std::make_unique<GpuWatch>(session.library, device, std::move(identity), options_));
  }
  session.listener = std::make_unique<XidListener>(session.library, std::move(devices));
  return session;
}

absl::Duration GpuOpener::Awaited(absl::Time now) const {
  return worker_.idle() ? absl::ZeroDuration() : now - asked_;
}

}  // namespace tacho::agent
