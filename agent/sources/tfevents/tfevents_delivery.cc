#include "agent/sources/tfevents/tfevents_delivery.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"

namespace tacho::agent {
namespace {

v1::Layout LayoutOf(const v1::Source& source, uint32_t attempt, const std::string& tag) {
  v1::Layout layout;
  *layout.mutable_source() = source;
  layout.mutable_source()->set_attempt(attempt);
  layout.set_has_steps(true);
  v1::Metric* metric = layout.add_series()->mutable_metric();
  metric->set_name(tag);
  metric->set_type(v1::METRIC_TYPE_GAUGE);
  return layout;
}

template <typename T>
std::span<const T> Slice(const std::vector<T>& all, uint64_t begin, uint64_t count) {
  return std::span<const T>(all).subspan(begin, count);
}

}  // namespace

TfeventsDelivery::TfeventsDelivery(const v1::Source& source, std::string checkpoint_key,
                                   TfeventsContext* context, RowSink* sink)
    : source_(source), key_(std::move(checkpoint_key)), context_(context), sink_(sink) {}

TfeventsDelivery::Result TfeventsDelivery::Deliver(const client::TfeventsRowBuilder& rows,
                                                   const client::TfeventsPosition& end,
                                                   absl::Time deadline,
                                                   client::TfeventsPosition* position) {
  end_ = &end;
  position_ = position;
  std::vector<Group> groups;
  for (const auto& [attempt, tags] : rows.rows()) {
    for (const auto& [tag, list] : tags) groups.push_back({attempt, &tag, &list, false});
  }
  if (!groups.empty()) groups.back().last = true;
  for (const Group& group : groups) {
    const Result result = DeliverGroup(group, deadline);
    if (result != Result::kDone) return result;
  }
  if (*position == end) return Result::kDone;
  // No rows in the chunk, or none that the sink would have.
  if (absl::IsUnavailable(sink_->WriteCheckpoint({key_, end.Encode()}))) return Result::kRefused;
  *position = end;
  return Result::kDone;
}

TfeventsDelivery::Result TfeventsDelivery::DeliverGroup(const Group& group, absl::Time deadline) {
  uint64_t begin = 0;
  if (position_->chunk_end != 0) {
    const auto done = std::tie(position_->done_attempt, position_->done_tag);
    const auto here = std::tie(group.attempt, *group.tag);
    if (here < done) return Result::kDone;
    if (here == done) begin = position_->done_rows;
  }
  const uint64_t size = group.rows->values.size();
  if (begin >= size) return Result::kDone;
  if (progress_ && context_->clock() >= deadline) return Result::kPaused;
  if (!KnowSeries(group)) {
    Refuse(group, size - begin,
           absl::ResourceExhaustedError(absl::StrCat("more than ", context_->max_series,
                                                     " tags in all log directories together")));
    return Result::kDone;
  }
  const absl::StatusOr<uint32_t> layout =
      sink_->DefineLayout(LayoutOf(source_, group.attempt, *group.tag));
  if (absl::IsUnavailable(layout.status())) return Result::kRefused;
  if (!layout.ok()) {
    Refuse(group, size - begin, layout.status());
    return Result::kDone;
  }
  while (begin < size) {
    const uint64_t count = std::min<uint64_t>(kMaxRowsPerBatch, size - begin);
    const client::TfeventsPosition next = After(group, begin + count);
    const absl::Status status =
        sink_->AppendRows(*layout, Slice(group.rows->times_unix_ns, begin, count),
                          Slice(group.rows->steps, begin, count),
                          Slice(group.rows->values, begin, count), {key_, next.Encode()});
    if (absl::IsUnavailable(status)) return Result::kRefused;
    if (status.ok()) {
      context_->stats.scalars += count;
      *position_ = next;
    } else {
      Refuse(group, count, status);
    }
    begin += count;
    progress_ = true;
  }
  return Result::kDone;
}

bool TfeventsDelivery::KnowSeries(const Group& group) {
  using Name = std::tuple<absl::string_view, uint32_t, absl::string_view>;
  const uint64_t name = absl::Hash<Name>()(Name(key_, group.attempt, *group.tag));
  if (context_->series.contains(name)) return true;
  if (context_->series.size() >= context_->max_series) return false;
  context_->series.insert(name);
  return true;
}

client::TfeventsPosition TfeventsDelivery::After(const Group& group, uint64_t rows) const {
  if (group.last && rows == group.rows->values.size()) return *end_;
  client::TfeventsPosition next = *position_;
  next.chunk_end = end_->offset;
  next.done_attempt = group.attempt;
  next.done_tag = *group.tag;
  next.done_rows = rows;
  return next;
}

void TfeventsDelivery::Refuse(const Group& group, uint64_t rows, const absl::Status& status) {
  context_->stats.refused += rows;
  context_->log->Warn("leaves out values of a tag",
                      {{"tag", *group.tag}, {"job", source_.job()}, {"reason", status.ToString()}});
}

}  // namespace tacho::agent
