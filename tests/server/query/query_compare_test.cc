// Comparisons against a reference that works on plain lists.
#include <gmock/gmock.h>

#include <optional>
#include <set>

#include "server/query/compare/compare_query.h"
#include "server/query/compare/remote_subject.h"
#include "server/query/compare/subject_answer.h"
#include "tests/server/query/query_store_fixture.h"

namespace tacho::server::query {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A value of one subject at a place.
struct NaivePlace {
  std::vector<double> entries;  // One a series.
  std::vector<double> samples;
};
using NaivePlaces = std::map<int64_t, NaivePlace>;

double MeanOf(const std::vector<double>& values) {
  long double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? kNan : static_cast<double>(sum / static_cast<long double>(values.size()));
}

std::vector<double> FiniteOf(const std::vector<double>& values) {
  std::vector<double> finite;
  for (const double value : values) {
    if (std::isfinite(value)) finite.push_back(value);
  }
  return finite;
}

// The average of a series in a bucket of time: NaN and infinities take part.
double EntryOfSamples(const std::vector<double>& samples) {
  bool nan = false, positive = false, negative = false;
  for (const double value : samples) {
    nan = nan || std::isnan(value);
    positive = positive || value == std::numeric_limits<double>::infinity();
    negative = negative || value == -std::numeric_limits<double>::infinity();
  }
  if (nan || (positive && negative)) return kNan;
  if (positive) return std::numeric_limits<double>::infinity();
  if (negative) return -std::numeric_limits<double>::infinity();
  return MeanOf(samples);
}

class QueryCompareTest : public QueryStoreFixture, public testing::WithParamInterface<uint32_t> {
 protected:
  QueryCompareTest() : QueryStoreFixture(GetParam()) {}

  v1::Subject* AddSubject(const std::string& job) {
    v1::Subject* const subject = request_.add_subjects();
    subject->set_job(job);
    return subject;
  }
  // Also with some jobs, and with all of them, as if other members of a cluster kept them: nothing
  // differs.
  absl::Status Run() {
    absl::Status status = RunWith(nullptr, &messages_);
    const std::string first =
        request_.subjects().empty() ? std::string() : request_.subjects(0).job();
    for (const int which : {0, 1, 2}) {
      SCOPED_TRACE(which);
      std::vector<v1::CompareResponse> others;
      const SubjectsElsewhere elsewhere = [&](absl::string_view job) {
        const bool here = which == 0 ? job == first : which == 1 && job != first;
        return here ? nullptr : Owner();
      };
      EXPECT_EQ(RunWith(elsewhere, &others), status);
      EXPECT_EQ(others.size(), messages_.size());
      for (size_t i = 0; i < std::min(others.size(), messages_.size()); ++i) {
        EXPECT_EQ(others[i].SerializeAsString(), messages_[i].SerializeAsString());
      }
    }
    return status;
  }
  absl::Status RunWith(const SubjectsElsewhere& elsewhere,
                       std::vector<v1::CompareResponse>* messages) {
    messages->clear();
    return Compare(*store_, request_, limits_, *rights_, control_, elsewhere,
                   [messages](const v1::CompareResponse& message) {
                     messages->push_back(message);
                     return absl::OkStatus();
                   });
  }
  // The member that keeps a job. Its messages go over the wire.
  SubjectCall Owner() {
    return [this](const v1::CompareSubjectRequest& request,
                  absl::FunctionRef<absl::Status(const v1::CompareSubjectResponse&)> take) {
      v1::CompareSubjectRequest received;
      EXPECT_TRUE(received.ParseFromString(request.SerializeAsString()));
      return AnswerSubject(*store_, received, limits_.max_series, control_,
                           [&](const v1::CompareSubjectResponse& piece) {
                             v1::CompareSubjectResponse sent;
                             EXPECT_TRUE(sent.ParseFromString(piece.SerializeAsString()));
                             return take(sent);
                           });
    };
  }

  bool TakesPart(const v1::Subject& subject, uint32_t attempt, int64_t step) const {
    if (subject.has_attempt()) return attempt == subject.attempt();
    if (subject.attempts() == v1::ATTEMPTS_ALL) return true;
    return !IsSuperseded(subject.job(), attempt, step);
  }
  bool IsInSteps(int64_t step) const {
    if (request_.alignment() == v1::ALIGNMENT_ELAPSED) return true;
    if (step == storage::kNoStep) return false;
    if (!request_.has_steps()) return true;
    return step >= request_.steps().begin() && step <= request_.steps().end();
  }
  std::optional<int64_t> OriginOf(const v1::Subject& subject) const {
    std::optional<int64_t> origin;
    for (const auto& [series, samples] : jobs_.at(subject.job())) {
      for (const auto& [key, value] : samples) {
        const auto [time, attempt, step] = key;
        if (!TakesPart(subject, attempt, step)) continue;
        origin = std::min(origin.value_or(time), time);
      }
    }
    return origin;
  }
  // By step, or by time since the origin with every sample a place of its own.
  NaivePlaces PlacesOf(const v1::Subject& subject, const std::string& metric, int64_t first,
                       int64_t width) const {
    NaivePlaces places;
    const auto origin = OriginOf(subject);
    for (const auto& [series, samples] : jobs_.at(subject.job())) {
      if (series.first != metric) continue;
      std::map<int64_t, std::pair<std::pair<uint32_t, int64_t>, double>> newest;
      std::map<int64_t, std::vector<double>> buckets;
      for (const auto& [key, value] : samples) {
        const auto [time, attempt, step] = key;
        if (!TakesPart(subject, attempt, step) || !IsInSteps(step)) continue;
        if (request_.alignment() == v1::ALIGNMENT_ELAPSED) {
          buckets[first + (time - *origin - first) / width * width].push_back(value);
          continue;
        }
        auto& best = newest[step];
        if (std::pair(attempt, time) >= best.first) best = {{attempt, time}, value};
      }
      for (const auto& [step, best] : newest) {
        places[step].entries.push_back(best.second);
        places[step].samples.push_back(best.second);
      }
      for (const auto& [position, values] : buckets) {
        NaivePlace& place = places[position];
        place.entries.push_back(EntryOfSamples(values));
        place.samples.insert(place.samples.end(), values.begin(), values.end());
      }
    }
    return places;
  }

  // What there is to compare with in a metric.
  void ExpectAsNaive(const v1::CompareMetric& metric) const {
    const std::string& name = metric.metric().name();
    const int64_t max_rows = request_.max_points() == 0 ? 200 : request_.max_points();
    int64_t first = 0, width = 1;
    if (request_.alignment() == v1::ALIGNMENT_ELAPSED) {
      std::set<int64_t> elapsed;
      for (const v1::Subject& subject : request_.subjects()) {
        for (const auto& place : PlacesOf(subject, name, 0, 1)) elapsed.insert(place.first);
      }
      first = *elapsed.begin();
      width = (*elapsed.rbegin() - first) / max_rows + 1;
    }
    std::vector<NaivePlaces> subjects;
    std::set<int64_t> positions;
    for (const v1::Subject& subject : request_.subjects()) {
      subjects.push_back(PlacesOf(subject, name, first, width));
      for (const auto& place : subjects.back()) positions.insert(place.first);
    }
    int64_t row_width = 1;
    if (static_cast<int64_t>(positions.size()) > max_rows) {
      row_width = (*positions.rbegin() - *positions.begin()) / max_rows + 1;
    }
    const int64_t begin = *positions.begin();
    std::set<int64_t> rows;
    for (const int64_t position : positions) {
      rows.insert(begin + (position - begin) / row_width * row_width);
    }
    ASSERT_THAT(metric.positions(), testing::ElementsAreArray(rows));
    std::vector<double> base;
    for (size_t i = 0; i < subjects.size(); ++i) {
      const v1::ComparedColumn& column = metric.columns(static_cast<int>(i));
      int row = 0;
      std::vector<double> averages;
      for (const int64_t at : rows) {
        std::vector<double> values, samples;
        for (const auto& [position, place] : subjects[i]) {
          if (begin + (position - begin) / row_width * row_width != at) continue;
          values.push_back(MeanOf(place.entries));
          samples.insert(samples.end(), place.samples.begin(), place.samples.end());
        }
        const std::vector<double> finite = FiniteOf(samples);
        const double avg = values.size() == 1 ? values[0] : MeanOf(FiniteOf(values));
        averages.push_back(samples.empty() ? kNan : avg);
        ExpectSame(averages.back(), column.avg(row));
        EXPECT_EQ(column.counts(row), samples.size());
        EXPECT_EQ(column.non_finite(row), samples.size() - finite.size());
        double min = finite.empty() ? kNan : *std::min_element(finite.begin(), finite.end());
        double max = finite.empty() ? kNan : *std::max_element(finite.begin(), finite.end());
        if (samples.size() == 1) min = max = samples[0];
        ExpectSame(min, column.min(row));
        ExpectSame(max, column.max(row));
        if (i > 0) {
          const bool both = !samples.empty() && metric.columns(0).counts(row) > 0;
          ExpectSame(both ? avg - base[static_cast<size_t>(row)] : kNan, column.difference(row));
        }
        ++row;
      }
      if (i == 0) base = averages;
    }
    ExpectSummaries(metric, first);
  }
  static void ExpectSame(double expected, double actual) {
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(actual)) << actual;
    } else {
      EXPECT_EQ(expected, actual);
    }
  }
  // Figures are of samples and of places that do not depend on the rows: steps, or 200 parts of the
  // time from `first` on.
  void ExpectSummaries(const v1::CompareMetric& metric, int64_t first) const {
    int64_t width = 1;
    if (request_.alignment() == v1::ALIGNMENT_ELAPSED) {
      int64_t last = first;
      for (const v1::Subject& subject : request_.subjects()) {
        const NaivePlaces all = PlacesOf(subject, metric.metric().name(), 0, 1);
        if (!all.empty()) last = std::max(last, all.rbegin()->first);
      }
      width = (last - first) / 200 + 1;
    }
    NaivePlaces base;
    for (int i = 0; i < request_.subjects_size(); ++i) {
      const NaivePlaces places =
          PlacesOf(request_.subjects(i), metric.metric().name(), first, width);
      if (i == 0) base = places;
      ExpectSummary(base, places, metric.columns(i).summary());
    }
  }
  static void ExpectSummary(const NaivePlaces& base, const NaivePlaces& places,
                            const v1::ComparedSummary& summary) {
    std::vector<double> samples;
    for (const auto& [position, place] : places) {
      samples.insert(samples.end(), place.samples.begin(), place.samples.end());
    }
    const std::vector<double> finite = FiniteOf(samples);
    EXPECT_EQ(summary.count(), samples.size());
    EXPECT_EQ(summary.non_finite(), samples.size() - finite.size());
    if (!finite.empty()) {
      EXPECT_EQ(summary.min(), *std::min_element(finite.begin(), finite.end()));
      EXPECT_EQ(summary.max(), *std::max_element(finite.begin(), finite.end()));
    }
    ExpectSame(MeanOf(finite), summary.avg());
    std::vector<double> differences, bases;
    for (const auto& [position, place] : places) {
      const auto found = base.find(position);
      if (found == base.end()) continue;
      const double before = MeanOf(found->second.entries);
      const double value = MeanOf(place.entries);
      if (!std::isfinite(before) || !std::isfinite(value)) continue;
      differences.push_back(value - before);
      bases.push_back(before);
    }
    EXPECT_EQ(summary.shared(), differences.size());
    ExpectSame(MeanOf(differences), summary.mean_difference());
    ExpectSame(MeanOf(differences) / std::abs(MeanOf(bases)), summary.relative_difference());
    double largest = differences.empty() ? kNan : 0;
    for (const double difference : differences) largest = std::max(largest, std::abs(difference));
    ExpectSame(largest, summary.max_difference());
  }
  void ExpectAllAsNaive(std::vector<std::string> metrics) {
    ASSERT_TRUE(Run().ok());
    ASSERT_EQ(messages_.size(), metrics.size() + 1);
    ASSERT_TRUE(messages_[0].has_subjects());
    for (size_t i = 0; i < metrics.size(); ++i) {
      SCOPED_TRACE(metrics[i]);
      ASSERT_EQ(messages_[i + 1].metric().metric().name(), metrics[i]);
      EXPECT_EQ(messages_[i + 1].metric().metric().unit(), "1");
      ExpectAsNaive(messages_[i + 1].metric());
    }
  }

  v1::CompareRequest request_;
  RangeLimits limits_;
  security::RightsPtr rights_ = security::Rights::Everything();
  QueryControl control_;
  std::vector<v1::CompareResponse> messages_;
};

TEST_P(QueryCompareTest, ByStepIsAsAReferenceHasIt) {
  MakeJob("a", {.metrics = {"loss", "lr", "only_a"}});
  MakeJob("b", {.tasks = 2, .attempts = 2, .step_stride = 3, .begin_ns = kTestBase + 77});
  MakeJob("c", {.tasks = 1, .attempts = 1, .rows = 40, .metrics = {"loss"}});
  AddSubject("a");
  AddSubject("b");
  ExpectAllAsNaive({"loss", "lr"});
  request_.set_max_points(10'000);
  ExpectAllAsNaive({"loss", "lr"});
  AddSubject("c");
  AddSubject("a")->set_attempt(1);
  AddSubject("a")->set_attempts(v1::ATTEMPTS_ALL);
  ExpectAllAsNaive({"loss", "lr", "only_a"});
  request_.mutable_steps()->set_begin(13);
  request_.mutable_steps()->set_end(170);
  request_.set_max_points(17);
  ExpectAllAsNaive({"loss", "lr", "only_a"});
}

TEST_P(QueryCompareTest, ByElapsedTimeIsAsAReferenceHasIt) {
  MakeJob("a", {.metrics = {"loss", "lr"}});
  MakeJob("b", {.tasks = 2, .attempts = 2, .begin_ns = kTestBase + 123'456 * kTestSecond});
  request_.set_alignment(v1::ALIGNMENT_ELAPSED);
  AddSubject("a");
  AddSubject("b");
  ExpectAllAsNaive({"loss", "lr"});
  ASSERT_TRUE(store_->Seal().ok());
  ExpectAllAsNaive({"loss", "lr"});
  request_.set_max_points(3);
  ExpectAllAsNaive({"loss", "lr"});
  request_.add_metrics("lr");
  AddSubject("a")->set_attempt(2);
  request_.set_max_points(1000);
  request_.mutable_subjects(0)->set_attempts(v1::ATTEMPTS_ALL);
  // With one metric the beginning is that of this metric, which the reference does not know.
  ASSERT_TRUE(Run().ok());
  ASSERT_EQ(messages_.size(), 2u);
  EXPECT_EQ(messages_[1].metric().positions(0), 0);
}

INSTANTIATE_TEST_SUITE_P(Seeds, QueryCompareTest, testing::Range(1u, 6u));

class CompareOnceTest : public QueryCompareTest {
 protected:
  void SetAttributes(const std::string& job, uint32_t attempt,
                     std::map<std::string, std::string> values) {
    absl::Notification done;
    store_->AppendAttributes({}, {job, attempt, std::move(values)},
                             [&](const absl::Status&) { done.Notify(); });
    done.WaitForNotification();
  }
};

TEST_P(CompareOnceTest, TellsWhatTookPartAndWhichAttributesDiffer) {
  MakeJob("a", {.tasks = 1, .attempts = 2, .non_finite_one_in = 0});
  MakeJob("b", {.tasks = 1, .attempts = 1, .non_finite_one_in = 0});
  SetAttributes("a", 0, {{"lr", "old"}});
  SetAttributes("a", 1, {{"lr", "0.1"}, {"model", "m"}, {"only", "x"}});
  SetAttributes("b", 0, {{"lr", "0.2"}, {"model", "m"}});
  AddSubject("a");
  AddSubject("b");
  AddSubject("a")->set_attempt(0);
  ASSERT_TRUE(Run().ok());
  const v1::CompareSubjects& subjects = messages_[0].subjects();
  ASSERT_EQ(subjects.subjects_size(), 3);
  EXPECT_THAT(subjects.subjects(0).attempts(), ElementsAre(0, 1));
  EXPECT_THAT(subjects.subjects(2).attempts(), ElementsAre(0));
  EXPECT_EQ(subjects.subjects(1).job(), "b");
  EXPECT_LE(subjects.subjects(1).first_step(), 5);
  EXPECT_GE(subjects.subjects(1).last_step(), 190);
  EXPECT_GE(subjects.subjects(1).first_unix_ns(), kTestBase);
  ASSERT_EQ(subjects.attributes_size(), 3);
  EXPECT_EQ(subjects.attributes(0).name(), "lr");
  EXPECT_THAT(subjects.attributes(0).values(), ElementsAre("0.1", "0.2", "old"));
  EXPECT_EQ(subjects.attributes(1).name(), "model");
  EXPECT_THAT(subjects.attributes(2).values(), ElementsAre("x", "", ""));
  request_.mutable_subjects()->RemoveLast();
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(messages_[0].subjects().equal_attributes(), 1u);
}

TEST_P(CompareOnceTest, AnswersAMetricThatWasNamedAndNobodyHas) {
  MakeJob("a", {});
  AddSubject("a");
  request_.add_metrics("none");
  ASSERT_TRUE(Run().ok());
  ASSERT_EQ(messages_.size(), 2u);
  EXPECT_EQ(messages_[1].metric().metric().name(), "none");
  EXPECT_EQ(messages_[1].metric().columns_size(), 1);
  EXPECT_EQ(messages_[1].metric().positions_size(), 0);
  request_.set_alignment(v1::ALIGNMENT_ELAPSED);
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(messages_[1].metric().positions_size(), 0);
}

TEST_P(CompareOnceTest, LeavesOutTheValuesThatAreNotAskedFor) {
  MakeJob("a", {.metrics = {"loss"}});
  MakeJob("b", {.tasks = 2, .attempts = 2, .metrics = {"loss"}});
  AddSubject("a");
  AddSubject("b");
  ASSERT_TRUE(Run().ok());
  const v1::CompareMetric everything = messages_.at(1).metric();
  ASSERT_EQ(everything.columns_size(), 2);
  ASSERT_GT(everything.columns(1).difference_size(), 0);
  // Every set of values; bit v stands for value v.
  for (int asked = 2; asked < 1 << v1::ComparedValue_ARRAYSIZE; asked += 2) {
    SCOPED_TRACE(asked);
    const auto has = [asked](v1::ComparedValue value) { return (asked >> value & 1) != 0; };
    v1::CompareMetric expected = everything;
    for (v1::ComparedColumn& column : *expected.mutable_columns()) {
      if (!has(v1::COMPARED_VALUE_AVG)) column.clear_avg();
      if (!has(v1::COMPARED_VALUE_MIN)) column.clear_min();
      if (!has(v1::COMPARED_VALUE_MAX)) column.clear_max();
      if (!has(v1::COMPARED_VALUE_DIFFERENCE)) column.clear_difference();
    }
    request_.clear_compared_values();
    for (const auto value : {v1::COMPARED_VALUE_DIFFERENCE, v1::COMPARED_VALUE_MAX,
                             v1::COMPARED_VALUE_MIN, v1::COMPARED_VALUE_AVG}) {
      if (has(value)) request_.add_compared_values(value);
    }
    ASSERT_TRUE(Run().ok());
    ASSERT_EQ(messages_.size(), 2u);
    // Serialized, because NaN is not equal to itself.
    EXPECT_EQ(messages_[1].metric().SerializeAsString(), expected.SerializeAsString());
  }
}

TEST_P(CompareOnceTest, TellsWhatIsWrong) {
  MakeJob("train-a", {});
  MakeJob("secret", {});
  EXPECT_THAT(Run().message(), HasSubstr("subjects"));
  AddSubject("train-b");
  EXPECT_TRUE(absl::IsNotFound(Run()));
  EXPECT_THAT(Run().message(), HasSubstr("\"train-a\""));
  request_.mutable_subjects(0)->set_job("train-a");
  request_.mutable_subjects(0)->set_attempt(7);
  EXPECT_THAT(Run().message(), HasSubstr("has no attempt 7; it has 0, 1, 2"));
  request_.mutable_subjects(0)->clear_attempt();
  request_.mutable_aggregation()->add_by("task");
  EXPECT_THAT(Run().message(), HasSubstr("aggregation.by"));
  request_.clear_aggregation();
  request_.set_alignment(v1::ALIGNMENT_ELAPSED);
  request_.mutable_steps()->set_begin(1);
  EXPECT_THAT(Run().message(), HasSubstr("ALIGNMENT_STEP only"));
  request_.clear_steps();
  request_.set_max_points(10'001);
  EXPECT_THAT(Run().message(), HasSubstr("max_points"));
  request_.clear_max_points();
  v1::Matcher* matcher = request_.add_matchers();
  matcher->set_label("attempt");
  EXPECT_THAT(Run().message(), HasSubstr("subjects.attempt"));
  request_.clear_matchers();
  request_.add_compared_values(v1::COMPARED_VALUE_UNSPECIFIED);
  EXPECT_THAT(Run().message(), HasSubstr("compared_values: has a value that is not known"));
  request_.clear_compared_values();
  limits_.max_series = 7;
  AddSubject("secret");
  EXPECT_TRUE(absl::IsResourceExhausted(Run()));
  limits_ = {.max_samples = 3};
  EXPECT_THAT(Run().message(), HasSubstr("max_samples = 3"));
}

TEST_P(CompareOnceTest, ChecksEveryJobAndTellsNoOtherNames) {
  MakeJob("train-a", {});
  MakeJob("secret", {});
  security::Rights::Options options;
  options.name = "reader";
  options.read = true;
  options.jobs = std::make_shared<const RE2>("train-.*");
  rights_ = std::make_shared<const security::Rights>(options);
  AddSubject("train-a");
  EXPECT_TRUE(Run().ok());
  AddSubject("secret");
  const absl::Status exists = Run();
  EXPECT_TRUE(absl::IsPermissionDenied(exists));
  request_.mutable_subjects(1)->set_job("secret-2");
  EXPECT_TRUE(absl::IsPermissionDenied(Run()));
  request_.mutable_subjects(1)->set_job("train-b");
  EXPECT_TRUE(absl::IsNotFound(Run()));
  EXPECT_THAT(Run().message(), Not(HasSubstr("train-a")));
}

INSTANTIATE_TEST_SUITE_P(Seeds, CompareOnceTest, testing::Values(1u));

}  // namespace
}  // namespace tacho::server::query
