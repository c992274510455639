// Maps devices of libtpu to chips of this machine and records their values. libtpu numbers devices
// over a whole slice, so the mapping waits until the numbers fit.
#include "agent/sources/tpu/tpu_record.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tacho::agent {
namespace {

constexpr char kDeviceId[] = "device_id";
constexpr char kDeviceOrdinal[] = "device_ordinal";
// Whose devices are all that there are: other metrics may have one value a chip.
constexpr char kAllDevices[] = "tpu.runtime.hbm.memory.total.bytes";

std::optional<int64_t> IntLabel(const TpuPoint& point, const char* name) {
  const auto found = point.labels.find(name);
  int64_t number = 0;
  if (found == point.labels.end() || !absl::SimpleAtoi(found->second, &number)) return std::nullopt;
  return number;
}

Labels LabelsOf(const TpuPlace& place) {
  Labels labels = {{"chip", place.chip}};
  if (!place.core.empty()) labels.emplace_back("core", place.core);
  return labels;
}

// Text of others' as labels: a series' identity, so it must be short.
Labels LabelsOf(const std::map<std::string, std::string>& given) {
  constexpr size_t kMaxBytes = 128;
  Labels labels;
  for (const auto& [name, value] : given) {
    const bool reserved = name == "job" || name == "task" || name == "host" || name == "le" ||
                          name == "overflow" || absl::StartsWith(name, "__");
    const bool letters = std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
    if (letters && !(name[0] >= '0' && name[0] <= '9') && name.size() <= kMaxBytes &&
        value.size() <= kMaxBytes) {
      labels.emplace_back(reserved ? absl::StrCat("tpu_", name) : name, value);
    }
  }
  return labels;
}

class GroupRecorder {
 public:
  GroupRecorder(const TpuAnswers& answers, const TpuGroup& group, int devices_per_chip,
                TpuDevices* devices, TpuLook* look)
      : answers_(answers),
        group_(group),
        per_chip_(devices_per_chip),
        devices_(devices),
        look_(look) {}

  void Record() {
    PlaceAll();
    for (const TpuMetric& metric : TpuMetrics()) {
      for (const auto& [address, answer] : answers_) {
        const auto found = answer.metrics.find(metric.libtpu);
        if (found == answer.metrics.end()) continue;
        look_->left_out += found->second.left_out;
        if (metric.kind == TpuMetricKind::kErrors) look_->errors[metric.libtpu];
        if (metric.kind != TpuMetricKind::kDevice) RecordOne(metric, address, found->second);
      }
      if (metric.kind == TpuMetricKind::kDevice) RecordDevices(metric);
    }
  }

 private:
  void PlaceAll() {
    std::set<int64_t> ids;
    for (const auto& [address, answer] : answers_) {
      const auto found = answer.metrics.find(kAllDevices);
      if (found == answer.metrics.end()) continue;
      std::set<int64_t>& own = ids_of_[address];
      for (const TpuPoint& point : found->second.points) {
        if (const auto id = IntLabel(point, kDeviceId)) own.insert(*id);
      }
      ids.insert(own.begin(), own.end());
    }
    all_ = devices_->Place(ids, group_.chips, per_chip_);
    for (const auto& [id, place] : all_) {
      Labels labels = LabelsOf(place);
      labels.emplace_back("device", absl::StrCat(id));
      look_->chips->Add(kTpuDeviceInfo, std::move(labels), 1);
    }
  }

  void RecordDevices(const TpuMetric& metric) {
    std::map<int64_t, double> values;
    std::set<int64_t> ids;
    for (const auto& [address, answer] : answers_) {
      const auto found = answer.metrics.find(metric.libtpu);
      if (found == answer.metrics.end()) continue;
      for (const TpuPoint& point : found->second.points) {
        const auto id = IntLabel(point, kDeviceId);
        if (!id.has_value()) ++look_->left_out;
        if (id.has_value() && values.try_emplace(*id, point.value).second) ids.insert(*id);
      }
    }
    for (const auto& [id, place] : devices_->Place(ids, group_.chips, per_chip_)) {
      const double value = values[id] * metric.factor;
      look_->chips->Add(metric.metric, LabelsOf(place), value);
      if (place.known) look_->told.insert(place.chip);
      if (absl::string_view(metric.metric.name) == "chip_duty_cycle_ratio") {
        look_->activity.busiest = std::max(look_->activity.busiest.value_or(0), value);
      }
    }
  }

  void RecordOne(const TpuMetric& metric, const std::string& address, const TpuPoints& points) {
    for (const TpuPoint& point : points.points) {
      switch (metric.kind) {
        case TpuMetricKind::kQueue:
          look_->activity.queued = look_->activity.queued.value_or(0) + point.value;
          look_->chips->Add(metric.metric, CoreLabels(address, point), point.value);
          break;
        case TpuMetricKind::kExecution:
          RecordExecution(metric, address, point);
          break;
        case TpuMetricKind::kUptime: {
          Labels labels = LabelsOf(point.labels);
          labels.emplace_back("port", address);
          look_->chips->Add(metric.metric, std::move(labels), point.value);
          break;
        }
        case TpuMetricKind::kErrors:
          look_->errors[metric.libtpu].push_back(point);
          break;
        case TpuMetricKind::kDistribution:
          if (!point.distribution.has_value()) break;
          look_->totals->AddDistribution(address, {metric.libtpu, LabelsOf(point.labels)},
                                         point.start_ns, *point.distribution);
          break;
        case TpuMetricKind::kCounter:
          look_->totals->AddCounter(address, {metric.libtpu, LabelsOf(point.labels)},
                                    point.start_ns, point.value);
          break;
        case TpuMetricKind::kDevice:
          break;
      }
    }
  }

  void RecordExecution(const TpuMetric& metric, const std::string& address, const TpuPoint& point) {
    if (!point.distribution.has_value()) return;
    const TpuDistribution& d = *point.distribution;
    look_->activity.executed = look_->activity.executed.value_or(0) + d.count;
    if (d.count <= 0) return;  // No data, which is not 0.
    const Labels labels = CoreLabels(address, point);
    look_->chips->Add(kTpuExecutionMean, labels, d.sum / d.count * metric.factor);
    if (const auto p50 = PercentileOf(d, 0.5)) {
      look_->chips->Add(kTpuExecutionP50, labels, *p50 * metric.factor);
    }
    if (const auto p99 = PercentileOf(d, 0.99)) {
      look_->chips->Add(kTpuExecutionP99, labels, *p99 * metric.factor);
    }
  }

  // A process counts its own devices from 0, in the order of their numbers.
  Labels CoreLabels(const std::string& address, const TpuPoint& point) {
    const std::set<int64_t>& own = ids_of_[address];
    const std::optional<int64_t> ordinal = IntLabel(point, kDeviceOrdinal);
    TpuPlace place;
    if (ordinal.has_value() && *ordinal >= 0 && *ordinal < static_cast<int64_t>(own.size())) {
      place = all_[*std::next(own.begin(), *ordinal)];
    } else {
      place.chip = ordinal.has_value() ? absl::StrCat("ordinal ", *ordinal) : "unknown";
    }
    Labels labels = LabelsOf(place);
    const auto type = point.labels.find("core_type");
    if (type != point.labels.end()) labels.emplace_back("core_type", type->second);
    return labels;
  }

  const TpuAnswers& answers_;
  const TpuGroup& group_;
  const int per_chip_;
  TpuDevices* const devices_;
  TpuLook* const look_;
  std::map<std::string, std::set<int64_t>> ids_of_;  // By address.
  std::map<int64_t, TpuPlace> all_;
};

const TpuMetric* MetricOf(const std::string& libtpu) {
  for (const TpuMetric& metric : TpuMetrics()) {
    if (libtpu == metric.libtpu) return &metric;
  }
  return nullptr;
}

}  // namespace

void RecordGroup(const TpuAnswers& answers, const TpuGroup& group, int devices_per_chip,
                 TpuDevices* devices, TpuLook* look) {
  GroupRecorder(answers, group, devices_per_chip, devices, look).Record();
}

void RecordTotals(const TpuTotals& totals, Sample* sample) {
  for (const auto& [key, total] : totals.totals()) {
    const TpuMetric* const metric = MetricOf(key.first);
    if (metric == nullptr) continue;
    if (metric->kind == TpuMetricKind::kCounter) {
      sample->Add(metric->metric, key.second, total.count * metric->factor);
      continue;
    }
    double below = 0;
    for (const auto& [bound, count] : total.below) {
      below += count;
      Labels labels = key.second;
      labels.emplace_back("le", absl::StrCat(bound * metric->factor));
      sample->Add(metric->metric, std::move(labels), below);
    }
    Labels labels = key.second;
    labels.emplace_back("le", "+Inf");
    sample->Add(metric->metric, std::move(labels), total.count);
    sample->Add(metric->sum, key.second, total.sum * metric->factor);
  }
}

}  // namespace tacho::agent
