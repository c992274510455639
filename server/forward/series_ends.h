// Which of the series that a receiver has been sent have ended, so that it is told once: with the
// stale marker of Prometheus, or "no recorded value" of OpenTelemetry.
//
// A series of an attempt has ended if
//   - its task has ended (proto/base/task_end.h), and nothing has come since;
//   - a newer attempt has values of it;
//   - it was ended by its sender (Store::EndLatest);
//   - nothing has come for `staleness`, as on /metrics.
//
// This is known of what was sent since the collector started, and of what it finds in the journal
// then: nothing about ends is stored. A marker that comes again after a restart has the same time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "server/forward/series_text.h"
#include "storage/model/series.h"
#include "storage/store.h"

namespace tacho::server::forward {

// One thread at a time.
class SeriesEnds {
 public:
  // Columns of layouts that are followed: 32 bytes each, and their texts. Series beyond end without
  // a marker.
  static constexpr size_t kMaxColumns = 200'000;

  struct End {
    SeriesTextPtr text;
    int64_t time_ns = 0;  // A millisecond after its last sample.
  };

  // The receiver has been sent samples of a series, up to this time.
  void Sent(const storage::LayoutPtr& layout, size_t column, const SeriesTextPtr& text,
            int64_t time_ns);
  // Follows what the store shows now, as if it had been sent.
  void Begin(const storage::Store& store, SeriesTexts* texts);
  // Those that have ended since the last call; they are followed again if more of them is sent. To
  // be called when the receiver lacks nothing, or next to nothing.
  std::vector<End> Find(const storage::Store& store, absl::Time now, absl::Duration staleness);

 private:
  static constexpr int64_t kNothing = INT64_MIN;

  struct Column {
    storage::SeriesId series = 0;
    SeriesTextPtr text;
    int64_t sent_ns = kNothing;    // The newest time that was sent; kNothing: it is not followed.
    int64_t before_ns = kNothing;  // The same at the last Find().
    bool live = false;             // The store shows a value of it.
    bool waits = false;            // The store has a value that has not been sent.
  };
  struct Followed {
    std::string job;
    std::optional<uint32_t> task;
    std::string host;
    uint32_t attempt = 0;
    std::vector<Column> columns;
  };
  using Tasks = absl::flat_hash_map<std::string, int64_t>;  // The time of the newest end.

  void MarkLive(const storage::LatestRow& row, absl::Time oldest);
  Tasks EndedTasks(const storage::Store& store, absl::Time now);
  void ForgetLayouts();

  absl::flat_hash_map<storage::LayoutId, Followed> layouts_;
  size_t columns_ = 0;
  // The layout of the last Sent().
  storage::LayoutId last_id_ = 0;
  Followed* last_ = nullptr;
  std::optional<absl::Time> looked_;  // The last Find().
};

}  // namespace tacho::server::forward
