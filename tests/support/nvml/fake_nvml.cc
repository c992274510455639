// A library with NVML's C ABI that plays the GPUs of a script (fake_nvml_script.h). Its functions
// are declared here from NVIDIA's documentation and not from agent/sources/gpu/nvml_abi.h, so that
// a mistake there is found: sizes and offsets are written out.
//
// With TACHO_FAKE_NVML_OLD it has only what a driver of 2018 had, under the names of that time.
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>

#include "tests/support/nvml/fake_nvml_script.h"

namespace {

using tacho::fake_nvml::Event;
using tacho::fake_nvml::Gpu;
using tacho::fake_nvml::ReadScript;
using tacho::fake_nvml::Script;

constexpr int kSuccess = 0;
constexpr int kUninitialized = 1;
constexpr int kInvalidArgument = 2;
constexpr int kNotSupported = 3;
constexpr int kInsufficientSize = 7;
#ifndef TACHO_FAKE_NVML_OLD
constexpr int kTimeout = 10;
constexpr int kVersionMismatch = 25;
#endif
constexpr int kPauseUs = 2000;

std::atomic<int> started{0};
char devices[64];  // Their addresses are the handles.

uint32_t NumberOf(void* device) {
  return static_cast<uint32_t>(static_cast<char*>(device) - devices);
}

// Begins every function of a device: `result` is what it answers if that is not kSuccess.
struct Call {
  Call(void* device, const std::string& function) {
    if (started == 0) {
      result = kUninitialized;
      return;
    }
    for (;;) {
      script = ReadScript();
      const auto found = script.gpus.find(NumberOf(device));
      if (found == script.gpus.end()) {
        result = kInvalidArgument;
        return;
      }
      gpu = found->second;
      if (!gpu.values.contains("hang")) break;
      ::usleep(kPauseUs);
    }
    for (const std::string& key : {std::string("fail.all"), "fail." + function}) {
      if (gpu.values.contains(key)) result = std::stoi(gpu.values[key]);
    }
  }

  // The numbers that the script has under `key`.
  std::istringstream Values(const std::string& key) {
    if (!gpu.values.contains(key) && result == kSuccess) result = kNotSupported;
    return std::istringstream(gpu.values[key]);
  }

  Script script;
  Gpu gpu;
  int result = kSuccess;
};

template <typename Number>
int OneNumber(void* device, const std::string& function, Number* out) {
  Call call(device, function);
  std::istringstream values = call.Values(function);
  if (call.result != kSuccess) return call.result;
  double number = 0;
  values >> number;
  *out = static_cast<Number>(number);
  return kSuccess;
}

int Text(void* device, const std::string& key, char* out, uint32_t bytes) {
  Call call(device, key);
  if (!call.gpu.values.contains(key) && call.result == kSuccess) call.result = kNotSupported;
  if (call.result != kSuccess) return call.result;
  if (call.gpu.values[key].size() + 1 > bytes) return kInsufficientSize;
  std::memcpy(out, call.gpu.values[key].c_str(), call.gpu.values[key].size() + 1);
  return kSuccess;
}

int Start() {
  const Script script = ReadScript();
  if (script.result != kSuccess) return script.result;
  ++started;
  return kSuccess;
}

int Count(uint32_t* count) {
  if (started == 0) return kUninitialized;
  const Script script = ReadScript();
  *count = static_cast<uint32_t>(script.count >= 0 ? script.count
                                                   : static_cast<int64_t>(script.gpus.size()));
  return kSuccess;
}

// Indices count only the GPUs that are there.
int Handle(uint32_t index, void** device) {
  if (started == 0) return kUninitialized;
  const Script script = ReadScript();
  for (const auto& [number, gpu] : script.gpus) {
    if (index-- > 0) continue;
    const auto failing = gpu.values.find("fail.GetHandleByIndex");
    if (failing != gpu.values.end()) return std::stoi(failing->second);
    *device = &devices[number];
    return kSuccess;
  }
  return kInvalidArgument;
}

template <typename Value>
void Put(void* base, size_t offset, Value value) {
  std::memcpy(static_cast<char*>(base) + offset, &value, sizeof(value));
}
template <typename Value>
Value Get(const void* base, size_t offset) {
  Value value;
  std::memcpy(&value, static_cast<const char*>(base) + offset, sizeof(value));
  return value;
}

[[maybe_unused]] void PutNumber(void* field, uint32_t type, double number) {
  constexpr size_t kAt = 32;
  switch (type) {
    case 0:
      return Put(field, kAt, number);
    case 1:
      return Put(field, kAt, static_cast<uint32_t>(number));
    case 5:
      return Put(field, kAt, static_cast<int32_t>(number));
    case 6:
      return Put(field, kAt, static_cast<uint16_t>(number));
    default:
      return Put(field, kAt, static_cast<uint64_t>(number));
  }
}

}  // namespace

extern "C" {

int nvmlShutdown() {
  if (started == 0) return kUninitialized;
  --started;
  return kSuccess;
}
const char* nvmlErrorString(int result) {
  return result == 15 ? "GPU is lost" : result == 9 ? "Driver Not Loaded" : "an error";
}
int nvmlSystemGetDriverVersion(char* text, uint32_t bytes) {
  const Script script = ReadScript();
  if (script.driver.size() + 1 > bytes) return kInsufficientSize;
  std::memcpy(text, script.driver.c_str(), script.driver.size() + 1);
  return kSuccess;
}
int nvmlDeviceGetUUID(void* device, char* text, uint32_t bytes) {
  return Text(device, "uuid", text, bytes);
}
int nvmlDeviceGetName(void* device, char* text, uint32_t bytes) {
  return Text(device, "name", text, bytes);
}
int nvmlDeviceGetMinorNumber(void* device, uint32_t* minor) {
  return OneNumber(device, "minor", minor);
}
int nvmlDeviceGetUtilizationRates(void* device, uint32_t* rates) {
  Call call(device, "GetUtilizationRates");
  std::istringstream values = call.Values("GetUtilizationRates");
  values >> rates[0] >> rates[1];
  return call.result;
}
int nvmlDeviceGetMemoryInfo(void* device, uint64_t* memory) {
  Call call(device, "GetMemoryInfo");
  std::istringstream values = call.Values("GetMemoryInfo");
  values >> memory[0] >> memory[1] >> memory[2];
  return call.result;
}
int nvmlDeviceGetTemperature(void* device, uint32_t sensor, uint32_t* celsius) {
  return sensor != 0 ? kInvalidArgument : OneNumber(device, "GetTemperature", celsius);
}
int nvmlDeviceGetPowerUsage(void* device, uint32_t* milliwatts) {
  return OneNumber(device, "GetPowerUsage", milliwatts);
}
int nvmlDeviceGetClockInfo(void* device, uint32_t type, uint32_t* megahertz) {
  return OneNumber(device, "GetClockInfo." + std::to_string(type), megahertz);
}
int nvmlDeviceGetMaxClockInfo(void* device, uint32_t type, uint32_t* megahertz) {
  return OneNumber(device, "GetMaxClockInfo." + std::to_string(type), megahertz);
}
int nvmlDeviceGetTotalEccErrors(void* device, uint32_t type, uint32_t aggregate, uint64_t* count) {
  return OneNumber(
      device, "GetTotalEccErrors." + std::to_string(type) + "." + std::to_string(aggregate), count);
}
int nvmlDeviceGetPcieReplayCounter(void* device, uint32_t* count) {
  return OneNumber(device, "GetPcieReplayCounter", count);
}

#ifdef TACHO_FAKE_NVML_OLD

int nvmlInit() { return Start(); }
int nvmlDeviceGetCount(uint32_t* count) { return Count(count); }
int nvmlDeviceGetHandleByIndex(uint32_t index, void** device) { return Handle(index, device); }
int nvmlDeviceGetPciInfo_v2(void* device, void* info) {
  Call call(device, "GetPciInfo");
  uint32_t bus = 0;
  call.Values("pci") >> bus;
  Put(info, 16, uint32_t{0});
  Put(info, 20, bus);
  Put(info, 24, uint32_t{0});
  return call.result;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, uint64_t* mask) {
  return OneNumber(device, "GetCurrentClocksThrottleReasons", mask);
}

#else

int nvmlInitWithFlags(uint32_t flags) { return flags != 1 ? kInvalidArgument : Start(); }
int nvmlInit_v2() { return Start(); }
int nvmlDeviceGetCount_v2(uint32_t* count) { return Count(count); }
int nvmlDeviceGetHandleByIndex_v2(uint32_t index, void** device) { return Handle(index, device); }
// The older ones, which a program that takes the newest first never calls.
int nvmlDeviceGetCount(uint32_t*) { return kNotSupported; }
int nvmlDeviceGetHandleByIndex(uint32_t, void**) { return kNotSupported; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, uint64_t*) { return kNotSupported; }

int nvmlDeviceGetSerial(void* device, char* text, uint32_t bytes) {
  return Text(device, "serial", text, bytes);
}
int nvmlDeviceGetPciInfo_v3(void* device, void* info) {
  Call call(device, "GetPciInfo");
  uint32_t bus = 0;
  call.Values("pci") >> bus;
  std::memset(info, 0, 68);
  Put(info, 20, bus);
  return call.result;
}
int nvmlDeviceGetMemoryInfo_v2(void* device, void* memory) {
  if (Get<uint32_t>(memory, 0) != 0x02000028) return kVersionMismatch;
  Call call(device, "GetMemoryInfo_v2");
  std::istringstream values = call.Values("GetMemoryInfo_v2");
  for (const size_t offset : {8, 16, 24, 32}) {
    uint64_t bytes = 0;
    values >> bytes;
    Put(memory, offset, bytes);
  }
  return call.result;
}
int nvmlDeviceGetTemperatureV(void* device, void* temperature) {
  if (Get<uint32_t>(temperature, 0) != 0x0100000c) return kVersionMismatch;
  int32_t celsius = 0;
  const int result = OneNumber(device, "GetTemperatureV", &celsius);
  if (result == kSuccess) Put(temperature, 8, celsius);
  return result;
}
int nvmlDeviceGetEnforcedPowerLimit(void* device, uint32_t* milliwatts) {
  return OneNumber(device, "GetEnforcedPowerLimit", milliwatts);
}
int nvmlDeviceGetTotalEnergyConsumption(void* device, uint64_t* millijoules) {
  return OneNumber(device, "GetTotalEnergyConsumption", millijoules);
}
int nvmlDeviceGetCurrentClocksEventReasons(void* device, uint64_t* mask) {
  return OneNumber(device, "GetCurrentClocksEventReasons", mask);
}
int nvmlDeviceGetPerformanceState(void* device, int32_t* state) {
  return OneNumber(device, "GetPerformanceState", state);
}
int nvmlDeviceGetMigMode(void* device, uint32_t* current, uint32_t* pending) {
  *pending = 0;
  return OneNumber(device, "GetMigMode", current);
}
int nvmlDeviceGetPcieThroughput(void* device, uint32_t direction, uint32_t* kilobytes) {
  return OneNumber(device, "GetPcieThroughput." + std::to_string(direction), kilobytes);
}
int nvmlDeviceGetNvLinkState(void* device, uint32_t link, uint32_t* active) {
  return OneNumber(device, "GetNvLinkState." + std::to_string(link), active);
}
int nvmlDeviceGetFieldValues(void* device, int32_t count, void* values) {
  Call call(device, "GetFieldValues");
  if (call.result != kSuccess) return call.result;
  for (int32_t i = 0; i < count; ++i) {
    char* const field = static_cast<char*>(values) + ptrdiff_t{i} * 40;
    const std::string id = "field." + std::to_string(Get<uint32_t>(field, 0));
    const auto scope = Get<uint32_t>(field, 4);
    const std::string key = scope == 0            ? id
                            : scope == 0xffffffff ? id + ".all"
                                                  : id + "." + std::to_string(scope);
    Put(field, 28, int32_t{kNotSupported});
    if (!call.gpu.values.contains(key)) continue;
    std::istringstream line(call.gpu.values[key]);
    uint32_t type = 0;
    double number = 0;
    line >> type >> number;
    Put(field, 24, type);
    Put(field, 28, int32_t{kSuccess});
    PutNumber(field, type, number);
  }
  return kSuccess;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, uint32_t* count, void* infos) {
  Call call(device, "GetComputeRunningProcesses");
  if (call.result != kSuccess) return call.result;
  const auto there = static_cast<uint32_t>(call.gpu.pids.size());
  const uint32_t room = *count;
  *count = there;
  if (there > room) return kInsufficientSize;
  for (uint32_t i = 0; i < there; ++i) {
    char* const info = static_cast<char*>(infos) + ptrdiff_t{i} * 24;
    std::memset(info, 0, 24);
    Put(info, 0, call.gpu.pids[i]);
  }
  return kSuccess;
}

int nvmlEventSetCreate(void** set) {
  *set = new uint64_t(0);  // The last event that was reported.
  return kSuccess;
}
int nvmlEventSetFree(void* set) {
  delete static_cast<uint64_t*>(set);
  return kSuccess;
}
int nvmlDeviceGetSupportedEventTypes(void* device, uint64_t* types) {
  return OneNumber(device, "GetSupportedEventTypes", types);
}
int nvmlDeviceRegisterEvents(void* device, uint64_t types, void*) {
  uint64_t supported = 0;
  const int result = nvmlDeviceGetSupportedEventTypes(device, &supported);
  if (result != kSuccess) return result;
  return (types & ~supported) != 0 ? kNotSupported : kSuccess;
}
int nvmlEventSetWait_v2(void* set, void* data, uint32_t timeout_ms) {
  for (uint32_t waited_us = 0; waited_us < timeout_ms * 1000; waited_us += kPauseUs) {
    for (const Event& event : ReadScript().events) {
      if (event.sequence <= *static_cast<uint64_t*>(set)) continue;
      *static_cast<uint64_t*>(set) = event.sequence;
      std::memset(data, 0, 32);
      Put(data, 0, static_cast<void*>(&devices[event.gpu]));
      Put(data, 8, event.type);
      Put(data, 16, event.data);
      return kSuccess;
    }
    ::usleep(kPauseUs);
  }
  return kTimeout;
}

// A sample is the number of the look that took it.
int nvmlGpmQueryDeviceSupport(void* device, uint32_t* support) {
  if (support[0] != 1) return kVersionMismatch;
  return OneNumber(device, "GpmQueryDeviceSupport", &support[1]);
}
int nvmlGpmSampleAlloc(void** sample) {
  *sample = new uint64_t[2]();
  return kSuccess;
}
int nvmlGpmSampleFree(void* sample) {
  delete[] static_cast<uint64_t*>(sample);
  return kSuccess;
}
int nvmlGpmSampleGet(void* device, void* sample) {
  static std::atomic<uint64_t> looks{0};
  const Call call(device, "GpmSampleGet");
  static_cast<uint64_t*>(sample)[0] = ++looks;
  static_cast<uint64_t*>(sample)[1] = NumberOf(device);
  return call.result;
}
int nvmlGpmMetricsGet(void* metrics) {
  auto* const older = Get<uint64_t*>(metrics, 8);
  auto* const newer = Get<uint64_t*>(metrics, 16);
  if (Get<uint32_t>(metrics, 0) != 1) return kVersionMismatch;
  if (older[0] == 0 || newer[0] <= older[0] || newer[1] != older[1]) return kInvalidArgument;
  Call call(&devices[newer[1]], "GpmMetricsGet");
  if (call.result != kSuccess) return call.result;
  for (uint32_t i = 0; i < Get<uint32_t>(metrics, 4); ++i) {
    char* const metric = static_cast<char*>(metrics) + 24 + size_t{i} * 40;
    const std::string key = "gpm." + std::to_string(Get<uint32_t>(metric, 0));
    const bool known = call.gpu.values.contains(key);
    Put(metric, 4, int32_t{known ? kSuccess : kNotSupported});
    if (known) Put(metric, 8, std::stod(call.gpu.values[key]));
  }
  return kSuccess;
}

#endif

}  // extern "C"
