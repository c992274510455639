#include "server/interop/passing/passed_series.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/errors/grpc_status.h"

namespace tacho::server::interop {
namespace {

constexpr size_t kSampleBytes = sizeof(int64_t) + sizeof(double);

void FillMetric(const ForeignMetric& from, v1::PassedMetric* to) {
  to->set_typed(from.typed);
  to->set_name(from.name);
  to->set_type(static_cast<v1::MetricType>(from.type));
  to->set_unit(from.unit);
  to->set_help(from.help);
}

v1::PassedSeries::Part PartOf(ForeignSeries::Part part) {
  switch (part) {
    case ForeignSeries::Part::kSample:
      return v1::PassedSeries::PART_SAMPLE;
    case ForeignSeries::Part::kHistogram:
      return v1::PassedSeries::PART_HISTOGRAM;
    case ForeignSeries::Part::kOfHistogram:
      return v1::PassedSeries::PART_OF_HISTOGRAM;
  }
  return v1::PassedSeries::PART_SAMPLE;
}

ForeignSeries::Part PartOf(v1::PassedSeries::Part part) {
  switch (part) {
    case v1::PassedSeries::PART_HISTOGRAM:
      return ForeignSeries::Part::kHistogram;
    case v1::PassedSeries::PART_OF_HISTOGRAM:
      return ForeignSeries::Part::kOfHistogram;
    default:
      return ForeignSeries::Part::kSample;
  }
}

// Fills one message after the other.
class Packer {
 public:
  explicit Packer(const ForeignWrite& write) : write_(write) { Begin(); }

  void AddMetric(const ForeignMetric& metric) {
    MakeRoom();
    IndexOf(metric);
  }

  void AddSeries(const ForeignSeries& series) {
    for (uint32_t done = 0; done < series.count;) {
      MakeRoom();
      v1::PassedSeries* const to = messages_.back().add_series();
      to->set_labels(series.key.data(), series.key.size());
      to->set_part(PartOf(series.part));
      if (series.metric != nullptr) to->set_metric(IndexOf(*series.metric));
      const uint32_t fit = static_cast<uint32_t>((kPassedBytes - bytes_) / kSampleBytes) + 1;
      const uint32_t end = done + std::min(series.count - done, fit);
      for (; done < end; ++done) {
        const ForeignSample& sample = write_.samples[series.first + done];
        to->add_times_unix_ns(sample.time_ns);
        to->add_values(sample.value);
      }
      bytes_ += series.key.size() + static_cast<size_t>(to->values_size()) * kSampleBytes;
    }
  }

  std::vector<v1::StoreSeriesRequest> Take() { return std::move(messages_); }

 private:
  void Begin() {
    messages_.emplace_back().set_ends_at_once(write_.ends_at_once);
    metrics_.clear();
    bytes_ = 0;
  }

  void MakeRoom() {
    if (bytes_ >= kPassedBytes) Begin();
  }

  // In the current message.
  uint32_t IndexOf(const ForeignMetric& metric) {
    const auto [known, is_new] =
        metrics_.try_emplace(&metric, static_cast<uint32_t>(messages_.back().metrics_size()));
    if (is_new) {
      FillMetric(metric, messages_.back().add_metrics());
      bytes_ = std::min(kPassedBytes,
                        bytes_ + metric.name.size() + metric.help.size() + metric.unit.size());
    }
    return known->second;
  }

  const ForeignWrite& write_;
  std::vector<v1::StoreSeriesRequest> messages_;
  absl::flat_hash_map<const ForeignMetric*, uint32_t> metrics_;
  size_t bytes_ = 0;  // About how large the current message is.
};

}  // namespace

bool TellsMetrics(const ForeignWrite& write) {
  return std::any_of(write.metrics.begin(), write.metrics.end(),
                     [](const ForeignMetric& metric) { return !metric.name.empty(); });
}

std::vector<v1::StoreSeriesRequest> PassedSeries(const ForeignWrite& write,
                                                 std::span<const uint32_t> series) {
  Packer packer(write);
  for (const ForeignMetric& metric : write.metrics) {
    if (!metric.name.empty()) packer.AddMetric(metric);
  }
  for (const uint32_t index : series) packer.AddSeries(write.series[index]);
  return packer.Take();
}

absl::StatusOr<ForeignWrite> ReadPassedSeries(const v1::StoreSeriesRequest& request) {
  ForeignWrite write;
  write.ends_at_once = request.ends_at_once();
  for (const v1::PassedMetric& from : request.metrics()) {
    ForeignMetric& to = write.metrics.emplace_back();
    to.name = from.name();
    to.typed = from.typed();
    if (from.type() != v1::METRIC_TYPE_UNSPECIFIED && v1::MetricType_IsValid(from.type())) {
      to.type = static_cast<storage::MetricType>(from.type());
    }
    to.SetTexts(from.unit(), from.help());
  }
  for (const v1::PassedSeries& from : request.series()) {
    if (from.times_unix_ns_size() != from.values_size()) {
      return errors::InvalidFieldError("series.values", "each value needs one time");
    }
    const ForeignMetric* metric = nullptr;
    if (from.has_metric()) {
      if (from.metric() >= write.metrics.size()) {
        return errors::InvalidFieldError("series.metric",
                                         absl::StrCat(from.metric(), " is no index into metrics"));
      }
      metric = &write.metrics[from.metric()];
    }
    write.AddSeries(from.labels(), metric, PartOf(from.part()));
    for (int i = 0; i < from.values_size(); ++i) {
      write.AddSample(from.times_unix_ns(i), from.values(i));
    }
    TACHO_RETURN_IF_ERROR(write.CheckSize());
  }
  return write;
}

}  // namespace tacho::server::interop
