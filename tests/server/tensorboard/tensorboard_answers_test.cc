// The answers that TensorBoard gets from the real store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/tensorboard/scalars.h"
#include "server/tensorboard/tags.h"
#include "server/tensorboard/tensorboard_service.h"
#include "server/tensorboard/texts.h"
#include "storage/store.h"

namespace tacho::server::tb {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::UnorderedElementsAre;

namespace data = ::tensorboard::data;

constexpr int64_t kBase = 1'700'000'000'000'000'000;
constexpr int64_t kSecond = 1'000'000'000;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Row {
  int64_t time_ns;
  int64_t step;  // kNoStep: none.
  double value;
};

// {tag: {step: value}}, NaN as 999.
using Read = std::map<std::string, std::map<int64_t, double>>;

class TensorBoardTest : public testing::Test {
 protected:
  TensorBoardTest() : env_(rocksdb::NewMemEnv(rocksdb::Env::Default())) {
    storage::StoreOptions options;
    options.path = "/store";
    options.env = env_.get();
    options.background = false;
    options.retention = absl::ZeroDuration();
    options.now = [] { return absl::FromUnixNanos(kBase); };
    auto store = storage::Store::Open(options);
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  ~TensorBoardTest() override { EXPECT_TRUE(store_->Close().ok()); }

  void Append(const storage::Source& source, const std::string& metric,
              const std::vector<Row>& rows, storage::Labels labels = {}) {
    storage::LayoutDefinition layout;
    layout.source = source;
    layout.has_steps = rows.front().step != storage::kNoStep;
    layout.series.push_back(
        {{metric, storage::MetricType::kGauge, "nats", "Help."}, std::move(labels)});
    auto registered = store_->RegisterLayout(layout);
    ASSERT_TRUE(registered.ok()) << registered.status();
    std::vector<int64_t> times, steps;
    std::vector<double> values;
    for (const Row& row : rows) {
      times.push_back(row.time_ns);
      if (layout.has_steps) steps.push_back(row.step);
      values.push_back(row.value);
    }
    absl::Notification durable;
    store_->AppendRows({}, registered->layout, {times, steps, values}, Noting(&durable));
    durable.WaitForNotification();
  }
  void Append(const storage::Event& event) {
    absl::Notification durable;
    store_->AppendEvent({}, event, Noting(&durable));
    durable.WaitForNotification();
  }
  void Append(const storage::Attributes& attributes) {
    absl::Notification durable;
    store_->AppendAttributes({}, attributes, Noting(&durable));
    durable.WaitForNotification();
  }
  static storage::AppendDone Noting(absl::Notification* durable) {
    return [durable](const absl::Status& status) {
      EXPECT_TRUE(status.ok()) << status;
      durable->Notify();
    };
  }

  World Now() const {
    return {*store_, *rights_, control_, absl::FromUnixNanos(kBase), max_series_};
  }
  absl::StatusOr<data::ListScalarsResponse> List(const data::RunTagFilter& filter = {},
                                                 const std::string& id = "") {
    data::ListScalarsRequest request;
    request.set_experiment_id(id);
    request.mutable_plugin_filter()->set_plugin_name("scalars");
    *request.mutable_run_tag_filter() = filter;
    data::ListScalarsResponse response;
    absl::Status status = ListScalars(Now(), request, &response);
    if (!status.ok()) return status;
    return response;
  }
  // Tags of one run as ListScalars has them.
  std::vector<std::string> TagsOf(const std::string& run) {
    data::RunTagFilter filter;
    filter.mutable_runs()->add_names(run);
    std::vector<std::string> tags;
    const auto listed = List(filter);
    EXPECT_TRUE(listed.ok()) << listed.status();
    for (const auto& entry : listed->runs()) {
      for (const auto& tag : entry.tags()) tags.push_back(tag.tag_name());
    }
    return tags;
  }
  absl::StatusOr<data::ReadScalarsResponse> ReadAll(const data::RunTagFilter& filter,
                                                    int64_t points) {
    data::ReadScalarsRequest request;
    request.mutable_plugin_filter()->set_plugin_name("scalars");
    *request.mutable_run_tag_filter() = filter;
    request.mutable_downsample()->set_num_points(points);
    data::ReadScalarsResponse response;
    absl::Status status = ReadScalars(Now(), request, &response);
    if (!status.ok()) return status;
    return response;
  }
  Read ReadRun(const std::string& run, int64_t points = 1000) {
    data::RunTagFilter filter;
    filter.mutable_runs()->add_names(run);
    const auto response = ReadAll(filter, points);
    EXPECT_TRUE(response.ok()) << response.status();
    Read read;
    for (const auto& entry : response->runs()) {
      EXPECT_EQ(entry.run_name(), run);
      for (const auto& tag : entry.tags()) {
        auto& values = read[tag.tag_name()];
        for (int i = 0; i < tag.data().step_size(); ++i) {
          const float value = tag.data().value(i);
          values[tag.data().step(i)] = std::isnan(value) ? 999 : value;
        }
      }
    }
    return read;
  }
  std::vector<std::string> RunsOf(const std::string& id) {
    const auto experiment = FindExperiment(*store_, id, *rights_, Now().now);
    if (!experiment.ok()) return {experiment.status().ToString()};
    std::vector<std::string> names;
    for (const tb::Run& run : FindRuns(*store_, *experiment, NameFilter()))
      names.push_back(run.name);
    return names;
  }
  void MayReadOnly(const std::string& jobs) {
    security::Rights::Options options;
    options.name = "someone";
    options.read = true;
    options.jobs = std::make_shared<RE2>(jobs);
    rights_ = std::make_shared<security::Rights>(options);
  }

  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<storage::Store> store_;
  security::RightsPtr rights_ = security::Rights::Everything();
  query::QueryControl control_;
  uint64_t max_series_ = 1000;
};

std::vector<Row> Rows(int64_t first, int64_t end, double offset, int64_t later_ns = 0) {
  std::vector<Row> rows;
  for (int64_t step = first; step < end; ++step) {
    rows.push_back({kBase + step * kSecond + later_ns, step, static_cast<double>(step) + offset});
  }
  return rows;
}

TEST_F(TensorBoardTest, TheOnlySeriesOfAMetricIsReturnedAsItIs) {
  Append({"j", 0, 0, "h"}, "loss", {{kBase, 5, 0.1}, {kBase + 1, 6, kNan}, {kBase + 2, 8, -2e300}});
  EXPECT_THAT(TagsOf("j/0"), ElementsAre("loss"));
  const float largest = std::numeric_limits<float>::max();
  EXPECT_EQ(ReadRun("j/0"), (Read{{"loss", {{5, 0.1F}, {6, 999}, {8, -largest}}}}));
  EXPECT_EQ(ReadRun("j/0", 1), (Read{{"loss", {{8, -largest}}}}));
  EXPECT_EQ(ReadRun("j/0", 0), (Read{{"loss", {}}}));
}

TEST_F(TensorBoardTest, SeveralTasksAreAMeanAndATagEach) {
  Append({"j", 0, 0, "a"}, "loss", Rows(0, 3, 0));
  Append({"j", 1, 0, "b"}, "loss", {{kBase, 1, 4}, {kBase + 1, 2, kNan}, {kBase + 2, 3, 8}});
  EXPECT_EQ(ReadRun("j/0"), (Read{{"loss", {{0, 0}, {1, 2.5}, {2, 999}, {3, 8}}},
                                  {"loss/task0", {{0, 0}, {1, 1}, {2, 2}}},
                                  {"loss/task1", {{1, 4}, {2, 999}, {3, 8}}}}));
}

TEST_F(TensorBoardTest, ManyTasksAreTheirMeanAlone) {
  for (uint32_t task = 0; task < kMaxTagsBesideMean; ++task) {
    Append({"j", task, 0, "h"}, "loss", Rows(0, 1, 0));
  }
  EXPECT_THAT(TagsOf("j/0"), SizeIs(kMaxTagsBesideMean + 1));
  Append({"j", kMaxTagsBesideMean, 0, "h"}, "loss", Rows(0, 1, 65));
  EXPECT_EQ(ReadRun("j/0"), (Read{{"loss", {{0, 1}}}}));
}

TEST_F(TensorBoardTest, LabelsAreKeptApart) {
  Append({"j", 0, 0, "h"}, "loss", Rows(0, 1, 1), {{"split", "eval"}});
  Append({"j", 0, 0, "h"}, "loss", Rows(0, 1, 2), {{"split", "train"}});
  EXPECT_EQ(ReadRun("j/0"),
            (Read{{"loss{split=eval}", {{0, 1}}}, {"loss{split=train}", {{0, 2}}}}));
}

TEST_F(TensorBoardTest, AMetricKeepsItsNameFromTheTagOfATask) {
  Append({"j", 0, 0, "h"}, "loss", Rows(0, 1, 1));
  Append({"j", 1, 0, "h"}, "loss", Rows(0, 1, 3));
  Append({"j", 0, 0, "h"}, "loss/task1", Rows(0, 1, 7));
  EXPECT_EQ(ReadRun("j/0"),
            (Read{{"loss", {{0, 2}}}, {"loss/task0", {{0, 1}}}, {"loss/task1", {{0, 7}}}}));
}

TEST_F(TensorBoardTest, AnAttemptIsARunOfItsOwn) {
  Append({"j", 0, 0, "h"}, "loss", Rows(0, 5, 0));
  Append({"j", 0, 0, "h"}, "early", Rows(0, 1, 0));
  Append({"j", 0, 1, "h"}, "loss", Rows(3, 6, 100, 3600 * kSecond));
  EXPECT_THAT(RunsOf("j"), ElementsAre("j/0", "j/1"));
  EXPECT_THAT(TagsOf("j/0"), UnorderedElementsAre("loss", "early"));
  EXPECT_THAT(TagsOf("j/1"), ElementsAre("loss"));
  EXPECT_EQ(ReadRun("j/0")["loss"],
            (std::map<int64_t, double>{{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}}));
  EXPECT_EQ(ReadRun("j/1")["loss"], (std::map<int64_t, double>{{3, 103}, {4, 104}, {5, 105}}));
  const auto listed = *List();
  ASSERT_EQ(listed.runs_size(), 2);
  EXPECT_EQ(listed.runs(0).tags(1).metadata().max_step(), 4);
  EXPECT_EQ(listed.runs(0).tags(1).metadata().max_wall_time(), kBase / 1e9 + 4);
  EXPECT_EQ(listed.runs(1).tags(0).metadata().max_step(), 5);
}

TEST_F(TensorBoardTest, WithoutStepsSecondsSinceTheRunBeganCount) {
  constexpr int64_t kNone = storage::kNoStep;
  Append(
      {"hosts", std::nullopt, 0, "a"}, "load",
      {{kBase, kNone, 1}, {kBase + 10 * kSecond + 5, kNone, 3}, {kBase + 70 * kSecond, kNone, 5}});
  EXPECT_EQ(ReadRun("hosts/0"), (Read{{"load", {{0, 1}, {10, 3}, {70, 5}}}}));
  Append({"hosts", std::nullopt, 0, "b"}, "load",
         {{kBase + 5 * kSecond, kNone, 4}, {kBase + 61 * kSecond, kNone, kNan}});
  EXPECT_EQ(ReadRun("hosts/0"), (Read{{"load", {{0, 3}, {60, 999}}},
                                      {"load/a", {{0, 1}, {10, 3}, {70, 5}}},
                                      {"load/b", {{5, 4}, {61, 999}}}}));
  EXPECT_EQ(List()->runs(0).tags(0).metadata().max_step(), 70);
}

TEST_F(TensorBoardTest, RowsWithoutAStepHaveThatOfTheRowBefore) {
  constexpr int64_t kNone = storage::kNoStep;
  Append({"j", 0, 0, "h"}, "loss", {{kBase, 7, 1}, {kBase + 1, kNone, kNan}, {kBase + 2, 8, 2}});
  const data::RunTagFilter filter;
  const auto response = *ReadAll(filter, 10);
  const auto& points = response.runs(0).tags(0).data();
  EXPECT_THAT(points.step(), ElementsAre(7, 7, 8));
  EXPECT_TRUE(std::isnan(points.value(1)));
}

TEST_F(TensorBoardTest, AFilterThatIsThereAndEmptyLetsNothingThrough) {
  Append({"j", 0, 0, "h"}, "loss", Rows(0, 1, 0));
  Append({"j", 0, 0, "h"}, "acc", Rows(0, 1, 0));
  Append({"k", 0, 0, "h"}, "loss", Rows(0, 1, 0));
  EXPECT_EQ(List()->runs_size(), 2);
  data::RunTagFilter filter;
  filter.mutable_runs();
  EXPECT_EQ(List(filter)->runs_size(), 0);
  EXPECT_EQ(ReadAll(filter, 1)->runs_size(), 0);
  filter.clear_runs();
  filter.mutable_tags();
  EXPECT_EQ(List(filter)->runs_size(), 0);
  filter.mutable_tags()->add_names("acc");
  const auto listed = *List(filter);
  ASSERT_EQ(listed.runs_size(), 1) << "a run without the tag is left out";
  EXPECT_EQ(listed.runs(0).run_name(), "j/0");
  EXPECT_EQ(listed.runs(0).tags_size(), 1);
  filter.mutable_runs()->add_names("k/0");
  filter.mutable_runs()->add_names("nobody/7");
  EXPECT_EQ(List(filter)->runs_size(), 0);
}

TEST_F(TensorBoardTest, AnExperimentIsAJobOrAPatternOfNames) {
  for (const char* job : {"resnet", "resnet-2", "a/b", "gpt"}) {
    Append({job, 0, 0, "h"}, "loss", Rows(0, 1, 0));
  }
  EXPECT_THAT(RunsOf(""), UnorderedElementsAre("resnet/0", "resnet-2/0", "a/b/0", "gpt/0"));
  EXPECT_THAT(RunsOf("resnet"), ElementsAre("resnet/0"));
  EXPECT_THAT(RunsOf("resnet.*"), UnorderedElementsAre("resnet/0", "resnet-2/0"));
  EXPECT_THAT(RunsOf("a.b"), ElementsAre("a/b/0"));
  EXPECT_EQ(ReadRun("a/b/0"), (Read{{"loss", {{0, 0}}}}));
  EXPECT_THAT(RunsOf("resne"), ElementsAre(testing::AllOf(HasSubstr("NOT_FOUND"),
                                                          HasSubstr("did you mean \"resnet\""))));
  EXPECT_THAT(RunsOf("("), ElementsAre(HasSubstr("INVALID_ARGUMENT: experiment_id: is neither")));
  EXPECT_THAT(List({}, "nothing").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(TensorBoardTest, OthersJobsAreNotSeen) {
  Append({"mine", 0, 0, "h"}, "loss", Rows(0, 1, 0));
  Append({"theirs", 0, 0, "h"}, "loss", Rows(0, 1, 0));
  MayReadOnly("mine.*");
  EXPECT_THAT(RunsOf(""), ElementsAre("mine/0"));
  EXPECT_THAT(RunsOf(".*"), ElementsAre("mine/0"));
  EXPECT_THAT(RunsOf("theirs"), ElementsAre(HasSubstr("PERMISSION_DENIED")));
  EXPECT_THAT(RunsOf("absent"), ElementsAre(HasSubstr("PERMISSION_DENIED")));
  EXPECT_THAT(RunsOf("mine-2"), ElementsAre(testing::AllOf(HasSubstr("NOT_FOUND"),
                                                           testing::Not(HasSubstr("did you")))));
  EXPECT_EQ(ReadRun("theirs/0"), Read());
}

TEST_F(TensorBoardTest, TooManyRunsAreLeftOutAndReachedByTheirNames) {
  Append({"old", 0, 0, "h"}, "loss", Rows(0, 1, 0, -3600 * kSecond));
  for (uint32_t attempt = 0; attempt < kMaxRuns; ++attempt) {
    Append({"new", 0, attempt, "h"}, "loss", Rows(0, 1, 0, attempt));
  }
  EXPECT_THAT(RunsOf(""), SizeIs(kMaxRuns));
  EXPECT_THAT(RunsOf("old"), ElementsAre("old/0"));
  EXPECT_EQ(ReadRun("old/0"), (Read{{"loss", {{0, 0}}}}));
  data::GetExperimentResponse described;
  Describe(*FindExperiment(*store_, "", *rights_, Now().now), "", &described);
  EXPECT_THAT(described.description(), HasSubstr("1 more job"));
}

TEST_F(TensorBoardTest, ARunWithTooManySeriesIsRefusedWithWhatHelps) {
  Append({"j", 0, 0, "h"}, "loss", Rows(0, 1, 0));
  Append({"j", 0, 0, "h"}, "acc", Rows(0, 1, 0));
  max_series_ = 1;
  const absl::Status status = List().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("query.max_series = 1"));
  EXPECT_EQ(ForTensorBoard(status).code(), absl::StatusCode::kInvalidArgument);
  data::RunTagFilter filter;
  filter.mutable_tags()->add_names("acc");
  EXPECT_TRUE(List(filter).ok());
}

TEST_F(TensorBoardTest, RequestsAreChecked) {
  Append({"j", 0, 0, "h"}, "loss", Rows(0, 1, 0));
  data::ReadScalarsRequest request;
  data::ReadScalarsResponse response;
  request.mutable_plugin_filter()->set_plugin_name("scalars");
  EXPECT_THAT(ReadScalars(Now(), request, &response).ToString(),
              HasSubstr("INVALID_ARGUMENT: downsample: is required"));
  request.mutable_downsample()->set_num_points(-1);
  EXPECT_THAT(ReadScalars(Now(), request, &response).ToString(), HasSubstr("negative"));
  request.mutable_downsample()->set_num_points(1);
  request.clear_plugin_filter();
  EXPECT_THAT(ReadScalars(Now(), request, &response).ToString(),
              HasSubstr("INVALID_ARGUMENT: plugin_filter.plugin_name: is required"));
  request.mutable_plugin_filter()->set_plugin_name("images");
  EXPECT_TRUE(ReadScalars(Now(), request, &response).ok());
  EXPECT_EQ(response.runs_size(), 0);
}

TEST_F(TensorBoardTest, EventsAndAttributesAreTexts) {
  Append({"j", 0, 0, "h"}, "loss", Rows(0, 5, 0));
  Append(storage::Attributes{"j", 0, {{"model", "a|b"}}});
  Append(storage::Event{{"j", 0, 0, "h"}, kBase + 1, 1, "checkpoint", "saved", {{"path", "/x"}}});
  Append(storage::Event{{"j", 0, 0, "h"}, kBase + 2, 4, "checkpoint", "saved again", {}});
  Append(storage::Event{{"j", 0, 1, "h"}, kBase + 9, {}, "started", "", {}});
  data::ListTensorsRequest list;
  list.mutable_plugin_filter()->set_plugin_name("text");
  list.mutable_run_tag_filter()->mutable_runs()->add_names("j/0");
  data::ListTensorsResponse listed;
  ASSERT_TRUE(ListTensors(Now(), list, &listed).ok());
  ASSERT_EQ(listed.runs_size(), 1);
  ASSERT_EQ(listed.runs(0).tags_size(), 2);
  EXPECT_EQ(listed.runs(0).tags(1).tag_name(), "events/checkpoint");
  EXPECT_EQ(listed.runs(0).tags(1).metadata().max_step(), 4);
  data::ReadTensorsRequest read;
  *read.mutable_plugin_filter() = list.plugin_filter();
  *read.mutable_run_tag_filter() = list.run_tag_filter();
  read.mutable_downsample()->set_num_points(1);
  data::ReadTensorsResponse texts;
  ASSERT_TRUE(ReadTensors(Now(), read, &texts).ok());
  EXPECT_THAT(texts.runs(0).tags(0).data().value(0).string_val(0), HasSubstr("| model | a\\|b |"));
  const auto& newest = texts.runs(0).tags(1).data();
  EXPECT_THAT(newest.step(), ElementsAre(4));
  EXPECT_THAT(newest.value(0).string_val(0), HasSubstr("saved again"));
  EXPECT_EQ(newest.value(0).dtype(), ::tensorboard::DT_STRING);
  list.mutable_plugin_filter()->set_plugin_name("histograms");
  listed.Clear();
  ASSERT_TRUE(ListTensors(Now(), list, &listed).ok());
  EXPECT_EQ(listed.runs_size(), 0);
}

TEST_F(TensorBoardTest, StopsWhenItsClientHasGone) {
  Append({"j", 0, 0, "h"}, "loss", Rows(0, 1, 0));
  control_.Cancel();
  EXPECT_EQ(ReadAll({}, 1).status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace tacho::server::tb
