#include "agent/sources/gpu/xid_listener.h"

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

namespace tacho::agent {
namespace {

// Until the thread looks whether it should end; the driver wakes it for events at once.
constexpr uint32_t kWaitMs = 1000;
// When waiting fails at once, as it does where a GPU is lost.
constexpr absl::Duration kPause = absl::Seconds(1);

}  // namespace

struct XidListener::State {
  State(std::shared_ptr<const NvmlLibrary> nvml, std::vector<nvml::Device> gpus)
      : library(std::move(nvml)), devices(std::move(gpus)) {
    const absl::MutexLock lock(&mutex);
    heard.xids.resize(devices.size());
    heard.last_xids.resize(devices.size());
  }

  void Listen();
  void Register(nvml::EventSet set) const;
  void Keep(const nvml::EventData& data) ABSL_LOCKS_EXCLUDED(mutex);
  bool Stopping() ABSL_LOCKS_EXCLUDED(mutex) {
    const absl::MutexLock lock(&mutex);
    return stopping;
  }

  const std::shared_ptr<const NvmlLibrary> library;
  const std::vector<nvml::Device> devices;
  absl::Mutex mutex;
  Heard heard ABSL_GUARDED_BY(mutex);
  bool stopping ABSL_GUARDED_BY(mutex) = false;
};

XidListener::XidListener(std::shared_ptr<const NvmlLibrary> library,
                         std::vector<nvml::Device> devices)
    : state_(std::make_shared<State>(std::move(library), std::move(devices))) {
  const nvml::Functions& calls = state_->library->calls();
  if (calls.event_set_create == nullptr || calls.event_set_free == nullptr ||
      calls.register_events == nullptr || calls.event_set_wait == nullptr) {
    return;
  }
  worker_.Start([state = state_] { state->Listen(); });
}

XidListener::~XidListener() {
  const absl::MutexLock lock(&state_->mutex);
  state_->stopping = true;
}

void XidListener::State::Listen() {
  const nvml::Functions& calls = library->calls();
  nvml::EventSet set = nullptr;
  if (calls.event_set_create(&set) != nvml::kSuccess) return;
  Register(set);
  while (!Stopping()) {
    nvml::EventData data = {};
    const int result = calls.event_set_wait(set, &data, kWaitMs);
    if (result == nvml::kSuccess) {
      Keep(data);
    } else if (result != nvml::kTimeout) {
      absl::SleepFor(kPause);
    }
  }
  calls.event_set_free(set);
}

void XidListener::State::Register(nvml::EventSet set) const {
  const nvml::Functions& calls = library->calls();
  for (const nvml::Device device : devices) {
    uint64_t types = nvml::kEventXid | nvml::kEventUnavailable | nvml::kEventRecoveryAction;
    uint64_t supported = 0;
    // Registering for one type that a GPU does not have is refused whole.
    if (calls.supported_events != nullptr &&
        calls.supported_events(device, &supported) == nvml::kSuccess) {
      types &= supported;
    }
    if (types != 0) calls.register_events(device, types, set);
  }
}

void XidListener::State::Keep(const nvml::EventData& data) {
  const auto found = std::find(devices.begin(), devices.end(), data.device);
  const auto device = static_cast<size_t>(found - devices.begin());
  const absl::MutexLock lock(&mutex);
  if (data.type == nvml::kEventXid && device < devices.size()) {
    ++heard.xids[device];
    heard.last_xids[device] = data.data;
  }
  if (heard.events.size() >= kMaxWaiting) {
    ++heard.left_out;
    return;
  }
  heard.events.push_back({device, data.type, data.data, absl::Now()});
}

XidListener::Heard XidListener::Take() {
  const absl::MutexLock lock(&state_->mutex);
  Heard taken = state_->heard;
  state_->heard.events.clear();
  return taken;
}

}  // namespace tacho::agent
