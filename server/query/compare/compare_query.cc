// Compares one metric after the other, so that memory holds only one. The first message describes
// the subjects, which is known only after the last metric; so the first metrics wait in memory.
#include "server/query/compare/compare_query.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/query/compare/compare_plan.h"
#include "server/query/compare/compared_metric.h"
#include "server/query/compare/compared_subject.h"

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

  absl::Status FindSubjects(const storage::Store& store, const security::Rights& rights) {
    uint64_t left = limits_.max_series;
    for (size_t i = 0; i < plan_.subjects.size(); ++i) {
      auto subject = ComparedSubject::Create(store, plan_, i, left, control_);
      if (!subject.ok()) {
        return WithoutOtherNames(subject.status(), rights,
                                 plan_.subjects[i].selection.selector.job);
      }
      left -= subject->series();
      subjects_.push_back(*std::move(subject));
    }
    ChooseMetrics();
    if (plan_.by_step) return absl::OkStatus();
    for (ComparedSubject& subject : subjects_) {
      TACHO_RETURN_IF_ERROR(subject.FindOrigin(metrics_));
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
  void ChooseMetrics() {
    if (!plan_.metrics.empty()) {
      metrics_ = plan_.metrics;
      std::sort(metrics_.begin(), metrics_.end());
      metrics_.erase(std::unique(metrics_.begin(), metrics_.end()), metrics_.end());
      return;
    }
    std::map<std::string, size_t> subjects;
    for (const ComparedSubject& subject : subjects_) {
      for (const auto& entry : subject.metrics()) ++subjects[entry.first];
    }
    const size_t needed = std::min<size_t>(2, subjects_.size());
    for (const auto& [metric, having] : subjects) {
      if (having >= needed) metrics_.push_back(metric);
    }
  }

  // The samples of one metric, of all subjects.
  struct Read {
    explicit Read(size_t subjects) : series(subjects), rows(subjects), figures(subjects) {}

    std::vector<const ComparedSubject::SeriesList*> series;
    std::vector<ComparedPlaces> rows;    // From which rows are made.
    std::vector<ComparedPlaces> places;  // At which they are compared; empty: those of `rows`.
    std::vector<ComparedFigures> figures;
  };

  absl::Status Fill(const std::string& name, v1::CompareMetric* metric) {
    metric->mutable_metric()->set_name(name);
    Read read(subjects_.size());
    for (size_t i = 0; i < subjects_.size(); ++i) {
      read.series[i] = subjects_[i].Find(name);
      if (read.series[i] == nullptr) continue;
      if (metric->metric().type() == v1::METRIC_TYPE_UNSPECIFIED) {
        ToProto(*read.series[i]->front()->metric, metric->mutable_metric());
      }
    }
    absl::Status status = plan_.by_step ? ReadBySteps(name, &read) : ReadByTime(name, &read);
    if (status.ok()) status = ReadGrowth(metric->metric().type(), &read);
    if (!status.ok()) return status;
    FillComparison(read.rows, plan_.max_points, plan_.values, metric);
    FillSummaries(read.places.empty() ? read.rows : read.places, read.figures,
                  plan_.fold.function == v1::AGGREGATE_FUNCTION_AVG, metric);
    return absl::OkStatus();
  }

  absl::Status ReadBySteps(const std::string& name, Read* read) {
    size_t total = 0;
    for (size_t i = 0; i < subjects_.size(); ++i) {
      if (read->series[i] == nullptr) continue;
      TACHO_ASSIGN_OR_RETURN(read->rows[i],
                             subjects_[i].PlacesByStep(*read->series[i], &read->figures[i]));
      total += read->rows[i].size();
      if (total > kMaxComparedPlaces) return TooManyPlaces(name);
    }
    return absl::OkStatus();
  }

  // Rows are as many as are asked for, but what the figures are taken from is always the same.
  absl::Status ReadByTime(const std::string& name, Read* read) {
    AxisExtent extent;
    for (size_t i = 0; i < subjects_.size(); ++i) {
      if (read->series[i] == nullptr) continue;
      TACHO_RETURN_IF_ERROR(subjects_[i].IncludeExtent(*read->series[i], &extent));
    }
    if (extent.empty()) return absl::OkStatus();
    const BucketGrid compared(extent, kDefaultComparedPoints);
    const BucketGrid shown(extent, plan_.max_points);
    const bool same = plan_.max_points == kDefaultComparedPoints;
    read->places.resize(same ? 0 : subjects_.size());
    size_t total = 0;
    for (size_t i = 0; i < subjects_.size(); ++i) {
      if (read->series[i] == nullptr) continue;
      ComparedSubject& subject = subjects_[i];
      const auto& series = *read->series[i];
      TACHO_ASSIGN_OR_RETURN(read->rows[i],
                             subject.PlacesByTime(series, compared, &read->figures[i]));
      total += read->rows[i].size();
      if (!same) {
        read->places[i] = std::move(read->rows[i]);
        TACHO_ASSIGN_OR_RETURN(read->rows[i], subject.PlacesByTime(series, shown, nullptr));
        total += read->rows[i].size();
      }
      if (total > kMaxComparedPlaces) return TooManyPlaces(name);
    }
    SetPositions(shown, extent, &read->rows);
    SetPositions(compared, extent, &read->places);
    return absl::OkStatus();
  }

  // Averages of counters say nothing: how fast they grow does.
  absl::Status ReadGrowth(v1::MetricType type, Read* read) {
    if (type != v1::METRIC_TYPE_COUNTER && type != v1::METRIC_TYPE_HISTOGRAM) {
      return absl::OkStatus();
    }
    for (size_t i = 0; i < subjects_.size(); ++i) {
      if (read->series[i] == nullptr) continue;
      TACHO_RETURN_IF_ERROR(subjects_[i].AddGrowth(*read->series[i], &read->figures[i]));
    }
    return absl::OkStatus();
  }

  static absl::Status TooManyPlaces(const std::string& metric) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the subjects have more than ", kMaxComparedPlaces, " steps of \"", metric,
                     "\" together: give a range of steps, or compare fewer subjects"));
  }

  // From indexes of buckets to their first places.
  static void SetPositions(const BucketGrid& grid, const AxisExtent& extent,
                           std::vector<ComparedPlaces>* places) {
    for (ComparedPlaces& one : *places) {
      for (int64_t& position : one.positions) {
        const auto index = static_cast<uint32_t>(position);
        position = index == 0 ? extent.first : grid.LastOf(index - 1) + 1;
      }
    }
  }

  absl::Status SendSubjects() {
    v1::CompareResponse response;
    v1::CompareSubjects* const message = response.mutable_subjects();
    std::set<std::string> names;
    for (const ComparedSubject& subject : subjects_) {
      subject.Describe(message->add_subjects());
      for (const auto& attribute : subject.attributes()) names.insert(attribute.first);
    }
    for (const std::string& name : names) {
      v1::AttributeDifference difference;
      difference.set_name(name);
      for (const ComparedSubject& subject : subjects_) {
        const auto found = subject.attributes().find(name);
        difference.add_values(found == subject.attributes().end() ? "" : found->second);
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
  std::vector<ComparedSubject> subjects_;
  std::vector<std::string> metrics_;  // Those that are compared, ascending.
  uint64_t samples_ = 0;              // Sent.
};

}  // namespace

absl::Status Compare(const storage::Store& store, const v1::CompareRequest& request,
                     const RangeLimits& limits, const security::Rights& rights,
                     const QueryControl& control, Send<v1::CompareResponse> send) {
  TACHO_ASSIGN_OR_RETURN(auto plan, MakeComparePlan(request));
  for (const v1::Subject& subject : request.subjects()) {
    TACHO_RETURN_IF_ERROR(rights.CheckJob(subject.job(), "subjects.job"));
  }
  Comparison comparison(std::move(plan), limits, control, send);
  absl::Status status = comparison.FindSubjects(store, rights);
  return status.ok() ? comparison.SendAll() : status;
}

}  // namespace tacho::server::query
