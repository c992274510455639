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
  static http::HttpRequest Request(const std::string& job, bool streamed = false,
                                   bool every_job = false) {
    ::prometheus_remote::ReadRequest message;
    auto* const query = message.add_queries();
    query->set_end_timestamp_ms(1'000'000);
    auto* const matcher = query->add_matchers();
    matcher->set_name("job");
    matcher->set_value(every_job ? ".+" : job);
    if (every_job) matcher->set_type(::prometheus_remote::LabelMatcher::RE);
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
  void Replace(Members members) {
    replaced_.push_back(std::move(door_));
    door_ = std::make_unique<RemoteReadDoor>(queries_.get(), http::HttpGuard(), members);
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

// Says what the other member has, and keeps what it was asked.
class OtherMember final : public Elsewhere {
 public:
  template <typename Response>
  class Answer final : public MemberAnswer<Response> {
   public:
    Answer(std::vector<Response> messages, absl::Status end)
        : messages_(std::move(messages)), end_(std::move(end)) {}
    absl::StatusOr<bool> Next(Response* response) override {
      if (at_ == messages_.size() && !end_.ok()) return end_;
      if (at_ == messages_.size()) return false;
      *response = messages_[at_++];
      return true;
    }

   private:
    const std::vector<Response> messages_;
    const absl::Status end_;
    size_t at_ = 0;
  };

  absl::StatusOr<MemberAnswers<v1::MemberReadResponse>> Read(
      const Reader&, const v1::MemberReadRequest& request,
      const std::vector<uint32_t>& shards) override {
    reads.push_back(request);
    asked = shards;
    MemberAnswers<v1::MemberReadResponse> answers;
    answers.push_back(std::make_unique<Answer<v1::MemberReadResponse>>(series, end));
    return answers;
  }
  absl::StatusOr<MemberAnswers<v1::MemberListResponse>> List(
      const Reader&, const v1::MemberListRequest&, const std::vector<uint32_t>& shards) override {
    asked = shards;
    MemberAnswers<v1::MemberListResponse> answers;
    answers.push_back(std::make_unique<Answer<v1::MemberListResponse>>(lists, end));
    return answers;
  }
  void Add(v1::MemberReadResponse* to, const std::string& job, std::vector<double> values) {
    v1::MemberSeries* const one = to->add_series();
    for (const auto& [name, value] : {std::pair<std::string, std::string>("__name__", "loss"),
                                      {"attempt", "0"},
                                      {"host", "h1"},
                                      {"job", job},
                                      {"task", "0"}}) {
      v1::Label* const label = one->add_labels();
      label->set_name(name);
      label->set_value(value);
    }
    for (const double value : values) {
      one->add_times_unix_ms(++time_ms_);
      one->add_values(value);
    }
  }

  std::vector<v1::MemberReadResponse> series;
  std::vector<v1::MemberListResponse> lists;
  absl::Status end;
  std::vector<v1::MemberReadRequest> reads;
  std::vector<uint32_t> asked;

 private:
  int64_t time_ms_ = 100;
};

// The values of each series, by job, in the order of the answer.
std::vector<std::pair<std::string, std::vector<double>>> ValuesOf(const std::string& packed) {
  std::string bytes;
  EXPECT_TRUE(snappy::Uncompress(packed.data(), packed.size(), &bytes));
  ::prometheus_remote::ReadResponse message;
  EXPECT_TRUE(message.ParseFromString(bytes));
  std::vector<std::pair<std::string, std::vector<double>>> found;
  for (const auto& series : message.results(0).timeseries()) {
    auto& one = found.emplace_back();
    for (const auto& label : series.labels()) {
      if (label.name() == "job") one.first = label.value();
    }
    for (const auto& sample : series.samples()) one.second.push_back(sample.value());
  }
  return found;
}

TEST_F(RemoteReadDoorTest, InAClusterSeriesOfOthersStandInTheirPlaces) {
  const cluster::Membership own = ClusterOf(/*keeps_vision=*/true);
  OtherMember other;
  other.series.resize(3);
  other.Add(&other.series[0], "a-first", {1, 2});
  other.Add(&other.series[0], "m-cut", {3});
  other.Add(&other.series[2], "m-cut", {4, 5});  // Goes on after an empty message.
  other.Add(&other.series[2], "vision", {9});    // As here: what is here counts.
  other.Add(&other.series[2], "z-last", {6});
  Replace({&own, &other});
  const auto answer = Send(Request("vision", false, /*every_job=*/true))->answer();
  ASSERT_EQ(answer.status, 200) << answer.body;
  using Values = std::vector<double>;
  EXPECT_THAT(ValuesOf(answer.body), testing::ElementsAre(testing::Pair("a-first", Values{1, 2}),
                                                          testing::Pair("m-cut", Values{3, 4, 5}),
                                                          testing::Pair("vision", Values{0.25}),
                                                          testing::Pair("z-last", Values{6})));
  EXPECT_THAT(other.asked, testing::ElementsAre(1 - own.own()));
  EXPECT_EQ(other.reads.at(0).selection().matchers(0).value(), ".+");

  EXPECT_EQ(Send(Request("vision"))->answer().status, 200);
  EXPECT_EQ(other.reads.size(), 1u) << "a job that is kept here needs nobody else";
  http::HttpRequest of_each = Request("vision", false, true);
  of_each.query = {{"members", "own"}};
  EXPECT_EQ(ValuesOf(Send(std::move(of_each))->answer().body).size(), 1u);
  EXPECT_EQ(other.reads.size(), 1u);
  queries_->Drain();  // Nobody uses the membership any more.
}

TEST_F(RemoteReadDoorTest, InAClusterAMemberThatFailsEndsTheAnswer) {
  const cluster::Membership own = ClusterOf(/*keeps_vision=*/true);
  OtherMember other;
  other.series.resize(1);
  other.Add(&other.series[0], "a-first", {1, 2});
  other.Add(&other.series[0], "b-second", {3});
  Replace({&own, &other});
  for (const bool streamed : {false, true}) {
    other.end = absl::UnavailableError("member b is away");
    const auto answer = Send(Request("vision", streamed, true));
    if (streamed) {
      while (queries_->queries_at_work() > 0) absl::SleepFor(absl::Milliseconds(1));
      EXPECT_FALSE(answer->answered()) << "its first frame is out, and so it is cut";
    } else {
      EXPECT_EQ(answer->answer().status, 503);
      EXPECT_THAT(answer->answer().body, HasSubstr("member b is away"));
    }
  }
  other.end = absl::OkStatus();
  other.series[0].mutable_series(0)->add_values(7);
  const auto odd = Send(Request("vision", false, true))->answer();
  EXPECT_EQ(odd.status, 400);
  EXPECT_THAT(odd.body, HasSubstr("times without values"));
  queries_->Drain();
}

TEST_F(RemoteReadDoorTest, InAClusterOthersKeepJobsWhoseCopiesAreHere) {
  const cluster::Membership elsewhere = ClusterOf(/*keeps_vision=*/false);
  OtherMember other;
  other.series.resize(1);
  other.Add(&other.series[0], "vision", {1, 2});
  Replace({&elsewhere, &other});
  for (const bool every_job : {false, true}) {
    const auto found = ValuesOf(Send(Request("vision", false, every_job))->answer().body);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].second, (std::vector<double>{1, 2}));
  }
  queries_->Drain();
}

TEST_F(RemoteReadDoorTest, InAClusterListsHaveTheNamesOfAll) {
  const cluster::Membership own = ClusterOf(/*keeps_vision=*/true);
  OtherMember other;
  other.lists.resize(2);
  other.lists[0].add_entries()->set_key("speech");
  other.lists[1].add_entries()->set_key("vision");
  other.lists[1].add_entries()->set_key("zoo");
  ExploreDoor door(queries_.get(), http::HttpGuard(), "1.0", {&own, &other});
  http::HttpRequest request;
  request.method = "GET";
  request.path = "/api/v1/label/job/values";
  const auto ask = [&](http::HttpRequest::Pairs query) {
    request.query = std::move(query);
    const auto responder = std::make_shared<RecordedResponder>(true);
    door.Handle(request, responder);
    return responder->answer();
  };
  EXPECT_THAT(ask({}).body, HasSubstr(R"("data":["speech","vision","zoo"]})"));
  EXPECT_THAT(ask({{"limit", "2"}}).body,
              HasSubstr(R"("data":["speech","vision"],"warnings":["results truncated)"));
  EXPECT_THAT(ask({{"members", "own"}}).body, HasSubstr(R"("data":["vision"]})"));
  other.lists[0].set_more(true);
  EXPECT_THAT(ask({}).body, HasSubstr("which is its limit"));
  other.end = absl::UnavailableError("member b is away");
  EXPECT_EQ(ask({}).status, 503);
  queries_->Drain();  // Nobody uses the door any more.
}

}  // namespace
}  // namespace tacho::server::promread
