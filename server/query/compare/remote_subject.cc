#include "server/query/compare/remote_subject.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/query/compare/subject_pieces.h"

namespace tacho::server::query {
namespace {

constexpr int64_t kNoOrigin = std::numeric_limits<int64_t>::max();

}  // namespace

RemoteSubject::RemoteSubject(const v1::CompareRequest& request, int index, uint64_t max_series,
                             SubjectCall call, const QueryControl& control)
    : request_(request), max_series_(max_series), call_(std::move(call)), control_(control) {
  const v1::Subject subject = request.subjects(index);
  request_.clear_subjects();
  *request_.add_subjects() = subject;
  described_.set_job(subject.job());
}

absl::StatusOr<std::unique_ptr<SubjectSource>> RemoteSubject::Create(
    const v1::CompareRequest& request, int index, uint64_t max_series, SubjectCall call,
    const QueryControl& control) {
  auto made =
      absl::WrapUnique(new RemoteSubject(request, index, max_series, std::move(call), control));
  v1::CompareSubjectRequest asked;
  *asked.mutable_compare() = made->request_;
  asked.set_part(v1::COMPARED_PART_SERIES);
  asked.set_max_series(max_series);
  SubjectFacts& facts = made->facts_;
  const absl::Status status = made->Call(asked, [&](const v1::CompareSubjectResponse& piece) {
    facts.metrics.insert(facts.metrics.end(), piece.metrics().begin(), piece.metrics().end());
    facts.series += piece.series();
    facts.attributes.insert(piece.attributes().begin(), piece.attributes().end());
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  const auto by_name = [](const v1::Metric& a, const v1::Metric& b) { return a.name() < b.name(); };
  if (facts.series > max_series ||
      !std::is_sorted(facts.metrics.begin(), facts.metrics.end(), by_name)) {
    return absl::InternalError("a member of the cluster returned more series than were asked for");
  }
  return made;
}

absl::Status RemoteSubject::Call(
    const v1::CompareSubjectRequest& request,
    absl::FunctionRef<absl::Status(const v1::CompareSubjectResponse&)> take) {
  TACHO_RETURN_IF_ERROR(control_.Check());
  return call_(request, [&](const v1::CompareSubjectResponse& piece) {
    TACHO_RETURN_IF_ERROR(control_.Check());
    Include(piece.described());
    return take(piece);
  });
}

v1::CompareSubjectRequest RemoteSubject::Asks(v1::ComparedPart part,
                                              const std::string& metric) const {
  v1::CompareSubjectRequest asked;
  *asked.mutable_compare() = request_;
  asked.mutable_compare()->clear_metrics();
  asked.mutable_compare()->add_metrics(metric);
  asked.set_part(part);
  asked.set_max_series(max_series_);
  asked.set_origin_unix_ns(origin_ns_);
  return asked;
}

absl::Status RemoteSubject::FindOrigin(const std::vector<std::string>& metrics) {
  origin_ns_ = kNoOrigin;
  if (metrics.empty()) return absl::OkStatus();  // Nothing is compared.
  v1::CompareSubjectRequest asked;
  *asked.mutable_compare() = request_;
  asked.mutable_compare()->mutable_metrics()->Assign(metrics.begin(), metrics.end());
  asked.set_part(v1::COMPARED_PART_ORIGIN);
  asked.set_max_series(max_series_);
  return Call(asked, [&](const v1::CompareSubjectResponse& piece) {
    if (piece.described().has_first_unix_ns()) origin_ns_ = piece.described().first_unix_ns();
    return absl::OkStatus();
  });
}

absl::Status RemoteSubject::IncludeExtent(const std::string& metric, AxisExtent* extent) {
  return Call(Asks(v1::COMPARED_PART_EXTENT, metric),
              [extent](const v1::CompareSubjectResponse& piece) {
                if (!piece.has_extent()) return absl::OkStatus();
                if (piece.extent().first() < 0) {
                  return absl::InternalError("a member returned a sample before the origin");
                }
                extent->Include(piece.extent().first());
                extent->Include(piece.extent().last());
                return absl::OkStatus();
              });
}

absl::StatusOr<ComparedPlaces> RemoteSubject::Places(v1::CompareSubjectRequest request,
                                                     int64_t last_index, bool growth,
                                                     ComparedFigures* figures) {
  request.set_figures(figures != nullptr);
  request.set_growth(figures != nullptr && growth);
  ComparedPlaces places;
  TACHO_RETURN_IF_ERROR(Call(request, [&](const v1::CompareSubjectResponse& piece) {
    if (piece.has_figures() && figures != nullptr) *figures = FromProto(piece.figures());
    if (places.size() > kMaxPlaces) {
      return absl::InternalError("a member of the cluster returned too many places");
    }
    return AppendPlaces(piece.places(), last_index, &places);
  }));
  return places;
}

absl::StatusOr<ComparedPlaces> RemoteSubject::PlacesByTime(const std::string& metric,
                                                           const TimeGrid& grid, bool growth,
                                                           ComparedFigures* figures) {
  v1::CompareSubjectRequest asked = Asks(v1::COMPARED_PART_PLACES, metric);
  asked.set_first_position(grid.extent.first);
  asked.set_last_position(grid.extent.last);
  asked.set_buckets(grid.buckets);
  const int64_t last = grid.buckets_of_it().IndexOf(grid.extent.last);
  return Places(std::move(asked), last, growth, figures);
}

absl::StatusOr<ComparedPlaces> RemoteSubject::PlacesByStep(const std::string& metric, bool growth,
                                                           ComparedFigures* figures) {
  return Places(Asks(v1::COMPARED_PART_PLACES, metric), std::numeric_limits<int64_t>::max(), growth,
                figures);
}

void RemoteSubject::Include(const v1::ComparedSubject& described) {
  std::vector<uint32_t> attempts(described_.attempts().begin(), described_.attempts().end());
  attempts.insert(attempts.end(), described.attempts().begin(), described.attempts().end());
  std::sort(attempts.begin(), attempts.end());
  attempts.erase(std::unique(attempts.begin(), attempts.end()), attempts.end());
  described_.mutable_attempts()->Assign(attempts.begin(), attempts.end());
  if (described.has_first_unix_ns() && described.has_last_unix_ns()) {
    const bool none = !described_.has_first_unix_ns();
    described_.set_first_unix_ns(
        none ? described.first_unix_ns()
             : std::min(described_.first_unix_ns(), described.first_unix_ns()));
    described_.set_last_unix_ns(
        none ? described.last_unix_ns()
             : std::max(described_.last_unix_ns(), described.last_unix_ns()));
  }
  if (described.has_first_step() && described.has_last_step()) {
    const bool none = !described_.has_first_step();
    described_.set_first_step(none ? described.first_step()
                                   : std::min(described_.first_step(), described.first_step()));
    described_.set_last_step(none ? described.last_step()
                                  : std::max(described_.last_step(), described.last_step()));
  }
}

}  // namespace tacho::server::query
