// Asks NVML for each value of a GPU. A function that a driver lacks, or a value that a GPU does not
// support, costs one call and is left out from then on, so one reader fits every driver and every
// GPU.
#include "agent/sources/gpu/gpu_reader.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"

namespace tacho::agent {
namespace {

constexpr double kKilo = 1000;
constexpr double kMebibyte = 1024.0 * 1024.0;

struct Field {
  uint32_t id;
  GpuValue value;
};
// Numbers: NVML_FI_DEV_….
constexpr Field kFields[] = {
    {3, GpuValue::kEccCorrected},
    {4, GpuValue::kEccUncorrected},
    {29, GpuValue::kPagesRetiredSingle},
    {30, GpuValue::kPagesRetiredDouble},
    {31, GpuValue::kPagesPending},
    {74, GpuValue::kViolationPower},
    {75, GpuValue::kViolationThermal},
    {76, GpuValue::kViolationSyncBoost},
    {77, GpuValue::kViolationBoardLimit},
    {78, GpuValue::kViolationLowUtilization},
    {79, GpuValue::kViolationReliability},
    {82, GpuValue::kMemoryTemperature},
    {83, GpuValue::kEnergy},
    {91, GpuValue::kLinks},
    {94, GpuValue::kPcieReplays},
    {138, GpuValue::kLinkTransmitted},
    {139, GpuValue::kLinkReceived},
    {142, GpuValue::kRowsRemappedCorrected},
    {143, GpuValue::kRowsRemappedUncorrected},
    {144, GpuValue::kRowRemapPending},
    {145, GpuValue::kRowRemapFailed},
    {38, GpuValue::kLinkFlitCrcErrors},
    {45, GpuValue::kLinkDataCrcErrors},
    {52, GpuValue::kLinkReplaysTotal},
    {59, GpuValue::kLinkRecoveriesTotal},
    {230, GpuValue::kRecoveryAction},
};
// Their scope is the link.
constexpr Field kLinkFields[] = {
    {161, GpuValue::kLinkReplays},
    {162, GpuValue::kLinkRecoveries},
    {163, GpuValue::kLinkCrcErrors},
};

struct Monitor {
  uint32_t id;
  GpuValue value;
  double factor;
};
// Numbers: NVML_GPM_METRIC_….
constexpr Monitor kMonitors[] = {
    {1, GpuValue::kGraphicsActive, 1},        {2, GpuValue::kSmActive, 1},
    {3, GpuValue::kSmOccupancy, 1},           {5, GpuValue::kTensorActive, 1},
    {10, GpuValue::kDramActive, 1},           {11, GpuValue::kFp64Active, 1},
    {12, GpuValue::kFp32Active, 1},           {13, GpuValue::kFp16Active, 1},
    {20, GpuValue::kPcieTransmit, kMebibyte}, {21, GpuValue::kPcieReceive, kMebibyte},
    {60, GpuValue::kLinkReceiveRate, 1},      {61, GpuValue::kLinkTransmitRate, 1},
};

// Answers about the GPU or the driver as a whole.
bool IsTrouble(int result) {
  switch (result) {
    case nvml::kUninitialized:
    case nvml::kDriverNotLoaded:
    case nvml::kGpuIsLost:
    case nvml::kResetRequired:
    case nvml::kLibraryMismatch:
    case nvml::kGpuNotFound:
      return true;
    default:
      return false;
  }
}

std::optional<double> NumberOf(const nvml::FieldValue& field) {
  switch (field.value_type) {
    case nvml::kDouble:
      return field.value.as_double;
    case nvml::kUint32:
      return field.value.as_uint32;
    case nvml::kUnsignedLong:  // 64 bits wherever there is a driver.
    case nvml::kUint64:
      return static_cast<double>(field.value.as_uint64);
    case nvml::kInt64:
      return static_cast<double>(field.value.as_int64);
    case nvml::kInt32:
      return field.value.as_int32;
    case nvml::kUint16:
      return field.value.as_uint16;
    default:
      return std::nullopt;  // A type of a later version.
  }
}

nvml::FieldValue Asked(uint32_t field, uint32_t scope) {
  nvml::FieldValue asked = {};
  asked.field = field;
  asked.scope = scope;
  // Lest a library that skips it leave a 0 that looks like an answer.
  asked.result = nvml::kUnknown;
  return asked;
}

std::string TextOf(int (*call)(nvml::Device, char*, uint32_t), nvml::Device device) {
  char text[nvml::kTextBytes + 1] = {};
  if (call == nullptr || call(device, text, nvml::kTextBytes) != nvml::kSuccess) return "";
  return {text, ::strnlen(text, nvml::kTextBytes)};
}

}  // namespace

GpuIdentity IdentifyGpu(const NvmlLibrary& library, nvml::Device device, uint32_t index) {
  const nvml::Functions& calls = library.calls();
  GpuIdentity identity;
  identity.index = index;
  identity.uuid = TextOf(calls.uuid, device);
  identity.name = TextOf(calls.name, device);
  identity.serial = TextOf(calls.serial, device);
  uint32_t minor = 0;
  if (calls.minor_number != nullptr && calls.minor_number(device, &minor) == nvml::kSuccess) {
    identity.minor = minor;
  }
  nvml::PciInfo pci = {};
  if (calls.pci_info != nullptr && calls.pci_info(device, &pci) == nvml::kSuccess) {
    identity.pci = absl::StrFormat("%08X:%02X:%02X.0", pci.domain, pci.bus, pci.device);
  }
  return identity;
}

GpuReader::GpuReader(std::shared_ptr<const NvmlLibrary> library, nvml::Device device,
                     GpuReaderOptions options)
    : library_(std::move(library)),
      calls_(library_->calls()),
      device_(device),
      options_(options),
      processes_(16) {}

GpuReader::~GpuReader() {
  for (const nvml::GpmSample sample : gpm_) {
    if (sample != nullptr && calls_.gpm_sample_free != nullptr) calls_.gpm_sample_free(sample);
  }
}

template <typename Function, typename... Arguments>
bool GpuReader::Call(GpuValue value, Function* function, Arguments... arguments) {
  if (function == nullptr || reading_.trouble != 0 || IsOff(value)) return false;
  return Took(value, function(device_, arguments...));
}

bool GpuReader::IsOff(GpuValue value) const {
  const int result = refused_[static_cast<size_t>(value)];
  return result == nvml::kNotSupported || result == nvml::kNoPermission ||
         result == nvml::kFunctionNotFound || result == nvml::kVersionMismatch;
}

bool GpuReader::Took(GpuValue value, int result) {
  if (result == nvml::kSuccess) return true;
  if (IsTrouble(result)) {
    reading_.trouble = result;
  } else {
    refused_[static_cast<size_t>(value)] = result;
  }
  return false;
}

GpuReading GpuReader::Read(absl::Time now) {
  reading_ = {};
  ReadUse();
  ReadMemory();
  ReadPowerAndHeat();
  ReadClocks();
  ReadFields();
  ReadWhatFieldsLack();
  ReadLinks();
  ReadProcesses();
  if (options_.gpm) ReadGpm(now);
  if (options_.pcie_throughput) ReadPcie();
  Finish();
  return reading_;
}

void GpuReader::ReadUse() {
  nvml::Utilization rates = {};
  if (Call(GpuValue::kUtilization, calls_.utilization, &rates)) {
    reading_.values.Set(GpuValue::kUtilization, rates.gpu);
    reading_.values.Set(GpuValue::kMemoryUtilization, rates.memory);
  }
  int32_t state = 0;
  constexpr int32_t kUnknownState = 32;
  if (Call(GpuValue::kPerformanceState, calls_.performance_state, &state) &&
      state != kUnknownState) {
    reading_.values.Set(GpuValue::kPerformanceState, state);
  }
  uint32_t mig = 0;
  uint32_t pending = 0;
  if (Call(GpuValue::kMigMode, calls_.mig_mode, &mig, &pending)) {
    reading_.values.Set(GpuValue::kMigMode, mig);
  }
}

void GpuReader::ReadMemory() {
  nvml::MemoryV2 v2 = {};
  v2.version = nvml::kMemoryV2;
  if (Call(GpuValue::kMemoryReserved, calls_.memory_v2, &v2)) {
    reading_.values.Set(GpuValue::kMemoryTotal, static_cast<double>(v2.total));
    reading_.values.Set(GpuValue::kMemoryReserved, static_cast<double>(v2.reserved));
    reading_.values.Set(GpuValue::kMemoryFree, static_cast<double>(v2.free));
    reading_.values.Set(GpuValue::kMemoryUsed, static_cast<double>(v2.used));
    return;
  }
  // Not after a failure that passes: the older call means something else by "used".
  if (calls_.memory_v2 != nullptr && !IsOff(GpuValue::kMemoryReserved)) return;
  nvml::Memory v1 = {};
  if (Call(GpuValue::kMemoryTotal, calls_.memory, &v1)) {
    reading_.values.Set(GpuValue::kMemoryTotal, static_cast<double>(v1.total));
    reading_.values.Set(GpuValue::kMemoryFree, static_cast<double>(v1.free));
    reading_.values.Set(GpuValue::kMemoryUsed, static_cast<double>(v1.used));
  }
}

void GpuReader::ReadPowerAndHeat() {
  uint32_t number = 0;
  if (Call(GpuValue::kPower, calls_.power_usage, &number)) {
    reading_.values.Set(GpuValue::kPower, number);
  }
  if (Call(GpuValue::kPowerLimit, calls_.power_limit, &number)) {
    reading_.values.Set(GpuValue::kPowerLimit, number);
  }
  nvml::Temperature temperature = {.version = nvml::kTemperatureV1, .sensor = 0, .celsius = 0};
  if (calls_.temperature_v != nullptr && !IsOff(GpuValue::kTemperature)) {
    const int result =
        reading_.trouble != 0 ? reading_.trouble : calls_.temperature_v(device_, &temperature);
    if (result == nvml::kSuccess) {
      reading_.values.Set(GpuValue::kTemperature, temperature.celsius);
      return;
    }
    if (IsTrouble(result)) reading_.trouble = result;
  }
  if (Call(GpuValue::kTemperature, calls_.temperature, 0U, &number)) {
    reading_.values.Set(GpuValue::kTemperature, number);
  }
}

void GpuReader::ReadClocks() {
  uint32_t megahertz = 0;
  if (Call(GpuValue::kSmClock, calls_.clock, nvml::kClockSm, &megahertz)) {
    reading_.values.Set(GpuValue::kSmClock, megahertz);
  }
  if (Call(GpuValue::kMemoryClock, calls_.clock, nvml::kClockMemory, &megahertz)) {
    reading_.values.Set(GpuValue::kMemoryClock, megahertz);
  }
  if (Call(GpuValue::kSmClockMax, calls_.max_clock, nvml::kClockSm, &megahertz)) {
    reading_.values.Set(GpuValue::kSmClockMax, megahertz);
  }
  uint64_t reasons = 0;
  if (Call(GpuValue::kClockReasons, calls_.clock_reasons, &reasons)) {
    reading_.values.Set(GpuValue::kClockReasons, static_cast<double>(reasons));
  }
}

void GpuReader::ReadFields() {
  std::vector<nvml::FieldValue> fields;
  std::vector<GpuValue> values;
  for (const Field& field : kFields) {
    if (IsOff(field.value)) continue;
    const bool of_links =
        field.value == GpuValue::kLinkTransmitted || field.value == GpuValue::kLinkReceived;
    fields.push_back(Asked(field.id, of_links ? nvml::kAllLinks : 0));
    values.push_back(field.value);
  }
  Ask(&fields, values);
}

void GpuReader::Ask(std::vector<nvml::FieldValue>* fields, const std::vector<GpuValue>& values) {
  if (fields->empty() || calls_.field_values == nullptr || reading_.trouble != 0) return;
  const int result =
      calls_.field_values(device_, static_cast<int32_t>(fields->size()), fields->data());
  if (IsTrouble(result)) reading_.trouble = result;
  if (result != nvml::kSuccess) return;
  for (size_t i = 0; i < fields->size(); ++i) {
    const nvml::FieldValue& field = (*fields)[i];
    // A driver that does not know a field calls it an invalid argument.
    const bool unknown = field.result == nvml::kInvalidArgument;
    if (!Took(values[i], unknown ? static_cast<int>(nvml::kNotSupported) : field.result)) continue;
    if (const std::optional<double> number = NumberOf(field)) {
      reading_.values.Add(values[i], *number);
    }
  }
}

template <typename Function, typename... Arguments>
bool GpuReader::Instead(GpuValue value, Function* function, Arguments... arguments) {
  const auto at = static_cast<size_t>(value);
  if (reading_.values.Get(value).has_value() || function == nullptr || reading_.trouble != 0 ||
      no_instead_[at]) {
    return false;
  }
  const int result = function(device_, arguments...);
  if (IsTrouble(result)) reading_.trouble = result;
  no_instead_[at] = result == nvml::kNotSupported || result == nvml::kNoPermission;
  return result == nvml::kSuccess;
}

void GpuReader::ReadWhatFieldsLack() {
  uint64_t count = 0;
  if (Instead(GpuValue::kEnergy, calls_.total_energy, &count)) {
    reading_.values.Set(GpuValue::kEnergy, static_cast<double>(count));
  }
  if (Instead(GpuValue::kEccCorrected, calls_.total_ecc, 0U, 0U, &count)) {
    reading_.values.Set(GpuValue::kEccCorrected, static_cast<double>(count));
  }
  if (Instead(GpuValue::kEccUncorrected, calls_.total_ecc, 1U, 0U, &count)) {
    reading_.values.Set(GpuValue::kEccUncorrected, static_cast<double>(count));
  }
  uint32_t small = 0;
  if (Instead(GpuValue::kPcieReplays, calls_.pcie_replays, &small)) {
    reading_.values.Set(GpuValue::kPcieReplays, small);
  }
  uint32_t rows[4] = {};
  if (Instead(GpuValue::kRowsRemappedCorrected, calls_.remapped_rows, &rows[0], &rows[1], &rows[2],
              &rows[3])) {
    reading_.values.Set(GpuValue::kRowsRemappedCorrected, rows[0]);
    reading_.values.Set(GpuValue::kRowsRemappedUncorrected, rows[1]);
    reading_.values.Set(GpuValue::kRowRemapPending, rows[2]);
    reading_.values.Set(GpuValue::kRowRemapFailed, rows[3]);
  }
}

void GpuReader::ReadLinks() {
  const double told = reading_.values.Get(GpuValue::kLinks).value_or(nvml::kMaxLinks);
  const auto links = static_cast<uint32_t>(std::clamp(told, 0.0, double{nvml::kMaxLinks}));
  std::vector<nvml::FieldValue> fields;
  std::vector<GpuValue> values;
  for (uint32_t link = 0; link < links; ++link) {
    uint32_t active = 0;
    // Where the driver does not report the number of links, the first missing one is an invalid
    // argument.
    if (!Call(GpuValue::kLinksUp, calls_.nvlink_state, link, &active)) break;
    reading_.values.Add(GpuValue::kLinksUp, active != 0 ? 1 : 0);
    for (const Field& field : kLinkFields) {
      if (IsOff(field.value)) continue;
      fields.push_back(Asked(field.id, link));
      values.push_back(field.value);
    }
  }
  Ask(&fields, values);
  // One silent link must not make the sum of the others fall.
  for (const Field& field : kLinkFields) {
    if (reading_.values.Get(field.value).has_value())
      refused_[static_cast<size_t>(field.value)] = 0;
  }
}

void GpuReader::ReadProcesses() {
  if (calls_.processes == nullptr || reading_.trouble != 0 || IsOff(GpuValue::kProcesses)) return;
  auto count = static_cast<uint32_t>(processes_.size());
  int result = calls_.processes(device_, &count, processes_.data());
  if (result == nvml::kInsufficientSize && processes_.size() < kMaxProcesses) {
    processes_.resize(std::min<size_t>(kMaxProcesses, size_t{count} + processes_.size()));
    count = static_cast<uint32_t>(processes_.size());
    result = calls_.processes(device_, &count, processes_.data());
  }
  if (!Took(GpuValue::kProcesses, result)) return;
  count = std::min(count, static_cast<uint32_t>(processes_.size()));
  reading_.values.Set(GpuValue::kProcesses, count);
  for (uint32_t i = 0; i < count; ++i) reading_.pids.push_back(processes_[i].pid);
}

void GpuReader::ReadPcie() {
  if (reading_.values.Get(GpuValue::kPcieTransmit).has_value()) return;
  uint32_t kilobytes = 0;
  if (Call(GpuValue::kPcieTransmit, calls_.pcie_throughput, nvml::kPcieTransmit, &kilobytes)) {
    reading_.values.Set(GpuValue::kPcieTransmit, kilobytes * kKilo);
  }
  if (Call(GpuValue::kPcieReceive, calls_.pcie_throughput, nvml::kPcieReceive, &kilobytes)) {
    reading_.values.Set(GpuValue::kPcieReceive, kilobytes * kKilo);
  }
}

bool GpuReader::StartGpm() {
  if (std::exchange(gpm_tried_, true)) return gpm_[0] != nullptr;
  nvml::GpmSupport support = {.version = 1, .supported = 0};
  if (calls_.gpm_sample_alloc == nullptr || calls_.gpm_sample_free == nullptr ||
      calls_.gpm_sample_get == nullptr || calls_.gpm_metrics_get == nullptr ||
      !Call(GpuValue::kGraphicsActive, calls_.gpm_support, &support) || support.supported == 0) {
    return false;
  }
  for (nvml::GpmSample& sample : gpm_) {
    if (calls_.gpm_sample_alloc(&sample) == nvml::kSuccess) continue;
    sample = nullptr;
    if (gpm_[0] != nullptr) calls_.gpm_sample_free(gpm_[0]);
    gpm_ = {};
    return false;
  }
  return true;
}

void GpuReader::ReadGpm(absl::Time now) {
  if (reading_.trouble != 0 || !StartGpm() || now - gpm_time_ < kMinGpmSpan) return;
  // With MIG on this answers not supported: the figures of its parts are not those of the GPU.
  if (!Call(GpuValue::kTensorActive, calls_.gpm_sample_get, gpm_[0])) {
    gpm_time_ = absl::InfinitePast();
    return;
  }
  std::swap(gpm_[0], gpm_[1]);
  const bool have_both = gpm_time_ != absl::InfinitePast();
  gpm_time_ = now;
  if (have_both) TakeGpm();
}

void GpuReader::TakeGpm() {
  const auto metrics = std::make_unique<nvml::GpmMetrics>();
  metrics->version = 1;
  metrics->older = gpm_[0];
  metrics->newer = gpm_[1];
  for (const Monitor& monitor : kMonitors) {
    nvml::GpmMetric& asked = metrics->metrics[metrics->count++];
    asked.id = monitor.id;
    asked.result = nvml::kUnknown;
  }
  if (!Took(GpuValue::kTensorActive, calls_.gpm_metrics_get(metrics.get()))) return;
  for (size_t i = 0; i < std::size(kMonitors); ++i) {
    const nvml::GpmMetric& got = metrics->metrics[i];
    if (got.result != nvml::kSuccess) continue;
    reading_.values.Set(kMonitors[i].value, got.value * kMonitors[i].factor);
  }
}

void GpuReader::Finish() {
  const auto sum = [this](GpuValue into, std::initializer_list<GpuValue> parts) {
    for (const GpuValue part : parts) {
      if (const auto& value = reading_.values.Get(part)) reading_.values.Add(into, *value);
    }
  };
  sum(GpuValue::kRowsRemapped,
      {GpuValue::kRowsRemappedCorrected, GpuValue::kRowsRemappedUncorrected});
  sum(GpuValue::kLinkErrors,
      {GpuValue::kLinkReplays, GpuValue::kLinkRecoveries, GpuValue::kLinkCrcErrors});
  if (!reading_.values.Get(GpuValue::kLinkErrors).has_value()) {
    sum(GpuValue::kLinkErrors, {GpuValue::kLinkFlitCrcErrors, GpuValue::kLinkDataCrcErrors,
                                GpuValue::kLinkReplaysTotal, GpuValue::kLinkRecoveriesTotal});
  }
  sum(GpuValue::kLinkTraffic, {GpuValue::kLinkTransmitted, GpuValue::kLinkReceived});
  for (size_t i = 0; i < refused_.size(); ++i) {
    const int result = refused_[i];
    if (reading_.values.Get(static_cast<GpuValue>(i)).has_value()) continue;  // By another call.
    if (result == nvml::kNoPermission) ++reading_.no_permission;
    if (result == nvml::kNotSupported || result == nvml::kFunctionNotFound ||
        result == nvml::kVersionMismatch) {
      ++reading_.not_supported;
    }
  }
}

}  // namespace tacho::agent
