// Which stored series a receiver gets, and under which labels.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/interop/formats/label_mapping.h"
#include "server/promread/series_labels.h"
#include "storage/index/matcher.h"
#include "storage/model/series.h"
#include "tacho/config/v1/forward.pb.h"

namespace tacho::server::forward {

// A series in OTLP, as bytes that are made once (otlp_request.h).
struct OtlpText {
  std::string resource;    // A Resource.
  std::string metric;      // The fields name, description and unit of a Metric.
  std::string attributes;  // The fields `attributes` of each NumberDataPoint.
  bool grows = false;      // It is a Sum that only grows; else a Gauge.
};

// A series as it is sent.
struct SeriesText {
  promread::LabelList labels;  // Sorted by name.
  // For remote write, the same as bytes: what prometheus.TimeSeries has as its field `labels`.
  std::string labels_bytes;
  std::unique_ptr<const OtlpText> otlp;  // For OTLP.
  size_t hash = 0;                       // Of the labels: chooses the connection.
  storage::MetricType type = storage::MetricType::kGauge;
  std::string help;
  std::string unit;
};
using SeriesTextPtr = std::shared_ptr<const SeriesText>;

using Selectors = std::vector<std::vector<storage::Matcher>>;
//   INVALID_ARGUMENT  the text names the key, like "forward[0].match[1]", of the one that is wrong.
absl::StatusOr<Selectors> ParseSelectors(
    const google::protobuf::RepeatedPtrField<std::string>& texts, absl::string_view key);
// By one of them, or there are none.
bool SelectedBy(const Selectors& selectors, const promread::LabelList& labels);

// Immutable, so thread-safe. A pure function of its configuration.
class SeriesNaming {
 public:
  //   INVALID_ARGUMENT  `match` or `relabel` is wrong; the text names the key behind `key`, which
  //                     is that of the receiver, like "forward[0]".
  static absl::StatusOr<std::shared_ptr<const SeriesNaming>> Create(
      const config::v1::Forward& config, absl::string_view key);

  // Null: it is not for this receiver. Labels are those of remote read (series_labels.h), which
  // `match` sees; then `relabel` changes them. In OTLP the metric has its own name again, unless a
  // rule has changed it.
  SeriesTextPtr TextOf(const storage::Series& series, uint32_t attempt) const;

 private:
  // Null: no rule of `relabel` fits.
  std::optional<interop::MappedSeries> Relabelled(const promread::LabelList& labels) const;

  Selectors selectors_;
  std::shared_ptr<const interop::LabelMapping> relabel_;  // Null: there are no rules.
  bool otlp_ = false;
};

// The texts of layouts that were met lately. One thread at a time.
class SeriesTexts {
 public:
  // Series whose texts are kept: about 100 MB at 500 bytes each. Beyond that all are made anew.
  static constexpr size_t kMaxSeries = 200'000;

  // `shows` leaves out what jobs have from hosts; null: nothing.
  explicit SeriesTexts(
      std::shared_ptr<const SeriesNaming> naming,
      std::function<bool(absl::string_view job, absl::string_view host)> shows = nullptr)
      : naming_(std::move(naming)), shows_(std::move(shows)) {}

  // One a column, null where the series is not wanted. Valid until the next call.
  const std::vector<SeriesTextPtr>& Of(const storage::LayoutPtr& layout);

 private:
  const std::shared_ptr<const SeriesNaming> naming_;
  const std::function<bool(absl::string_view job, absl::string_view host)> shows_;
  absl::flat_hash_map<storage::LayoutId, std::unique_ptr<std::vector<SeriesTextPtr>>> layouts_;
  size_t series_ = 0;
  storage::LayoutId last_id_ = 0;
  const std::vector<SeriesTextPtr>* last_ = nullptr;
};

}  // namespace tacho::server::forward
