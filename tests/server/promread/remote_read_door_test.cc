// What an asker is answered over HTTP.
#include "server/promread/remote_read_door.h"

#include <prometheus/text_serializer.h>
#include <snappy.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interop/prometheus_read.pb.h"
#include "proto/base/job_shard.h"
#include "server/promread/explore_door.h"
#include "tests/server/bridge/recorded_responder.h"
#include "tests/server/memory_store.h"

namespace tacho::server::promread {
namespace {

using bridge::RecordedResponder;
using testing::HasSubstr;

class RemoteReadDoorTest : public testing::Test {
 protected:
  RemoteReadDoorTest() {
    store_.AddSamples(store_.AddSeries("vision", MetricNamed("loss"), 0, "h1"),
                      {{5'000'000, 1, 0, 0.25}});
    query::QueryServiceOptions options;
    options.store = store_.get();
    options.limits.set_max_series(1000);
    options.limits.set_max_samples(1'000'000);
    options.limits.set_timeout(absl::ToInt64Nanoseconds(absl::Minutes(1)));
    options.limits.set_max_concurrent(1);
    options.registry = registry_;
    queries_ = std::make_unique<query::QueryService>(std::move(options));
    door_ = std::make_unique<RemoteReadDoor>(queries_.get(), http::HttpGuard());
  }
  ~RemoteReadDoorTest() override { queries_->Drain(); }

  // Enough for some frames of noise.
  void AddNoise() {
    std::vector<TestSample> samples;
    uint64_t bits = 1;
    for (int i = 0; i < 400'000; ++i) {
      bits = bits * 6364136223846793005 + 1442695040888963407;
      samples.push_back({i * int64_t{1'000'000}, i, 0, static_cast<double>(bits)});
    }
    store_.AddSamples(store_.AddSeries("noise", MetricNamed("noise"), 0, "h"), samples);
  }
  static http::HttpRequest Request(const std::string& job, bool streamed = false) {
    ::prometheus_remote::ReadRequest message;
    auto* const query = message.add_queries();
    query->set_end_timestamp_ms(1'000'000);
    auto* const matcher = query->add_matchers();
    matcher->set_name("job");
    matcher->set_value(job);
    if (streamed) {
      message.add_accepted_response_types(::prometheus_remote::ReadRequest::STREAMED_XOR_CHUNKS);
    }
    http::HttpRequest request;
    request.method = "POST";
    request.path = "/api/v1/read";
    request.headers = {{"content-type", "application/x-protobuf"}, {"content-encoding", "snappy"}};
    const std::string bytes = message.SerializeAsString();
    snappy::Compress(bytes.data(), bytes.size(), &request.body);
    return request;
  }
  void Replace(const cluster::Membership* membership) {
    replaced_.push_back(std::move(door_));
    door_ = std::make_unique<RemoteReadDoor>(queries_.get(), http::HttpGuard(), membership);
  }
  std::shared_ptr<RecordedResponder> Send(http::HttpRequest request, bool reads = true) {
    auto responder = std::make_shared<RecordedResponder>(reads);
    door_->Handle(std::move(request), responder);
    return responder;
  }
  static std::string Header(const http::HttpResponse& response, absl::string_view name) {
    for (const auto& [key, value] : response.headers) {
      if (key == name) return value;
    }
    return "";
  }
  std::string Counted() const {
    return prometheus::TextSerializer().Serialize(registry_->Collect());
  }

  MemoryStore store_{1000};
  std::shared_ptr<prometheus::Registry> registry_ = std::make_shared<prometheus::Registry>();
  std::unique_ptr<query::QueryService> queries_;
  // A query that is answered may still be on its way out of its door.
  std::vector<std::unique_ptr<RemoteReadDoor>> replaced_;
  std::unique_ptr<RemoteReadDoor> door_;
};

TEST_F(RemoteReadDoorTest, SamplesArePackedAndCounted) {
  const auto response = Send(Request("vision"))->answer();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "application/x-protobuf");
  EXPECT_EQ(Header(response, "Content-Encoding"), "snappy");
  std::string bytes;
  ASSERT_TRUE(snappy::Uncompress(response.body.data(), response.body.size(), &bytes));
  ::prometheus_remote::ReadResponse message;
  ASSERT_TRUE(message.ParseFromString(bytes));
  EXPECT_EQ(message.results(0).timeseries(0).samples(0).value(), 0.25);
  EXPECT_THAT(Counted(),
              HasSubstr("tacho_query_requests_total{code=\"OK\",method=\"prometheus.Read\"} 1\n"));
  EXPECT_THAT(Counted(), HasSubstr("tacho_query_samples_returned_total 1\n"));
  EXPECT_THAT(Counted(), HasSubstr("tacho_query_remote_reads_total{form=\"samples\"} 1\n"));
  EXPECT_THAT(Counted(), HasSubstr("tacho_query_remote_reads_total{form=\"chunks\"} 0\n"));
}

TEST_F(RemoteReadDoorTest, AStreamHasItsTypeAlsoWhenNothingMatches) {
  for (const char* job : {"vision", "none"}) {
    const auto responder = Send(Request(job, true));
    EXPECT_EQ(responder->answer().status, 200);
    EXPECT_EQ(responder->answer().content_type,
              "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse");
    EXPECT_EQ(responder->body().empty(), std::string(job) == "none");
  }
  EXPECT_THAT(Counted(), HasSubstr("tacho_query_remote_reads_total{form=\"chunks\"} 2\n"));
}

TEST_F(RemoteReadDoorTest, AnotherFormIs415AndDamage400) {
  auto plain = Request("vision");
  plain.headers[1].second = "identity";
  EXPECT_EQ(Send(plain)->answer().status, 415);
  auto json = Request("vision");
  json.headers[0].second = "application/json";
  EXPECT_EQ(Send(json)->answer().status, 415);
  auto damaged = Request("vision");
  damaged.body = "\x05no";
  EXPECT_EQ(Send(damaged)->answer().status, 400);
  auto large = Request("vision");
  large.body = "\xff\xff\xff\xff\x0f";
  EXPECT_EQ(Send(large)->answer().status, 413);
}

TEST_F(RemoteReadDoorTest, ASlowClientHoldsAWorkerAndOneThatLeavesGivesItBack) {
  AddNoise();
  const auto slow = Send(Request("noise", true), /*reads=*/false);
  while (!slow->WaitsForRoom()) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_LT(slow->unsent(), 2 * kFrameBytes);
  const auto next = Send(Request("vision"));
  EXPECT_EQ(queries_->queries_at_work(), 1u);
  slow->Leave();
  EXPECT_EQ(next->answer().status, 200) << "it has waited for the other one";
  EXPECT_THAT(Counted(), HasSubstr("{code=\"CANCELLED\",method=\"prometheus.Read\"} 1\n"));
}

TEST_F(RemoteReadDoorTest, SoManyReadsWaitAndOneMoreIsRefused) {
  AddNoise();
  const auto slow = Send(Request("noise", true), /*reads=*/false);
  while (!slow->WaitsForRoom()) absl::SleepFor(absl::Milliseconds(1));
  std::vector<std::shared_ptr<RecordedResponder>> waiting;
  for (size_t i = 0; i < kMaxWaitingReads; ++i) waiting.push_back(Send(Request("vision")));
  const auto refused = Send(Request("vision"))->answer();
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.body, HasSubstr("128 requests"));
  waiting[5]->Leave();
  slow->Leave();
  for (size_t i = 0; i < waiting.size(); ++i) {
    EXPECT_EQ(waiting[i]->answer().status, i == 5 ? 499 : 200) << i;
  }
}

TEST_F(RemoteReadDoorTest, WithoutAWorkerAndWithoutAReadThatRunsItIsRefused) {
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
  const auto refused = Send(Request("vision"))->answer();
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.body, HasSubstr("query.max_concurrent"));
  end.Notify();
}

TEST_F(RemoteReadDoorTest, ReadsThatWaitAreAnsweredWhenTheCollectorDrains) {
  AddNoise();
  const auto slow = Send(Request("noise", true), /*reads=*/false);
  while (!slow->WaitsForRoom()) absl::SleepFor(absl::Milliseconds(1));
  const auto waiting = Send(Request("vision"));
  queries_->Drain();
  EXPECT_EQ(waiting->answer().status, 503);
}

TEST_F(RemoteReadDoorTest, AClientThatReadsOnGetsTheWholeStream) {
  AddNoise();
  const auto responder = Send(Request("noise", true), /*reads=*/false);
  while (queries_->queries_at_work() > 0) {
    responder->TakeAll();
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_GT(responder->body().size(), size_t{2} << 20);
}

TEST_F(RemoteReadDoorTest, ADrainingCollectorAnswers503) {
  queries_->Drain();
  const auto response = Send(Request("vision"))->answer();
  EXPECT_EQ(response.status, 503);
  EXPECT_NE(Header(response, "Retry-After"), "");
}

// A cluster of which this collector keeps the shard of "vision", or the other one.
cluster::Membership ClusterOf(bool keeps_vision) {
  config::v1::Collector config;
  config.mutable_cluster()->add_members("a:1");
  config.mutable_cluster()->add_members("b:1");
  const uint32_t shard = ShardOfJob("vision", 2);
  auto membership = cluster::Membership::Make(config, (shard == 0) == keeps_vision ? "a" : "b");
  EXPECT_TRUE(membership.ok()) << membership.status();
  return *std::move(membership);
}

TEST_F(RemoteReadDoorTest, InAClusterJobsOfOthersAreRefusedWithTheirOwner) {
  const cluster::Membership other = ClusterOf(/*keeps_vision=*/false);
  Replace(&other);
  const auto refused = Send(Request("vision"))->answer();
  EXPECT_EQ(refused.status, 421);
  EXPECT_THAT(refused.body, HasSubstr(other.NameOf(ShardOfJob("vision", 2))));
  EXPECT_THAT(refused.body, HasSubstr("members=own"));
  http::HttpRequest of_each = Request("vision");
  of_each.query = {{"members", "own"}};
  EXPECT_EQ(Send(std::move(of_each))->answer().status, 200);

  const cluster::Membership own = ClusterOf(/*keeps_vision=*/true);
  Replace(&own);
  EXPECT_EQ(Send(Request("vision"))->answer().status, 200);
  queries_->Drain();  // Nobody uses the memberships any more.
}

TEST_F(RemoteReadDoorTest, InAClusterListsSayWhatTheyLeaveOut) {
  const cluster::Membership own = ClusterOf(/*keeps_vision=*/true);
  ExploreDoor door(queries_.get(), http::HttpGuard(), "1.0", &own);
  http::HttpRequest request;
  request.method = "GET";
  request.path = "/api/v1/label/job/values";
  for (const bool of_each : {false, true}) {
    if (of_each) request.query = {{"members", "own"}};
    const auto responder = std::make_shared<RecordedResponder>(true);
    door.Handle(request, responder);
    const auto answer = responder->answer();
    EXPECT_EQ(answer.status, 200);
    EXPECT_THAT(answer.body, HasSubstr("vision"));
    EXPECT_EQ(answer.body.find("other collectors of the cluster") == std::string::npos, of_each);
  }
  queries_->Drain();  // Nobody uses the door any more.
}

}  // namespace
}  // namespace tacho::server::promread
