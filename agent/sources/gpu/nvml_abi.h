// The part of NVML's C ABI that the agent uses, restated so that no header of NVIDIA's is needed.
//
// Facts: NVIDIA/go-nvml, pkg/nvml/nvml.h (API 13), on x86-64 and arm64: sizes and offsets are held
// by static_assert. Every function returns an int, 0 is success. Names that end in a version are
// other functions; the library never drops old ones.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tacho::agent::nvml {

// A call returns one of these.
enum Result : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,  // Permanent for this device.
  kNoPermission = 4,  // Needs root, or NVreg_RestrictProfilingToAdminUsers=0.
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,  // Fell off the bus.
  kResetRequired = 16,
  kLibraryMismatch = 18,  // The driver was upgraded: load the library again.
  kVersionMismatch = 25,  // A struct has another version.
  kGpuNotFound = 28,
  kUnknown = 999,
};

using Device = struct DeviceHandle*;  // Opaque.
using EventSet = struct EventSetHandle*;
using GpmSample = struct GpmSampleHandle*;

inline constexpr uint32_t kTextBytes = 96;  // Enough for every text that is asked for.

struct Utilization {
  uint32_t gpu;     // Per cent of the last sample period in which a kernel ran.
  uint32_t memory;  // Per cent in which memory was read or written.
};

struct Memory {  // Bytes. `used` includes what the driver keeps for itself.
  uint64_t total;
  uint64_t free;
  uint64_t used;
};

struct MemoryV2 {  // Bytes.
  uint32_t version;
  uint64_t total;
  uint64_t reserved;
  uint64_t free;
  uint64_t used;
};
inline constexpr uint32_t kMemoryV2 = 0x02000028;
static_assert(sizeof(MemoryV2) == 40 && offsetof(MemoryV2, used) == 32);

struct PciInfo {
  char bus_id_legacy[16];
  uint32_t domain;
  uint32_t bus;
  uint32_t device;
  uint32_t pci_device_id;
  uint32_t pci_subsystem_id;
  char bus_id[32];  // Not filled by the older function.
};
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, bus_id) == 36);

struct Temperature {
  uint32_t version;
  uint32_t sensor;  // 0: of the GPU.
  int32_t celsius;
};
inline constexpr uint32_t kTemperatureV1 = 0x0100000c;
static_assert(sizeof(Temperature) == 12);

struct ProcessInfo {
  uint32_t pid;  // In the machine's own namespace.
  uint64_t used_bytes;
  uint32_t gpu_instance;
  uint32_t compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);

// The type of a field's value.
enum ValueType : uint32_t {
  kDouble = 0,
  kUint32 = 1,
  kUnsignedLong = 2,
  kUint64 = 3,
  kInt64 = 4,
  kInt32 = 5,
  kUint16 = 6,
};

struct FieldValue {
  uint32_t field;
  uint32_t scope;  // Which link; kAllLinks.
  int64_t timestamp_us;
  int64_t latency_us;
  uint32_t value_type;
  int32_t result;  // For this field alone.
  union {
    double as_double;
    uint32_t as_uint32;
    uint64_t as_uint64;
    int64_t as_int64;
    int32_t as_int32;
    uint16_t as_uint16;
  } value;
};
inline constexpr uint32_t kAllLinks = 0xffffffff;
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, value_type) == 24 &&
              offsetof(FieldValue, value) == 32);

struct EventData {
  Device device;
  uint64_t type;  // One bit.
  uint64_t data;  // The XID, of kEventXid.
  uint32_t gpu_instance;
  uint32_t compute_instance;
};
static_assert(sizeof(EventData) == 32);
inline constexpr uint64_t kEventXid = 0x8;
inline constexpr uint64_t kEventUnavailable = 0x4000;
inline constexpr uint64_t kEventRecoveryAction = 0x8000;

struct GpmSupport {
  uint32_t version;  // 1
  uint32_t supported;
};

struct GpmMetric {
  uint32_t id;
  int32_t result;
  double value;
  const char* texts[3];
};
static_assert(sizeof(GpmMetric) == 40 && offsetof(GpmMetric, value) == 8);

struct GpmMetrics {
  // As many as any version of the library may look at.
  static constexpr size_t kMaxMetrics = 333;
  uint32_t version;  // 1
  uint32_t count;
  GpmSample older;
  GpmSample newer;
  GpmMetric metrics[kMaxMetrics];
};
static_assert(sizeof(GpmMetrics) == 13344 && offsetof(GpmMetrics, metrics) == 24);

// Arguments of calls.
inline constexpr uint32_t kInitNoGpusIsFine = 1;
inline constexpr uint32_t kClockSm = 1;
inline constexpr uint32_t kClockMemory = 2;
inline constexpr uint32_t kPcieTransmit = 0;
inline constexpr uint32_t kPcieReceive = 1;
inline constexpr uint32_t kMaxLinks = 18;

// Every function may be null: the library, or its driver, does not have it.
struct Functions {
  int (*init_with_flags)(uint32_t flags) = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int result) = nullptr;
  int (*driver_version)(char* text, uint32_t bytes) = nullptr;
  int (*nvml_version)(char* text, uint32_t bytes) = nullptr;
  int (*device_count)(uint32_t* count) = nullptr;
  int (*device_by_index)(uint32_t index, Device* device) = nullptr;
  int (*uuid)(Device device, char* text, uint32_t bytes) = nullptr;
  int (*name)(Device device, char* text, uint32_t bytes) = nullptr;
  int (*serial)(Device device, char* text, uint32_t bytes) = nullptr;
  int (*pci_info)(Device device, PciInfo* info) = nullptr;
  int (*minor_number)(Device device, uint32_t* minor) = nullptr;
  int (*utilization)(Device device, Utilization* rates) = nullptr;
  int (*memory_v2)(Device device, MemoryV2* memory) = nullptr;
  int (*memory)(Device device, Memory* memory) = nullptr;
  int (*temperature_v)(Device device, Temperature* temperature) = nullptr;
  int (*temperature)(Device device, uint32_t sensor, uint32_t* celsius) = nullptr;
  int (*power_usage)(Device device, uint32_t* milliwatts) = nullptr;
  int (*power_limit)(Device device, uint32_t* milliwatts) = nullptr;
  int (*total_energy)(Device device, uint64_t* millijoules) = nullptr;
  int (*clock)(Device device, uint32_t type, uint32_t* megahertz) = nullptr;
  int (*max_clock)(Device device, uint32_t type, uint32_t* megahertz) = nullptr;
  int (*clock_reasons)(Device device, uint64_t* mask) = nullptr;
  int (*performance_state)(Device device, int32_t* state) = nullptr;
  int (*total_ecc)(Device device, uint32_t uncorrected, uint32_t aggregate,
                   uint64_t* count) = nullptr;
  int (*remapped_rows)(Device device, uint32_t* corrected, uint32_t* uncorrected, uint32_t* pending,
                       uint32_t* failed) = nullptr;
  int (*pcie_throughput)(Device device, uint32_t direction, uint32_t* kilobytes) = nullptr;
  int (*pcie_replays)(Device device, uint32_t* count) = nullptr;
  int (*nvlink_state)(Device device, uint32_t link, uint32_t* active) = nullptr;
  int (*field_values)(Device device, int32_t count, FieldValue* values) = nullptr;
  int (*processes)(Device device, uint32_t* count, ProcessInfo* infos) = nullptr;
  int (*mig_mode)(Device device, uint32_t* current, uint32_t* pending) = nullptr;
  int (*event_set_create)(EventSet* set) = nullptr;
  int (*event_set_free)(EventSet set) = nullptr;
  int (*supported_events)(Device device, uint64_t* types) = nullptr;
  int (*register_events)(Device device, uint64_t types, EventSet set) = nullptr;
  int (*event_set_wait)(EventSet set, EventData* data, uint32_t timeout_ms) = nullptr;
  int (*gpm_support)(Device device, GpmSupport* support) = nullptr;
  int (*gpm_sample_alloc)(GpmSample* sample) = nullptr;
  int (*gpm_sample_free)(GpmSample sample) = nullptr;
  int (*gpm_sample_get)(Device device, GpmSample sample) = nullptr;
  int (*gpm_metrics_get)(GpmMetrics* metrics) = nullptr;
};

}  // namespace tacho::agent::nvml
