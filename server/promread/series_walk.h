// Goes through the samples of a query, series by series in the order of their labels: those that
// are stored here, and those of other members of the cluster.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"
#include "server/promread/elsewhere.h"
#include "server/promread/member_messages.h"
#include "server/promread/read_selection.h"
#include "server/promread/read_time.h"
#include "server/promread/step_series.h"
#include "server/query/read/series_scan.h"

namespace tacho::server::promread {

// The series of one member, one after the other.
class MemberCursor {
 public:
  explicit MemberCursor(std::unique_ptr<MemberAnswer<v1::MemberReadResponse>> answer)
      : answer_(std::move(answer)) {}

  // Goes to the next piece of a series, which is the first one at the first call. Statuses are
  // those of MemberAnswer::Next().
  absl::Status Advance() {
    if (++at_ < message_.series_size()) return Look();
    at_ = 0;
    do {
      message_.Clear();
      TACHO_ASSIGN_OR_RETURN(const bool more, answer_->Next(&message_));
      if (!more) {
        ended_ = true;
        return absl::OkStatus();
      }
    } while (message_.series().empty());
    return Look();
  }
  bool ended() const { return ended_; }
  // REQUIRES: !ended().
  const v1::MemberSeries& piece() const { return message_.series(at_); }
  const LabelList& labels() const { return labels_; }

 private:
  absl::Status Look() {
    labels_ = LabelsOf(piece());
    if (piece().times_unix_ms_size() == piece().values_size()) return absl::OkStatus();
    return errors::ErrorOf(errors::Failure::kMalformed,
                           "a member of the cluster sends times without values");
  }

  const std::unique_ptr<MemberAnswer<v1::MemberReadResponse>> answer_;
  v1::MemberReadResponse message_;
  int at_ = -1;
  bool ended_ = false;
  LabelList labels_;
};

// Calls visit(const LastOfEachMs::Sample&) -> absl::Status for the samples of one series that is
// stored here. `most` bounds what is read for a series of steps.
template <typename Visit>
absl::Status VisitSamples(const SelectionWorld& world, uint64_t most, const SelectedSeries& one,
                          const TimeSpan& span, storage::ReadView* view, const Visit& visit) {
  LastOfEachMs last;
  const auto add = [&](int64_t time_ns, double value) {
    const auto sample = last.Add(time_ns, value);
    return sample.has_value() ? visit(*sample) : absl::OkStatus();
  };
  if (one.steps.has_value()) {
    const auto add_step = [&](int64_t time_ns, int64_t step) {
      return add(time_ns, static_cast<double>(step));
    };
    TACHO_RETURN_IF_ERROR(VisitSteps(world, one, span, most, add_step));
    const auto sample = last.Finish();
    return sample.has_value() ? visit(*sample) : absl::OkStatus();
  }
  storage::ReadOptions options;
  options.begin_ns = span.begin_ns;
  options.end_ns = span.end_ns;
  options.attempt = one.attempt;
  query::SeriesScan scan(view->Read(one.series, options), query::AttemptCondition(), world.control);
  storage::Chunk chunk;
  for (;;) {
    TACHO_ASSIGN_OR_RETURN(const bool more, scan.Next({}, &chunk));
    if (!more) break;
    const storage::SampleColumns& columns = chunk.samples().columns;
    for (size_t i = 0; i < columns.size(); ++i) {
      TACHO_RETURN_IF_ERROR(add(columns.times[i], columns.values[i]));
    }
  }
  const auto sample = last.Finish();
  return sample.has_value() ? visit(*sample) : absl::OkStatus();
}

// Calls of the sink, for each series:
//   sink->Add(const LabelList&, const LastOfEachMs::Sample&) -> absl::Status   for each sample
//   sink->EndSeries(const LabelList&) -> absl::Status
// A series that has no samples here may have EndSeries() alone. Where two have the same labels,
// that of this collector counts, or of the member that comes first. Statuses are those of
// SelectSeries(), of the members and of the sink.
template <typename Sink>
absl::Status WalkSeries(const SelectionWorld& world, uint64_t most_samples, const ReadQuery& query,
                        MemberAnswers<v1::MemberReadResponse> members, Sink* sink) {
  TACHO_ASSIGN_OR_RETURN(const auto selected, SelectSeries(world, query));
  std::vector<storage::SeriesPtr> stored;
  stored.reserve(selected.size());
  for (const SelectedSeries& one : selected) {
    if (one.series != nullptr) stored.push_back(one.series);
  }
  const auto view = world.store.OpenView(std::move(stored));
  const TimeSpan span = TimeSpanOf(query);
  std::vector<std::unique_ptr<MemberCursor>> cursors;
  for (auto& member : members) {
    cursors.push_back(std::make_unique<MemberCursor>(std::move(member)));
    TACHO_RETURN_IF_ERROR(cursors.back()->Advance());
  }
  uint64_t series = selected.size();
  LabelList labels;
  for (size_t at = 0;;) {
    MemberCursor* first = nullptr;
    for (const auto& cursor : cursors) {
      if (!cursor->ended() && (first == nullptr || cursor->labels() < first->labels())) {
        first = cursor.get();
      }
    }
    if (at == selected.size() && first == nullptr) return absl::OkStatus();
    if (first == nullptr || (at < selected.size() && !(first->labels() < selected[at].labels))) {
      const SelectedSeries& one = selected[at++];
      labels = one.labels;
      const auto add = [&](const LastOfEachMs::Sample& sample) {
        return sink->Add(one.labels, sample);
      };
      TACHO_RETURN_IF_ERROR(VisitSamples(world, most_samples, one, span, view.get(), add));
    } else {
      if (++series > world.max_series) return TooManySeries(world.max_series);
      for (labels = first->labels(); !first->ended() && first->labels() == labels;) {
        const v1::MemberSeries& piece = first->piece();
        for (int i = 0; i < piece.values_size(); ++i) {
          TACHO_RETURN_IF_ERROR(sink->Add(labels, {piece.times_unix_ms(i), piece.values(i)}));
        }
        TACHO_RETURN_IF_ERROR(world.control.Check());
        TACHO_RETURN_IF_ERROR(first->Advance());
      }
    }
    TACHO_RETURN_IF_ERROR(sink->EndSeries(labels));
    for (const auto& cursor : cursors) {
      while (!cursor->ended() && cursor->labels() == labels) {
        TACHO_RETURN_IF_ERROR(cursor->Advance());
      }
    }
  }
}

}  // namespace tacho::server::promread
