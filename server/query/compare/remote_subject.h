// A subject of a comparison that another member of the cluster keeps: its owner reads it and
// returns places, so that no sample travels.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/query/compare/subject_source.h"
#include "server/query/read/query_control.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

// Makes one call of the owner and passes on each message of the answer. Returns the status of the
// call, or the first of `take` that is not OK.
using SubjectCall = std::function<absl::Status(
    const v1::CompareSubjectRequest& request,
    absl::FunctionRef<absl::Status(const v1::CompareSubjectResponse& piece)> take)>;
// How to ask the owner of a job; null: this collector keeps it.
using SubjectsElsewhere = std::function<SubjectCall(absl::string_view job)>;

// Each call of it sees what the owner has then: rows that arrive during a comparison may be in the
// figures of one metric and not of another.
class RemoteSubject final : public SubjectSource {
 public:
  // Asks the owner for the series, at most `max_series`. Takes subject `index` of the request.
  // `control` must outlive it.
  //   INTERNAL  the owner's answer makes no sense.
  //   others    as ComparedSubject::Create(), and those of `call`.
  static absl::StatusOr<std::unique_ptr<SubjectSource>> Create(const v1::CompareRequest& request,
                                                               int index, uint64_t max_series,
                                                               SubjectCall call,
                                                               const QueryControl& control);

  const SubjectFacts& facts() const override { return facts_; }
  absl::Status FindOrigin(const std::vector<std::string>& metrics) override;
  absl::Status IncludeExtent(const std::string& metric, AxisExtent* extent) override;
  absl::StatusOr<ComparedPlaces> PlacesByTime(const std::string& metric, const TimeGrid& grid,
                                              bool growth, ComparedFigures* figures) override;
  absl::StatusOr<ComparedPlaces> PlacesByStep(const std::string& metric, bool growth,
                                              ComparedFigures* figures) override;
  void Describe(v1::ComparedSubject* proto) const override { *proto = described_; }

 private:
  RemoteSubject(const v1::CompareRequest& request, int index, uint64_t max_series, SubjectCall call,
                const QueryControl& control);

  v1::CompareSubjectRequest Asks(v1::ComparedPart part, const std::string& metric) const;
  absl::Status Call(const v1::CompareSubjectRequest& request,
                    absl::FunctionRef<absl::Status(const v1::CompareSubjectResponse&)> take);
  // `last_index`: the highest position that makes sense.
  absl::StatusOr<ComparedPlaces> Places(v1::CompareSubjectRequest request, int64_t last_index,
                                        bool growth, ComparedFigures* figures);
  // Adds to described_.
  void Include(const v1::ComparedSubject& described);

  v1::CompareRequest request_;  // Asks for this subject alone, and for all metrics.
  const uint64_t max_series_;
  const SubjectCall call_;
  const QueryControl& control_;
  SubjectFacts facts_;
  v1::ComparedSubject described_;
  int64_t origin_ns_ = 0;
};

}  // namespace tacho::server::query
