// One request of series on its way to the store. It is worked through in passes over its series:
// places of the series that are known, and new sheets for those that are not (intake_places.cc);
// then rights and rows (intake_request.cc). Only then are rows handed to the store, so that a
// request that is refused as a whole leaves no sample behind.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/base/status_macros.h"
#include "server/interop/intake.h"

namespace tacho::server::interop {

// One thread.
class Intake::Request {
 public:
  Request(Intake* intake, const ForeignWrite& write, const Sender& sender)
      : intake_(*intake),
        options_(intake->options_),
        write_(write),
        sender_(sender),
        can_pass_(intake->CanPass(sender)) {}

  // Everything that can refuse the request as a whole.
  absl::Status Prepare() {
    bucket_ = options_.quotas->BucketOfAgent(sender_.Name());
    TACHO_RETURN_IF_ERROR(intake_.CheckRates(bucket_.get(), nullptr));
    generation_ = intake_.sheets_.generation();
    FindPlaces();
    if (!unknown_.empty()) TACHO_RETURN_IF_ERROR(MakeSheets());
    for (const auto& [index, first] : repeated_) places_[index] = places_[first];
    TACHO_RETURN_IF_ERROR(MakeRows());
    return refused_for_time_ ? intake_.CheckClock() : absl::OkStatus();
  }
  // Hands the rows to the store, and passes on what other members keep.
  void Send(Done done);

 private:
  // Rows of one sheet.
  struct Rows {
    SheetPtr sheet;
    std::vector<int64_t> times;
    size_t next = 0;                              // Where the next sample may belong.
    absl::flat_hash_map<int64_t, size_t> row_at;  // By time, once there are many.
    std::vector<double> values;
    uint64_t samples = 0;
    std::vector<std::pair<uint32_t, int64_t>> ended;  // Columns, and when.
    ingest::RowSelection selection;
  };
  struct Refused {
    uint64_t samples = 0;
    std::string example;
    std::string detail;
  };
  // By job and reason.
  using RefusedBy = std::map<std::pair<std::string, v1::Reject::Reason>, Refused>;
  // A source, and whether its series have samples of the same time: those go on one sheet.
  using SheetKey = std::tuple<std::string, std::optional<uint32_t>, uint32_t, std::string, int64_t>;
  struct NewSeries {
    size_t index = 0;  // In write_.series.
    MappedSeries mapped;
  };

  void FindPlaces();
  absl::Status MakeSheets();
  absl::Status MakeSheet(const std::vector<NewSeries>& series, size_t begin, size_t end);
  void MarkInvalid(size_t index, const absl::Status& why);
  // The shard of a job that another member keeps.
  std::optional<uint32_t> ShardElsewhere(const storage::Source& source) const;
  // Counts a series whose job another member keeps.
  void RefuseElsewhere(const ForeignSeries& series);
  // A message to a shard.
  using Passed = std::pair<uint32_t, v1::StoreSeriesRequest>;
  std::vector<Passed> MakePassed() const;
  absl::Status MakeRows();
  void AddSeries(const ForeignSeries& series, const Place& place, const ingest::TimeWindow& window);
  size_t RowAt(int64_t time_ns, Rows* rows);
  // Finds the layouts of all rows, which may have expired.
  absl::Status FindLayouts(std::vector<storage::LayoutPtr>* layouts);
  // The series of a layout that end at once. Those that are folded into others do not.
  static void AddEnds(const Rows& rows, const storage::LayoutPtr& layout,
                      std::vector<storage::SeriesEnd>* ends);
  void Refuse(const std::string& job, v1::Reject::Reason reason, uint64_t samples,
              absl::string_view example, absl::string_view detail);
  void Report();

  Intake& intake_;
  const IntakeOptions& options_;
  const ForeignWrite& write_;
  const Sender& sender_;
  const bool can_pass_;
  std::shared_ptr<edge::TokenBucket> bucket_;
  uint64_t generation_ = 0;    // Of the places.
  std::vector<Place> places_;  // One for each series.
  std::vector<size_t> unknown_;
  std::vector<std::pair<size_t, size_t>> repeated_;  // A series, and where it was first.
  std::vector<std::unique_ptr<Rows>> rows_;
  absl::flat_hash_map<const Sheet*, Rows*> rows_of_;
  Rows* last_rows_ = nullptr;  // Series of a sheet come one after the other.
  uint64_t row_bytes_ = 0;     // Of all rows.
  RefusedBy refused_;
  bool refused_for_time_ = false;
  std::string invalid_;  // Why the first series that is no series is none.
  std::map<uint32_t, std::vector<uint32_t>> passed_;  // By shard: series that are passed on.
  uint64_t elsewhere_ = 0;         // Samples that other members keep, and that are not passed on.
  std::string elsewhere_example_;  // A job of them, and who keeps it.
  WriteOutcome outcome_;
};

}  // namespace tacho::server::interop
