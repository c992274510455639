// Decodes libtpu's answers into plain types. The process of a trainer sent them, so everything is
// bounded and checked here, once.
#include "agent/sources/tpu/tpu_points.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "interop/tpu_metric_service.pb.h"

namespace tacho::agent {
namespace {

namespace proto = ::tpu::monitoring::runtime;
using Options = proto::Distribution::BucketOptions;

constexpr int kMaxLabels = 16;
constexpr size_t kMaxKeyBytes = 128;

std::string TextOf(const proto::AttrValue& value) {
  switch (value.attr_case()) {
    case proto::AttrValue::kStringAttr:
      return value.string_attr();
    case proto::AttrValue::kBoolAttr:
      return value.bool_attr() ? "true" : "false";
    case proto::AttrValue::kIntAttr:
      return absl::StrCat(value.int_attr());
    case proto::AttrValue::kDoubleAttr:
      return absl::StrCat(value.double_attr());
    default:
      return "";  // Lists and bytes are used nowhere.
  }
}

void AddLabel(const proto::Attribute& attribute, TpuPoint* point) {
  std::string text = TextOf(attribute.value());
  if (text.empty() || attribute.key().empty() || attribute.key().size() > kMaxKeyBytes) return;
  point->labels.try_emplace(absl::StrReplaceAll(attribute.key(), {{"-", "_"}}), std::move(text));
}

void AddLabels(const proto::Attribute& attribute, TpuPoint* point) {
  if (!attribute.value().has_kvlist_attr()) return AddLabel(attribute, point);
  const auto& pairs = attribute.value().kvlist_attr().attributes();
  for (int i = 0; i < std::min(pairs.size(), kMaxLabels); ++i) AddLabel(pairs[i], point);
}

bool IsCount(int32_t buckets) {
  return buckets >= 0 && static_cast<size_t>(buckets) < kMaxTpuBuckets;
}

// None: options that make no sense, or are of a kind that is not used any more.
std::optional<std::vector<double>> BoundsOf(const Options& options) {
  std::vector<double> bounds;
  if (options.has_exponential_buckets()) {
    const auto& e = options.exponential_buckets();
    if (!IsCount(e.num_finite_buckets())) return std::nullopt;
    for (int i = 0; i <= e.num_finite_buckets(); ++i) {
      bounds.push_back(e.scale() * std::pow(e.growth_factor(), i));
    }
  } else if (options.has_linear_buckets()) {
    const auto& l = options.linear_buckets();
    if (!IsCount(l.num_finite_buckets())) return std::nullopt;
    for (int i = 0; i <= l.num_finite_buckets(); ++i) bounds.push_back(l.offset() + l.width() * i);
  } else if (options.has_explicit_buckets()) {
    const auto& given = options.explicit_buckets().bounds();
    if (static_cast<size_t>(given.size()) > kMaxTpuBuckets) return std::nullopt;
    bounds.assign(given.begin(), given.end());
  } else if (options.has_regular_buckets()) {
    return std::nullopt;
  }
  for (size_t i = 0; i < bounds.size(); ++i) {
    if (!std::isfinite(bounds[i]) || (i > 0 && bounds[i] <= bounds[i - 1])) return std::nullopt;
  }
  return bounds;
}

std::optional<TpuDistribution> DistributionOf(const proto::Distribution& given) {
  std::optional<std::vector<double>> bounds = BoundsOf(given.bucket_options());
  if (!bounds.has_value() || given.count() < 0) return std::nullopt;
  TpuDistribution distribution;
  distribution.count = static_cast<double>(given.count());
  distribution.sum = given.count() == 0 ? 0 : distribution.count * given.mean();
  distribution.bounds = *std::move(bounds);
  if (given.bucket_counts().empty() && distribution.bounds.empty()) {
    distribution.counts = {distribution.count};
    return distribution;
  }
  if (static_cast<size_t>(given.bucket_counts_size()) != distribution.bounds.size() + 1) {
    return std::nullopt;
  }
  for (const int64_t count : given.bucket_counts()) {
    if (count < 0) return std::nullopt;
    distribution.counts.push_back(static_cast<double>(count));
  }
  return distribution;
}

std::optional<double> NumberOf(const proto::Gauge& gauge) {
  double number = 0;
  switch (gauge.value_case()) {
    case proto::Gauge::kAsDouble:
      return gauge.as_double();
    case proto::Gauge::kAsInt:
      return static_cast<double>(gauge.as_int());
    case proto::Gauge::kAsBool:
      return gauge.as_bool() ? 1 : 0;
    case proto::Gauge::kAsString:
      if (absl::SimpleAtod(gauge.as_string(), &number)) return number;
      return std::nullopt;
    default:
      return 0;  // An int of 0 may have been left out by a writer of proto3.
  }
}

bool Measure(const proto::Metric& metric, TpuPoint* point) {
  if (metric.has_gauge()) {
    const std::optional<double> number = NumberOf(metric.gauge());
    point->value = number.value_or(0);
    return number.has_value();
  }
  if (metric.has_counter()) {
    const proto::Counter& counter = metric.counter();
    point->value = counter.value_case() == proto::Counter::kAsDouble
                       ? counter.as_double()
                       : static_cast<double>(counter.as_int());
    return point->value >= 0;
  }
  if (!metric.has_distribution()) return false;
  point->distribution = DistributionOf(metric.distribution());
  return point->distribution.has_value();
}

}  // namespace

TpuPoints DecodeTpuMetric(const proto::TPUMetric& metric) {
  TpuPoints decoded;
  for (const proto::Metric& one : metric.metrics()) {
    TpuPoint point;
    if (decoded.points.size() >= kMaxTpuPoints || !Measure(one, &point)) {
      ++decoded.left_out;
      continue;
    }
    AddLabels(one.attribute(), &point);
    constexpr int64_t kNanos = 1'000'000'000;
    constexpr int64_t kMaxSeconds = INT64_MAX / kNanos - 1;
    const auto& start = one.start_timestamp();
    if (start.seconds() > 0 && start.seconds() < kMaxSeconds) {
      point.start_ns = start.seconds() * kNanos + start.nanos();
    }
    decoded.points.push_back(std::move(point));
  }
  return decoded;
}

std::optional<double> PercentileOf(const TpuDistribution& distribution, double p) {
  const double all = std::accumulate(distribution.counts.begin(), distribution.counts.end(), 0.0);
  if (all <= 0 || distribution.bounds.empty()) return std::nullopt;
  const double wanted = p * all;
  double below = 0;
  for (size_t i = 0; i < distribution.counts.size(); ++i) {
    const double here = distribution.counts[i];
    if (here <= 0 || below + here < wanted) {
      below += here;
      continue;
    }
    // The buckets at the ends have no second bound.
    if (i == 0) return distribution.bounds.front();
    if (i == distribution.bounds.size()) return distribution.bounds.back();
    const double low = distribution.bounds[i - 1];
    return low + (distribution.bounds[i] - low) * (wanted - below) / here;
  }
  return distribution.bounds.back();
}

namespace {

constexpr int kMaxSequencers = 7;

std::string Short(std::string name, const char* prefix) {
  return absl::StrReplaceAll(name, {{prefix, ""}});
}

void AddSequencers(const tpu_telemetry::CurrentCoreStateSummary& core, TpuCoreState* state) {
  for (int i = 0; i < std::min(core.sequencer_info_size(), kMaxSequencers); ++i) {
    const tpu_telemetry::SequencerInfo& sequencer = core.sequencer_info(i);
    const std::string kind =
        Short(tpu_telemetry::TpuSequencerTypeProto_Name(sequencer.sequencer_type()),
              "TPU_SEQUENCER_TYPE_");
    state->fields[absl::StrCat("sequencer_", i)] = kind;
    if (sequencer.has_pc()) {
      state->fields[absl::StrCat("pc_", i)] = absl::StrCat(sequencer.pc());
      absl::StrAppend(&state->text, ", pc ", sequencer.pc());
    }
    if (sequencer.has_run_id()) {
      state->fields[absl::StrCat("run_", i)] = absl::StrCat(sequencer.run_id());
    }
    if (i == 0 && sequencer.has_hlo_location()) state->fields["hlo"] = sequencer.hlo_location();
  }
}

TpuCoreState StateOf(int32_t number, const tpu_telemetry::CurrentCoreStateSummary& core) {
  TpuCoreState state;
  state.text = absl::StrCat("TPU core ", number);
  state.fields["core"] = absl::StrCat(number);
  const tpu_telemetry::TpuCoreIdentifier& id = core.core_id();
  // Absent is not 0: the fields say what they know.
  if (id.has_chip_id()) state.fields["chip"] = absl::StrCat(id.chip_id());
  if (id.core_on_chip().has_type()) {
    state.fields["core_type"] =
        Short(tpu_telemetry::TpuCoreTypeProto_Name(id.core_on_chip().type()), "TPU_CORE_TYPE_");
  }
  if (id.core_on_chip().has_index()) {
    state.fields["core_index"] = absl::StrCat(id.core_on_chip().index());
  }
  AddSequencers(core, &state);
  if (core.has_program_fingerprint()) {
    const std::string fingerprint = absl::BytesToHexString(core.program_fingerprint());
    state.fields["fingerprint"] = fingerprint;
    absl::StrAppend(&state.text, ", program ", fingerprint.substr(0, 16));
  }
  if (core.has_launch_id()) state.fields["launch"] = absl::StrCat(core.launch_id());
  state.fields["queued"] = absl::StrCat(core.queued_program_info_size());
  if (!core.error_message().empty()) {
    state.fields["error"] = core.error_message();
    absl::StrAppend(&state.text, ": ", core.error_message());
  }
  return state;
}

}  // namespace

std::vector<TpuCoreState> CoreStatesOf(
    const tpu::monitoring::runtime::GetTpuRuntimeStatusResponse& response) {
  std::vector<int32_t> numbers;
  for (const auto& [number, core] : response.core_states()) numbers.push_back(number);
  std::sort(numbers.begin(), numbers.end());
  numbers.resize(std::min(numbers.size(), kMaxCoresTold));
  std::vector<TpuCoreState> states;
  for (const int32_t number : numbers) {
    states.push_back(StateOf(number, response.core_states().at(number)));
  }
  return states;
}

}  // namespace tacho::agent
