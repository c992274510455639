// Compares one metric after the other, so that memory holds only one. The first message describes
// the subjects, which is known only after the last metric; so the first metrics wait in memory.
#include "server/query/compare/compare_query.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/query/compare/compare_plan.h"
#include "server/query/compare/compared_metric.h"
#include "server/query/compare/compared_subject.h"
#include "server/query/compare/remote_subject.h"
#include "server/query/compare/subject_source.h"

namespace tacho::server::query {
namespace {

// The names of other jobs that a text suggests are not for those who may not read these jobs.
absl::Status WithoutOtherNames(const absl::Status& status, const security::Rights& rights,
                               const std::string& job) {
  if (!absl::IsNotFound(status) || rights.SeesEveryJob()) return status;
  return absl::NotFoundError(absl::StrCat("no job \"", job, "\", or not that attempt of it"));
}

class Comparison {
 public:
  Comparison(ComparePlan plan, const RangeLimits& limits, const QueryControl& control,
             Send<v1::CompareResponse> send)
      : plan_(std::move(plan)), limits_(limits), control_(control), send_(send) {}

  absl::Status FindSubjects(const storage::Store& store, const v1::CompareRequest& request,
                            const security::Rights& rights, const SubjectsElsewhere& elsewhere) {
    uint64_t left = limits_.max_series;
    for (size_t i = 0; i < plan_.subjects.size(); ++i) {
      const std::string& job = plan_.subjects[i].selection.selector.job;
      SubjectCall call = elsewhere == nullptr ? nullptr : elsewhere(job);
      auto subject = call == nullptr ? Here(store, i, left)
                                     : RemoteSubject::Create(request, static_cast<int>(i), left,
                                                             std::move(call), control_);
      if (!subject.ok()) return WithoutOtherNames(subject.status(), rights, job);
      left -= (*subject)->facts().series;
      subjects_.push_back(*std::move(subject));
    }
    ChooseMetrics();
    if (plan_.by_step) return absl::OkStatus();
    for (const auto& subject : subjects_) {
      TACHO_RETURN_IF_ERROR(subject->FindOrigin(metrics_));
    }
    return absl::OkStatus();
  }

  absl::Status SendAll() {
    std::vector<v1::CompareResponse> held;
    size_t held_bytes = 0;
    bool holding = true;
    for (const std::string& metric : metrics_) {
      v1::CompareResponse response;
      TACHO_RETURN_IF_ERROR(Fill(metric, response.mutable_metric()));
      held_bytes += response.ByteSizeLong();
      holding = holding && held_bytes <= kHeldComparisonBytes;
      if (holding) held.push_back(std::move(response));
    }
    TACHO_RETURN_IF_ERROR(SendSubjects());
    for (v1::CompareResponse& response : held) {
      TACHO_RETURN_IF_ERROR(SendCounted(std::move(response)));
    }
    for (size_t i = held.size(); i < metrics_.size(); ++i) {
      v1::CompareResponse response;
      absl::Status status = Fill(metrics_[i], response.mutable_metric());
      if (status.ok()) status = SendCounted(std::move(response));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<std::unique_ptr<SubjectSource>> Here(const storage::Store& store, size_t index,
                                                      uint64_t max_series) const {
    return ComparedSubject::Create(store, plan_, index, max_series, control_);
  }

  void ChooseMetrics() {
    if (!plan_.metrics.empty()) {
      metrics_ = plan_.metrics;
      std::sort(metrics_.begin(), metrics_.end());
      metrics_.erase(std::unique(metrics_.begin(), metrics_.end()), metrics_.end());
      return;
    }
    std::map<std::string, size_t> subjects;
    for (const auto& subject : subjects_) {
      for (const v1::Metric& metric : subject->facts().metrics) ++subjects[metric.name()];
    }
    const size_t needed = std::min<size_t>(2, subjects_.size());
    for (const auto& [metric, having] : subjects) {
      if (having >= needed) metrics_.push_back(metric);
    }
  }

  // The samples of one metric, of all subjects.
  struct Read {
    explicit Read(size_t subjects) : rows(subjects), figures(subjects) {}

    bool growth = false;               // Averages of counters say nothing: how fast they grow does.
    std::vector<ComparedPlaces> rows;  // From which rows are made.
    std::vector<ComparedPlaces> places;  // At which they are compared; empty: those of `rows`.
    std::vector<ComparedFigures> figures;
  };

  absl::Status Fill(const std::string& name, v1::CompareMetric* metric) {
    metric->mutable_metric()->set_name(name);
    for (const auto& subject : subjects_) {
      const v1::Metric* const found = subject->facts().Find(name);
      if (found != nullptr && metric->metric().type() == v1::METRIC_TYPE_UNSPECIFIED) {
        *metric->mutable_metric() = *found;
      }
    }
    Read read(subjects_.size());
    const v1::MetricType type = metric->metric().type();
    read.growth = type == v1::METRIC_TYPE_COUNTER || type == v1::METRIC_TYPE_HISTOGRAM;
    TACHO_RETURN_IF_ERROR(plan_.by_step ? ReadBySteps(name, &read) : ReadByTime(name, &read));
    FillComparison(read.rows, plan_.max_points, plan_.values, metric);
    FillSummaries(read.places.empty() ? read.rows : read.places, read.figures,
                  plan_.fold.function == v1::AGGREGATE_FUNCTION_AVG, metric);
    return absl::OkStatus();
  }

  absl::Status ReadBySteps(const std::string& name, Read* read) {
    size_t total = 0;
    for (size_t i = 0; i < subjects_.size(); ++i) {
      if (subjects_[i]->facts().Find(name) == nullptr) continue;
      TACHO_ASSIGN_OR_RETURN(read->rows[i],
                             subjects_[i]->PlacesByStep(name, read->growth, &read->figures[i]));
      total += read->rows[i].size();
      if (total > kMaxComparedPlaces) return TooManyPlaces(name);
    }
    return absl::OkStatus();
  }

  // Rows are as many as are asked for, but what the figures are taken from is always the same.
  absl::Status ReadByTime(const std::string& name, Read* read) {
    AxisExtent extent;
    for (const auto& subject : subjects_) {
      if (subject->facts().Find(name) == nullptr) continue;
      TACHO_RETURN_IF_ERROR(subject->IncludeExtent(name, &extent));
    }
    if (extent.empty()) return absl::OkStatus();
    const TimeGrid compared = {extent, kDefaultComparedPoints};
    const TimeGrid shown = {extent, plan_.max_points};
    const bool same = plan_.max_points == kDefaultComparedPoints;
    read->places.resize(same ? 0 : subjects_.size());
    size_t total = 0;
    for (size_t i = 0; i < subjects_.size(); ++i) {
      SubjectSource& subject = *subjects_[i];
      if (subject.facts().Find(name) == nullptr) continue;
      TACHO_ASSIGN_OR_RETURN(read->rows[i],
                             subject.PlacesByTime(name, compared, read->growth, &read->figures[i]));
      total += read->rows[i].size();
      if (!same) {
        read->places[i] = std::move(read->rows[i]);
        TACHO_ASSIGN_OR_RETURN(read->rows[i], subject.PlacesByTime(name, shown, false, nullptr));
        total += read->rows[i].size();
      }
      if (total > kMaxComparedPlaces) return TooManyPlaces(name);
    }
    SetPositions(shown, &read->rows);
    SetPositions(compared, &read->places);
    return absl::OkStatus();
  }

  static absl::Status TooManyPlaces(const std::string& metric) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the subjects have more than ", kMaxComparedPlaces, " steps of \"", metric,
                     "\" together: give a range of steps, or compare fewer subjects"));
  }

  // From indexes of buckets to their first places.
  static void SetPositions(const TimeGrid& time_grid, std::vector<ComparedPlaces>* places) {
    const BucketGrid grid = time_grid.buckets_of_it();
    for (ComparedPlaces& one : *places) {
      for (int64_t& position : one.positions) {
        const auto index = static_cast<uint32_t>(position);
        position = index == 0 ? time_grid.extent.first : grid.LastOf(index - 1) + 1;
      }
    }
  }

  absl::Status SendSubjects() {
    v1::CompareResponse response;
    v1::CompareSubjects* const message = response.mutable_subjects();
    std::set<std::string> names;
    for (const auto& subject : subjects_) {
      subject->Describe(message->add_subjects());
      for (const auto& attribute : subject->facts().attributes) names.insert(attribute.first);
    }
    for (const std::string& name : names) {
      v1::AttributeDifference difference;
      difference.set_name(name);
      for (const auto& subject : subjects_) {
        const auto& attributes = subject->facts().attributes;
        const auto found = attributes.find(name);
        difference.add_values(found == attributes.end() ? "" : found->second);
      }
      const auto& values = difference.values();
      if (std::all_of(values.begin(), values.end(), [&](auto& v) { return v == values[0]; })) {
        message->set_equal_attributes(message->equal_attributes() + 1);
      } else {
        *message->add_attributes() = std::move(difference);
      }
    }
    return send_(std::move(response));
  }

  absl::Status SendCounted(v1::CompareResponse response) {
    samples_ += static_cast<uint64_t>(response.metric().positions_size()) * subjects_.size();
    if (samples_ <= limits_.max_samples) return send_(std::move(response));
    return absl::ResourceExhaustedError(
        absl::StrCat("the comparison has more than query.max_samples = ", limits_.max_samples,
                     " values: name metrics, or set a smaller max_points"));
  }

  const ComparePlan plan_;
  const RangeLimits limits_;
  const QueryControl& control_;
  const Send<v1::CompareResponse> send_;
  std::vector<std::unique_ptr<SubjectSource>> subjects_;
  std::vector<std::string> metrics_;  // Those that are compared, ascending.
  uint64_t samples_ = 0;              // Sent.
};

}  // namespace

absl::Status Compare(const storage::Store& store, const v1::CompareRequest& request,
                     const RangeLimits& limits, const security::Rights& rights,
                     const QueryControl& control, const SubjectsElsewhere& elsewhere,
                     Send<v1::CompareResponse> send) {
  TACHO_ASSIGN_OR_RETURN(auto plan, MakeComparePlan(request));
  for (const v1::Subject& subject : request.subjects()) {
    TACHO_RETURN_IF_ERROR(rights.CheckJob(subject.job(), "subjects.job"));
  }
  Comparison comparison(std::move(plan), limits, control, send);
  TACHO_RETURN_IF_ERROR(comparison.FindSubjects(store, request, rights, elsewhere));
  return comparison.SendAll();
}

}  // namespace tacho::server::query
