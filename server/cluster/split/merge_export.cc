#include "server/cluster/split/merge_export.h"

#include <deque>
#include <utility>

#include "proto/base/status_macros.h"
#include "server/cluster/split/merge_parts.h"
#include "server/cluster/split/part_merger.h"
#include "server/cluster/split/series_order.h"

namespace tacho::server::cluster {
namespace {

struct ExportOrder {
  using Response = v1::ExportResponse;
  using Item = v1::ExportResponse;

  static void Unpack(Response* message, std::deque<Item>* to) {
    to->push_back(std::move(*message));
  }

  // The samples of a series follow it at once.
  static int RankOf(const Item& item) {
    switch (item.message_case()) {
      case Item::kJob:
        return 0;
      case Item::kEvent:
        return 1;
      case Item::kSamples:
        return 2;
      case Item::kSeries:
        return 3;
      default:
        return 4;
    }
  }
  static bool IsBefore(const Item& a, const Item& b) {
    if (RankOf(a) != RankOf(b)) return RankOf(a) < RankOf(b);
    if (a.has_event()) return a.event().time_unix_ns() < b.event().time_unix_ns();
    return a.has_series() && ComesBefore(a.series().series(), b.series().series());
  }
};

}  // namespace

absl::Status MergeExport(const PartSources<v1::ExportResponse>& parts,
                         const query::QueryControl& control,
                         absl::FunctionRef<absl::Status(const v1::ExportResponse&)> send) {
  v1::ExportResponse job, end;
  uint64_t series = 0;
  bool sent_job = false;
  const auto send_job = [&]() -> absl::Status {
    return std::exchange(sent_job, true) ? absl::OkStatus() : send(job);
  };
  const auto take = [&](v1::ExportResponse item) -> absl::Status {
    if (item.has_job()) {
      AddJobDetail(std::move(*item.mutable_job()), job.mutable_job());
      return absl::OkStatus();
    }
    TACHO_RETURN_IF_ERROR(send_job());
    if (item.has_end()) {
      v1::ExportEnd* const sum = end.mutable_end();
      sum->set_series(sum->series() + item.end().series());
      sum->set_samples(sum->samples() + item.end().samples());
      sum->set_events(sum->events() + item.end().events());
      return absl::OkStatus();
    }
    if (item.has_series()) item.mutable_series()->set_index(static_cast<uint32_t>(series++));
    if (item.has_samples()) {
      if (series == 0) return absl::InternalError("a member's export begins with samples");
      item.mutable_samples()->set_index(static_cast<uint32_t>(series - 1));
    }
    return send(item);
  };
  TACHO_RETURN_IF_ERROR(PartMerger<ExportOrder>(parts, control).ForEach(take));
  TACHO_RETURN_IF_ERROR(send_job());
  return send(end);
}

}  // namespace tacho::server::cluster
