// Which stored series a receiver gets, and under which labels.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "server/interop/formats/label_mapping.h"
#include "server/promread/series_labels.h"
#include "storage/index/matcher.h"
#include "storage/model/series.h"
#include "tacho/config/v1/forward.pb.h"

namespace tacho::server::forward {

// A series as it is sent.
struct SeriesText {
  promread::LabelList labels;  // Sorted by name.
  // The same as bytes: what prometheus.TimeSeries has as its field `labels`.
  std::string labels_bytes;
  storage::MetricType type = storage::MetricType::kGauge;
  std::string help;
  std::string unit;
};
using SeriesTextPtr = std::shared_ptr<const SeriesText>;

// Immutable, so thread-safe. A pure function of its configuration.
class SeriesNaming {
 public:
  //   INVALID_ARGUMENT  `match` or `relabel` is wrong; the text names the key behind `key`, which
  //                     is that of the receiver, like "forward[0]".
  static absl::StatusOr<std::shared_ptr<const SeriesNaming>> Create(
      const config::v1::Forward& config, absl::string_view key);

  // Null: it is not for this receiver. Labels are those of remote read (series_labels.h), which
  // `match` sees; then `relabel` changes them.
  SeriesTextPtr TextOf(const storage::Series& series, uint32_t attempt) const;

 private:
  bool Selects(const promread::LabelList& labels) const;

  std::vector<std::vector<storage::Matcher>> selectors_;  // None: every series.
  std::shared_ptr<const interop::LabelMapping> relabel_;  // Null: there are no rules.
};

// The texts of layouts that were met lately. One thread at a time.
class SeriesTexts {
 public:
  // Series whose texts are kept: about 100 MB at 500 bytes each. Beyond that all are made anew.
  static constexpr size_t kMaxSeries = 200'000;

  explicit SeriesTexts(std::shared_ptr<const SeriesNaming> naming) : naming_(std::move(naming)) {}

  // One a column, null where the series is not wanted. Valid until the next call.
  const std::vector<SeriesTextPtr>& Of(const storage::LayoutPtr& layout);

 private:
  const std::shared_ptr<const SeriesNaming> naming_;
  absl::flat_hash_map<storage::LayoutId, std::unique_ptr<std::vector<SeriesTextPtr>>> layouts_;
  size_t series_ = 0;
  storage::LayoutId last_id_ = 0;
  const std::vector<SeriesTextPtr>* last_ = nullptr;
};

}  // namespace tacho::server::forward
