// What a tool learns over HTTP of the names that there are.
#include "server/promread/explore_door.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/promread/explore_answer.h"
#include "tests/server/bridge/recorded_responder.h"
#include "tests/server/memory_store.h"

namespace tacho::server::promread {
namespace {

using bridge::RecordedResponder;
using testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000'000;

class ExploreDoorTest : public testing::Test {
 protected:
  ExploreDoorTest() {
    Add("vision", MetricNamed("loss", storage::MetricType::kGauge, "nats"), 0, "h1", {});
    Add("vision", MetricNamed("chip.power"), 0, "h1", {{"chip", "1"}, {"job", "own"}});
    Add("vision", MetricNamed("chip.power"), 1, "h2", {{"chip", "0"}}, 100 * kSecond, 1);
    Add("speech", MetricNamed("steps_total", storage::MetricType::kCounter), 0, "h3", {});
    Add("speech", MetricNamed("t_bucket", storage::MetricType::kHistogram), 0, "h3", {{"le", "1"}});
    query::QueryServiceOptions options;
    options.store = store_.get();
    options.limits.set_max_series(1000);
    options.limits.set_timeout(absl::ToInt64Nanoseconds(absl::Minutes(1)));
    options.limits.set_max_concurrent(1);
    options.registry = std::make_shared<prometheus::Registry>();
    queries_ = std::make_unique<query::QueryService>(std::move(options));
    door_ = std::make_unique<ExploreDoor>(queries_.get(), http::HttpGuard(), "1.2.3");
  }
  ~ExploreDoorTest() override { queries_->Drain(); }

  void Add(const std::string& job, storage::Metric metric, uint32_t task, const std::string& host,
           storage::Labels labels, int64_t time_ns = 5 * kSecond, uint32_t attempt = 0) {
    store_.AddSamples(store_.AddSeries(job, std::move(metric), task, host, std::move(labels)),
                      {{time_ns, 1, attempt, 0.25}});
  }
  http::HttpResponse Get(const std::string& path, http::HttpRequest::Pairs query = {}) {
    http::HttpRequest request;
    request.method = "GET";
    request.path = "/api/v1/" + path;
    request.query = std::move(query);
    auto responder = std::make_shared<RecordedResponder>();
    door_->Handle(std::move(request), responder);
    return responder->answer();
  }
  // The data of an answer.
  std::string Data(const std::string& path, http::HttpRequest::Pairs query = {}) {
    const auto response = Get(path, std::move(query));
    EXPECT_EQ(response.content_type, "application/json");
    EXPECT_EQ(response.status, 200) << response.body;
    const std::string before = "{\"status\":\"success\",\"data\":";
    EXPECT_EQ(response.body.substr(0, before.size()), before);
    return response.body.substr(std::min(before.size(), response.body.size()));
  }

  MemoryStore store_{1000};
  std::unique_ptr<query::QueryService> queries_;
  std::unique_ptr<ExploreDoor> door_;
};

TEST_F(ExploreDoorTest, LabelsWithAndWithoutASelector) {
  const std::string all =
      R"(["__name__","attempt","chip","exported_job","host","job","le","metric","task"]})";
  EXPECT_EQ(Data("labels"), all);
  EXPECT_EQ(Data("labels", {{"match[]", R"({__name__!=""})"}}), all);
  EXPECT_EQ(Data("labels", {{"match[]", R"({job=~"v.*|s.*"})"}}), all) << "from the series";
  EXPECT_EQ(Data("labels", {{"match[]", "loss"}}),
            R"(["__name__","attempt","host","job","task"]})");
  EXPECT_EQ(Data("labels", {{"limit", "2"}}),
            R"(["__name__","attempt"],"warnings":["results truncated due to limit"]})");
  EXPECT_EQ(Data("labels", {{"start", "1000"}}), "[]}");
}

TEST_F(ExploreDoorTest, ValuesOfALabel) {
  const std::pair<const char*, const char*> kExpected[] = {
      {"metric", R"(["chip.power"]})"}, {"job", R"(["speech","vision"]})"},
      {"attempt", R"(["0","1"]})"},     {"host", R"(["h1","h2","h3"]})"},
      {"task", R"(["0","1"]})"},        {"chip", R"(["0","1"]})"},
      {"exported_job", R"(["own"]})"},  {"none", "[]}"},
  };
  const char* const kNames = R"(["chip_power","loss","steps_total","t_bucket"]})";
  EXPECT_EQ(Data("label/__name__/values", {{"match[]", R"({job=~"v.*|s.*"})"}}), kNames);
  EXPECT_EQ(Data("label/__name__/values"),
            R"(["chip_power","loss","steps_total","t_bucket","tacho_step"]})");
  for (const auto& [label, values] : kExpected) {
    const std::string path = std::string("label/") + label + "/values";
    EXPECT_EQ(Data(path), values) << label;
    EXPECT_EQ(Data(path, {{"match[]", R"({job=~"v.*|s.*"})"}}), values) << label;
  }
  EXPECT_EQ(Data("label/host/values", {{"match[]", "loss"}, {"match[]", "steps_total"}}),
            R"(["h1","h3"]})");
  EXPECT_EQ(Data("label/job/values", {{"start", "50"}}), R"(["vision"]})");
  EXPECT_EQ(Get("label/values").status, 404);
  EXPECT_EQ(Get("label//values").status, 404);
}

TEST_F(ExploreDoorTest, SeriesAreSortedAndOnce) {
  const std::string loss =
      R"({"__name__":"loss","attempt":"0","host":"h1","job":"vision","task":"0"})";
  const std::string second =
      R"({"__name__":"loss","attempt":"1","host":"h1","job":"vision","task":"0"})";
  EXPECT_EQ(Data("series", {{"match[]", "loss"}, {"match[]", R"({job="vision",metric=""})"}}),
            "[" + loss + "," + second + "]}");
  EXPECT_EQ(Data("series", {{"match[]", "loss"}, {"limit", "1"}}),
            "[" + loss + R"(],"warnings":["results truncated due to limit"]})");
  const auto none = Get("series");
  EXPECT_EQ(none.status, 400);
  EXPECT_THAT(none.body, HasSubstr(R"("errorType":"bad_data","error":"match[]: )"));
}

TEST_F(ExploreDoorTest, MetadataAndBuild) {
  EXPECT_EQ(Data("metadata"),
            R"({"chip_power":[{"type":"gauge","help":"","unit":""}],)"
            R"("loss":[{"type":"gauge","help":"","unit":"nats"}],)"
            R"("steps_total":[{"type":"counter","help":"","unit":""}],)"
            R"("t":[{"type":"histogram","help":"","unit":""}],)"
            R"("tacho_step":[{"type":"gauge","help":"Step of the rows that the task recorded.",)"
            R"("unit":""}]}})");
  EXPECT_EQ(Data("metadata", {{"metric", "loss"}}),
            R"({"loss":[{"type":"gauge","help":"","unit":"nats"}]}})");
  Add("other", MetricNamed("loss"), 0, "h", {});
  EXPECT_EQ(Data("metadata", {{"metric", "loss"}, {"limit_per_metric", "1"}}),
            R"({"loss":[{"type":"gauge","help":"","unit":""}]}})");
  EXPECT_THAT(Data("metadata", {{"limit", "1"}}), testing::Not(HasSubstr("loss")));
  EXPECT_THAT(Data("status/buildinfo"), HasSubstr(R"({"version":"1.2.3","revision":"")"));
}

TEST_F(ExploreDoorTest, WhatTheStoreHas) {
  const std::string data = Data("status/tsdb");
  EXPECT_THAT(data, HasSubstr(R"("numSeries":5,)"));
  EXPECT_THAT(data, HasSubstr(R"("minTime":5000,"maxTime":100000})"));
  EXPECT_THAT(data, HasSubstr(R"("seriesCountByMetricName":[{"name":"chip_power","value":2},)"));
  EXPECT_THAT(data, HasSubstr(R"({"name":"job=vision","value":3})"));
  EXPECT_THAT(data, HasSubstr(R"("labelValueCountByLabelName":[{"name":"__name__","value":4},)"));
  EXPECT_THAT(Data("status/tsdb", {{"limit", "1"}}),
              HasSubstr(R"("seriesCountByMetricName":[{"name":"chip_power","value":2}],)"));
  EXPECT_EQ(Get("status/tsdb", {{"limit", "10001"}}).status, 400);
}

TEST_F(ExploreDoorTest, PromqlIsSomebodyElsesWork) {
  for (const char* path : {"query", "query_range", "query_exemplars"}) {
    const auto response = Get(path, {{"query", "1+1"}});
    EXPECT_EQ(response.status, 422);
    EXPECT_EQ(response.content_type, "application/json");
    EXPECT_THAT(response.body, HasSubstr(R"({"status":"error","errorType":"execution","error":")"));
    EXPECT_THAT(response.body, HasSubstr("docs/interop.md#prometheus-reads-history"));
  }
}

TEST_F(ExploreDoorTest, TooManySeriesIs422AndNoWorker503) {
  config::v1::Collector config;
  *config.mutable_query() = queries_->limits();
  config.mutable_query()->set_max_series(1);
  (*queries_->Prepare(config))();
  const auto many = Get("series", {{"match[]", "chip_power"}});
  EXPECT_EQ(many.status, 422);
  EXPECT_THAT(many.body, HasSubstr("more than 1 series"));
  absl::Notification end;
  const query::QueryControl control;
  const auto rights = security::Rights::Everything();
  ASSERT_TRUE(queries_
                  ->RunOnWorker(
                      {.method = "Other", .rights = rights.get(), .control = &control},
                      [&](const auto&) {
                        end.WaitForNotification();
                        return absl::OkStatus();
                      },
                      [](const absl::Status&) {})
                  .ok());
  const auto busy = Get("labels");
  EXPECT_EQ(busy.status, 503);
  EXPECT_THAT(busy.body, HasSubstr(R"("errorType":"unavailable")"));
  EXPECT_EQ(Get("query").status, 422) << "takes no worker";
  end.Notify();
}

TEST_F(ExploreDoorTest, TheFirstOfTooManyValuesComeWithAWarning) {
  const security::RightsPtr rights = security::Rights::Everything();
  const query::QueryControl control;
  ListQuestion question = {.kind = ListKind::kLabelValues, .label = "__name__", .request = {}};
  question.request.everything = {.begin_ms = 0, .end_ms = 1'000'000};
  question.request.limit = 3;
  const auto found = FindEntries({store_, *rights, control}, question);
  ASSERT_TRUE(found.ok());
  const ExploreAnswer answer = AnswerOf(question, *found);
  EXPECT_EQ(answer.data, R"(["chip_power","loss","steps_total"])");
  EXPECT_EQ(answer.warnings.size(), 1u);
}

}  // namespace
}  // namespace tacho::server::promread
