#include "server/query/compare/subject_answer.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/errors/grpc_status.h"
#include "server/query/compare/compare_plan.h"
#include "server/query/compare/compared_subject.h"
#include "server/query/compare/subject_pieces.h"

namespace tacho::server::query {
namespace {

int64_t AddedUp(int64_t origin_ns, int64_t elapsed_ns) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(origin_ns, elapsed_ns, &sum)) return sum;
  return std::numeric_limits<int64_t>::max();  // `elapsed_ns` is not negative.
}

// The grid of PLACES along time. Samples beyond it, which may have come since the others were asked
// for their extents, are left out.
absl::StatusOr<TimeGrid> GridOf(const v1::CompareSubjectRequest& request, ComparePlan* plan) {
  const TimeGrid grid = {{request.first_position(), request.last_position()}, request.buckets()};
  if (grid.extent.empty() || grid.extent.first < 0) {
    return errors::InvalidFieldError("last_position", "must not lie before first_position, from 0");
  }
  if (grid.buckets < 1 || grid.buckets > kMaxComparedPoints) {
    return errors::InvalidFieldError("buckets", absl::StrCat("must be 1 to ", kMaxComparedPoints));
  }
  plan->read.begin_ns = AddedUp(request.origin_unix_ns(), grid.extent.first);
  plan->read.end_ns = AddedUp(AddedUp(request.origin_unix_ns(), grid.extent.last), 1);
  return grid;
}

absl::Status SendPlaces(const v1::CompareSubjectRequest& request, const ComparePlan& plan,
                        const TimeGrid& grid, ComparedSubject* subject,
                        Send<v1::CompareSubjectResponse> send) {
  const std::string& metric = plan.metrics.front();
  ComparedFigures figures;
  const bool growth = request.figures() && request.growth();
  ComparedFigures* const wanted = request.figures() || plan.by_step ? &figures : nullptr;
  auto places = plan.by_step ? subject->PlacesByStep(metric, growth, wanted)
                             : subject->PlacesByTime(metric, grid, growth, wanted);
  if (!places.ok()) return places.status();
  v1::CompareSubjectResponse piece;
  subject->Describe(piece.mutable_described());
  if (request.figures()) ToProto(figures, piece.mutable_figures());
  for (size_t begin = 0;;) {
    const size_t end = std::min(places->size(), begin + kPlacesPerPiece);
    ToProto(*places, begin, end, piece.mutable_places());
    TACHO_RETURN_IF_ERROR(send(std::move(piece)));
    if (end == places->size()) return absl::OkStatus();
    piece = v1::CompareSubjectResponse();
    begin = end;
  }
}

}  // namespace

absl::Status AnswerSubject(const storage::Store& store, const v1::CompareSubjectRequest& request,
                           uint64_t max_series, const QueryControl& control,
                           Send<v1::CompareSubjectResponse> send) {
  if (request.compare().subjects_size() != 1) {
    return errors::InvalidFieldError("compare.subjects", "must be exactly one");
  }
  TACHO_ASSIGN_OR_RETURN(auto plan, MakeComparePlan(request.compare()));
  TimeGrid grid;
  if (request.part() == v1::COMPARED_PART_PLACES) {
    if (plan.metrics.size() != 1) {
      return errors::InvalidFieldError("compare.metrics", "must be exactly one with this part");
    }
    if (!plan.by_step) {
      TACHO_ASSIGN_OR_RETURN(grid, GridOf(request, &plan));
    }
  }
  const uint64_t most =
      request.max_series() == 0 ? max_series : std::min(max_series, request.max_series());
  TACHO_ASSIGN_OR_RETURN(const auto subject,
                         ComparedSubject::Create(store, plan, 0, most, control));
  subject->SetOrigin(request.origin_unix_ns());
  v1::CompareSubjectResponse response;
  switch (request.part()) {
    case v1::COMPARED_PART_SERIES: {
      const SubjectFacts& facts = subject->facts();
      response.mutable_metrics()->Assign(facts.metrics.begin(), facts.metrics.end());
      response.set_series(facts.series);
      response.mutable_attributes()->insert(facts.attributes.begin(), facts.attributes.end());
      return send(std::move(response));
    }
    case v1::COMPARED_PART_ORIGIN: {
      TACHO_RETURN_IF_ERROR(subject->FindOrigin(plan.metrics));
      if (subject->origin_ns() != std::numeric_limits<int64_t>::max()) {
        response.mutable_described()->set_first_unix_ns(subject->origin_ns());
      }
      return send(std::move(response));
    }
    case v1::COMPARED_PART_EXTENT: {
      AxisExtent extent;
      for (const std::string& metric : plan.metrics) {
        TACHO_RETURN_IF_ERROR(subject->IncludeExtent(metric, &extent));
      }
      if (!extent.empty()) {
        response.mutable_extent()->set_first(extent.first);
        response.mutable_extent()->set_last(extent.last);
      }
      subject->Describe(response.mutable_described());
      return send(std::move(response));
    }
    case v1::COMPARED_PART_PLACES:
      return SendPlaces(request, plan, grid, subject.get(), send);
    default:
      return errors::InvalidFieldError("part", "is not a part that is known here");
  }
}

}  // namespace tacho::server::query
