#include "agent/sources/gpu/nvml_library.h"

#include <dlfcn.h>

#include <initializer_list>

#include "absl/strings/str_cat.h"

namespace tacho::agent {
namespace {

// The first of the names, which stand newest first, that the library has.
template <typename Function>
void Resolve(void* handle, std::initializer_list<const char*> names, Function* function) {
  for (const char* name : names) {
    if (void* const symbol = ::dlsym(handle, name); symbol != nullptr) {
      *function = reinterpret_cast<Function>(symbol);
      return;
    }
  }
}

void ResolveSystem(void* h, nvml::Functions* f) {
  Resolve(h, {"nvmlInitWithFlags"}, &f->init_with_flags);
  Resolve(h, {"nvmlInit_v2", "nvmlInit"}, &f->init);
  Resolve(h, {"nvmlShutdown"}, &f->shutdown);
  Resolve(h, {"nvmlErrorString"}, &f->error_string);
  Resolve(h, {"nvmlSystemGetDriverVersion"}, &f->driver_version);
  Resolve(h, {"nvmlSystemGetNVMLVersion"}, &f->nvml_version);
  Resolve(h, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"}, &f->device_count);
  Resolve(h, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"}, &f->device_by_index);
  Resolve(h, {"nvmlDeviceGetUUID"}, &f->uuid);
  Resolve(h, {"nvmlDeviceGetName"}, &f->name);
  Resolve(h, {"nvmlDeviceGetSerial"}, &f->serial);
  // The older one fills the beginning of the same struct.
  Resolve(h, {"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2"}, &f->pci_info);
  Resolve(h, {"nvmlDeviceGetMinorNumber"}, &f->minor_number);
}

void ResolveDevice(void* h, nvml::Functions* f) {
  Resolve(h, {"nvmlDeviceGetUtilizationRates"}, &f->utilization);
  Resolve(h, {"nvmlDeviceGetMemoryInfo_v2"}, &f->memory_v2);
  Resolve(h, {"nvmlDeviceGetMemoryInfo"}, &f->memory);
  Resolve(h, {"nvmlDeviceGetTemperatureV"}, &f->temperature_v);
  Resolve(h, {"nvmlDeviceGetTemperature"}, &f->temperature);
  Resolve(h, {"nvmlDeviceGetPowerUsage"}, &f->power_usage);
  Resolve(h, {"nvmlDeviceGetEnforcedPowerLimit"}, &f->power_limit);
  Resolve(h, {"nvmlDeviceGetTotalEnergyConsumption"}, &f->total_energy);
  Resolve(h, {"nvmlDeviceGetClockInfo"}, &f->clock);
  Resolve(h, {"nvmlDeviceGetMaxClockInfo"}, &f->max_clock);
  Resolve(h,
          {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"},
          &f->clock_reasons);
  Resolve(h, {"nvmlDeviceGetPerformanceState"}, &f->performance_state);
  Resolve(h, {"nvmlDeviceGetTotalEccErrors"}, &f->total_ecc);
  Resolve(h, {"nvmlDeviceGetRemappedRows"}, &f->remapped_rows);
  Resolve(h, {"nvmlDeviceGetPcieThroughput"}, &f->pcie_throughput);
  Resolve(h, {"nvmlDeviceGetPcieReplayCounter"}, &f->pcie_replays);
  Resolve(h, {"nvmlDeviceGetNvLinkState"}, &f->nvlink_state);
  Resolve(h, {"nvmlDeviceGetFieldValues"}, &f->field_values);
  // Version 1 has a shorter struct without anything useful.
  Resolve(h, {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"},
          &f->processes);
  Resolve(h, {"nvmlDeviceGetMigMode"}, &f->mig_mode);
}

void ResolveEventsAndGpm(void* h, nvml::Functions* f) {
  Resolve(h, {"nvmlEventSetCreate"}, &f->event_set_create);
  Resolve(h, {"nvmlEventSetFree"}, &f->event_set_free);
  Resolve(h, {"nvmlDeviceGetSupportedEventTypes"}, &f->supported_events);
  Resolve(h, {"nvmlDeviceRegisterEvents"}, &f->register_events);
  // Version 1 has a shorter struct.
  Resolve(h, {"nvmlEventSetWait_v2"}, &f->event_set_wait);
  Resolve(h, {"nvmlGpmQueryDeviceSupport"}, &f->gpm_support);
  Resolve(h, {"nvmlGpmSampleAlloc"}, &f->gpm_sample_alloc);
  Resolve(h, {"nvmlGpmSampleFree"}, &f->gpm_sample_free);
  Resolve(h, {"nvmlGpmSampleGet"}, &f->gpm_sample_get);
  Resolve(h, {"nvmlGpmMetricsGet"}, &f->gpm_metrics_get);
}

}  // namespace

NvmlLibrary::NvmlLibrary(void* handle) : handle_(handle) {
  ResolveSystem(handle, &calls_);
  ResolveDevice(handle, &calls_);
  ResolveEventsAndGpm(handle, &calls_);
}

NvmlLibrary::~NvmlLibrary() {
  if (started_ && calls_.shutdown != nullptr) calls_.shutdown();
  ::dlclose(handle_);
}

absl::StatusOr<std::shared_ptr<const NvmlLibrary>> NvmlLibrary::Load(const std::string& path) {
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = ::dlerror();
    return absl::NotFoundError(why != nullptr ? why : path);
  }
  const std::shared_ptr<NvmlLibrary> library(new NvmlLibrary(handle));
  const nvml::Functions& calls = library->calls_;
  if ((calls.init == nullptr && calls.init_with_flags == nullptr) ||
      calls.device_count == nullptr || calls.device_by_index == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        path,
        " lacks nvmlInit, nvmlDeviceGetCount or nvmlDeviceGetHandleByIndex: it is no NVML; "
        "name the driver's own with sources.gpu.library"));
  }
  // Without the flag a machine whose GPUs have all fallen off the bus could not report that.
  const int result = calls.init_with_flags != nullptr
                         ? calls.init_with_flags(nvml::kInitNoGpusIsFine)
                         : calls.init();
  if (result != nvml::kSuccess) {
    return absl::UnavailableError(absl::StrCat(path, ": ", library->Describe(result)));
  }
  library->started_ = true;
  return std::shared_ptr<const NvmlLibrary>(library);
}

std::string NvmlLibrary::Describe(int result) const {
  const char* const text =
      calls_.error_string != nullptr ? calls_.error_string(result) : "NVML error";
  return absl::StrCat(text, " (", result, ")");
}

}  // namespace tacho::agent
