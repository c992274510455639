// Watches over gRPC and the real store: between history and live there is no gap and no repeat.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <prometheus/text_serializer.h>

#include <atomic>
#include <set>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "server/query/query_service.h"
#include "tests/server/query/query_store_fixture.h"
#include "tests/support/patient_context.h"

namespace tacho::server::query {
namespace {

using testing::HasSubstr;

class Watcher {
 public:
  Watcher(v1::Query::Stub* stub, const v1::WatchRequest& request)
      : reader_(stub->Watch(&context_, request)) {}

  // False at the end of the stream.
  bool Read() {
    if (!reader_->Read(&message_)) return false;
    if (message_.has_series()) {
      EXPECT_EQ(message_.series().index(), series_.size());
      series_.push_back(message_.series().series());
    }
    if (message_.has_samples()) {
      const v1::Points& points = message_.samples().points();
      for (int i = 0; i < points.values_size(); ++i) ++seen_[points.values(i)];
    }
    if (message_.has_event()) events_.push_back(message_.event().kind());
    if (message_.has_live()) {
      EXPECT_FALSE(std::exchange(live_, true));
    }
    return true;
  }
  bool ReadUntilLive() {
    while (!live_ && Read()) {
    }
    return live_;
  }
  bool ReadUntil(double value) {
    while (!seen_.contains(value) && Read()) {
    }
    return seen_.contains(value);
  }
  grpc::Status Finish() { return reader_->Finish(); }
  void Cancel() { context_.TryCancel(); }

  const v1::WatchResponse& message() const { return message_; }
  // How often each value came: tests give every sample one of its own.
  const std::map<double, int>& seen() const { return seen_; }
  const std::vector<v1::SeriesInfo>& series() const { return series_; }
  const std::vector<std::string>& events() const { return events_; }

 private:
  PatientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::WatchResponse>> reader_;
  v1::WatchResponse message_;
  std::map<double, int> seen_;
  std::vector<v1::SeriesInfo> series_;
  std::vector<std::string> events_;
  bool live_ = false;
};

class QueryWatchTest : public QueryStoreFixture {
 protected:
  explicit QueryWatchTest(uint32_t seed = 1) : QueryStoreFixture(seed) {
    options_.store = store_.get();
    options_.limits.set_max_series(1000);
    options_.limits.set_max_samples(100'000'000);
    options_.limits.set_timeout(absl::ToInt64Nanoseconds(absl::Minutes(1)));
    options_.limits.set_max_concurrent(4);
    options_.limits.set_max_watches(16);
    options_.registry = std::make_shared<prometheus::Registry>();
    request_.mutable_selector()->set_job("train");
  }
  ~QueryWatchTest() override {
    if (service_ != nullptr) service_->Drain();
    if (server_ != nullptr) server_->Shutdown();
  }

  void Start() {
    service_ = std::make_unique<QueryService>(options_);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    stub_ = v1::Query::NewStub(grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                                   grpc::InsecureChannelCredentials()));
  }
  std::unique_ptr<Watcher> Watch() { return std::make_unique<Watcher>(stub_.get(), request_); }

  // Rows of all columns, each value one of its own; returns the last.
  double AppendRows(const std::string& job, uint32_t task, uint32_t attempt,
                    const std::vector<std::string>& metrics, int rows,
                    int64_t begin_ns = kTestBase) {
    std::vector<int64_t> times, steps;
    std::vector<double> values;
    for (int row = 0; row < rows; ++row) {
      times.push_back(begin_ns + ++unique_ * kTestSecond);
      steps.push_back(unique_);
      for (size_t i = 0; i < metrics.size(); ++i) values.push_back(++value_);
    }
    begun_ = value_;
    Append(Register(job, task, attempt, metrics), times, steps, values);
    return value_;
  }
  void AppendEvent(const std::string& kind, int64_t time_ns) {
    storage::Event event;
    event.source = {"train", 0, 0, "host-0"};
    event.time_ns = time_ns;
    event.kind = kind;
    absl::Notification done;
    store_->AppendEvent({}, event, [&](const absl::Status&) { done.Notify(); });
    done.WaitForNotification();
  }
  std::string Page() {
    return prometheus::TextSerializer().Serialize(options_.registry->Collect());
  }
  bool AwaitOnPage(const std::string& line) {
    for (int i = 0; i < 1000; ++i) {
      if (Page().find(line) != std::string::npos) return true;
      absl::SleepFor(absl::Milliseconds(10));
    }
    return false;
  }

  QueryServiceOptions options_;
  v1::WatchRequest request_;
  int64_t unique_ = 0;
  double value_ = 0;
  std::atomic<double> begun_ = 0;  // Values above have not been appended, nor begun to be.
  std::unique_ptr<QueryService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::Query::Stub> stub_;
};

TEST_F(QueryWatchTest, TellsHistoryThenWhatComes) {
  AppendRows("train", 0, 0, {"loss", "lr"}, 10);
  AppendRows("other", 0, 0, {"loss"}, 10);
  AppendEvent("early", kTestBase);
  AppendEvent("late", kTestBase + 100 * kTestSecond);
  Start();
  request_.set_begin_unix_ns(kTestBase + 6 * kTestSecond);
  request_.set_events(true);
  const auto watcher = Watch();
  ASSERT_TRUE(watcher->ReadUntilLive());
  EXPECT_EQ(watcher->series().size(), 2u);
  EXPECT_EQ(watcher->series()[0].metric().name(), "loss");
  EXPECT_EQ(watcher->seen().size(), 10u);  // Five rows.
  EXPECT_THAT(watcher->events(), testing::ElementsAre("late"));
  EXPECT_GT(watcher->message().live().clock_unix_ns(), kTestBase);
  AppendRows("other", 0, 0, {"loss"}, 1);
  AppendRows("train", 0, 0, {"loss", "lr"}, 1, 0);  // Older than what was asked for.
  AppendEvent("now", 0);
  const double last = AppendRows("train", 7, 1, {"new"}, 2);
  ASSERT_TRUE(watcher->ReadUntil(last));
  EXPECT_EQ(watcher->seen().size(), 14u);
  ASSERT_EQ(watcher->series().size(), 3u);
  EXPECT_EQ(watcher->series()[2].metric().name(), "new");
  EXPECT_EQ(watcher->series()[2].task(), 7u);
  EXPECT_EQ(watcher->message().samples().index(), 2u);
  EXPECT_THAT(watcher->message().samples().points().attempts(), testing::ElementsAre(1, 1));
  EXPECT_THAT(watcher->events(), testing::ElementsAre("late", "now"));
  EXPECT_TRUE(AwaitOnPage("tacho_query_watched_samples_total 4\n"));
}

TEST_F(QueryWatchTest, SelectsByMetricLabelTaskAndAttempt) {
  Start();
  request_.mutable_selector()->add_metrics("loss");
  const auto add = [&](const std::string& label, v1::Matcher::Op op, const std::string& value) {
    v1::Matcher* matcher = request_.mutable_selector()->add_matchers();
    matcher->set_label(label);
    matcher->set_op(op);
    matcher->set_value(value);
  };
  add("task", v1::Matcher::OP_MATCHES, "[01]");
  add("attempt", v1::Matcher::OP_NOT_EQUAL, "1");
  add("chip", v1::Matcher::OP_EQUAL, "");
  const auto watcher = Watch();
  ASSERT_TRUE(watcher->ReadUntilLive());
  AppendRows("train", 0, 0, {"lr", "loss"}, 1);  // 1, and 2, which is wanted.
  AppendRows("train", 2, 0, {"loss"}, 1);
  AppendRows("train", 1, 1, {"loss"}, 1);
  const double last = AppendRows("train", 1, 2, {"loss"}, 1);
  ASSERT_TRUE(watcher->ReadUntil(last));
  EXPECT_EQ(watcher->seen(), (std::map<double, int>{{2, 1}, {last, 1}}));
}

TEST_F(QueryWatchTest, FollowsAJobThatDoesNotExistYet) {
  Start();
  const auto watcher = Watch();
  ASSERT_TRUE(watcher->ReadUntilLive());
  EXPECT_TRUE(watcher->ReadUntil(AppendRows("train", 0, 0, {"loss"}, 3)));
  EXPECT_EQ(watcher->seen().size(), 3u);
}

TEST_F(QueryWatchTest, SendsASampleAgainThatIsReplaced) {
  Start();
  const auto layout = Register("train", 0, 0, {"loss"});
  Append(layout, {kTestBase}, {1}, {1.5});
  request_.set_begin_unix_ns(0);
  const auto watcher = Watch();
  ASSERT_TRUE(watcher->ReadUntilLive());
  Append(layout, {kTestBase}, {1}, {2.5});
  ASSERT_TRUE(watcher->ReadUntil(2.5));
  EXPECT_EQ(watcher->message().samples().points().times_unix_ns(0), kTestBase);
  EXPECT_EQ(watcher->series().size(), 1u);
}

TEST_F(QueryWatchTest, HoldsNoWorkerAndSaysThatItIsAlive) {
  options_.limits.set_max_concurrent(1);
  options_.watch_alive_after = absl::Milliseconds(1);
  Start();
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (int i = 0; i < 3; ++i) {
    for (;;) {  // A watch leaves the worker a moment before or after its client reads `live`.
      auto watcher = Watch();
      if (watcher->ReadUntilLive()) {
        watchers.push_back(std::move(watcher));
        break;
      }
      ASSERT_EQ(watcher->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
    }
  }
  for (const auto& watcher : watchers) {
    ASSERT_TRUE(watcher->Read());
    EXPECT_TRUE(watcher->message().has_alive());
  }
  EXPECT_TRUE(AwaitOnPage("tacho_query_active 0\n"));
  EXPECT_THAT(Page(), HasSubstr("tacho_query_watches 3\n"));
  PatientContext context;
  v1::ListJobsResponse jobs;
  EXPECT_TRUE(stub_->ListJobs(&context, {}, &jobs).ok());
}

TEST_F(QueryWatchTest, LeavesNothingBehindWhenTheClientGoes) {
  Start();
  const auto watcher = Watch();
  ASSERT_TRUE(watcher->ReadUntilLive());
  EXPECT_THAT(Page(), HasSubstr("tacho_query_watches 1\n"));
  watcher->Cancel();
  EXPECT_EQ(watcher->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(AwaitOnPage("tacho_query_watches 0\n"));
  EXPECT_THAT(Page(),
              HasSubstr("tacho_query_requests_total{code=\"CANCELLED\",method=\"Watch\"} 1"));
}

TEST_F(QueryWatchTest, DrainingEndsWatches) {
  Start();
  const auto watcher = Watch();
  ASSERT_TRUE(watcher->ReadUntilLive());
  std::thread drain([&] { service_->Drain(); });
  EXPECT_FALSE(watcher->Read());
  EXPECT_EQ(watcher->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  drain.join();
  const auto another = Watch();
  EXPECT_FALSE(another->ReadUntilLive());
  EXPECT_EQ(another->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(QueryWatchTest, RefusesWhatIsTooMuchOrWrong) {
  options_.limits.set_max_watches(1);
  Start();
  AppendRows("train", 0, 0, {"a", "b", "c"}, 1);
  const auto end_of = [&] {
    const auto watcher = Watch();
    while (watcher->Read()) {
    }
    return watcher->Finish();
  };
  // A watch gives its place back a moment after its client reads the status.
  const auto end_when_free = [&] {
    grpc::Status status = end_of();
    while (status.error_code() == grpc::StatusCode::UNAVAILABLE) status = end_of();
    return status;
  };
  request_.set_max_series(2);
  grpc::Status status = end_of();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("max_series = 2"));
  request_.mutable_selector()->clear_job();
  EXPECT_EQ(end_when_free().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request_.mutable_selector()->set_job("train");
  request_.mutable_selector()->add_metrics("a");
  request_.mutable_selector()->add_metrics("b");
  request_.mutable_selector()->add_metrics("later");
  std::unique_ptr<Watcher> watcher;
  do {
    watcher = Watch();
  } while (!watcher->ReadUntilLive());
  status = end_of();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("query.max_watches"));
  AppendRows("train", 0, 0, {"a", "b"}, 1);
  // Messages that wait to be sent when a watch ends are not sent any more.
  while (watcher->series().size() < 2 && watcher->Read()) {
  }
  AppendRows("train", 0, 0, {"later"}, 1);
  while (watcher->Read()) {
  }
  EXPECT_EQ(watcher->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(watcher->series().size(), 2u);
}

// Calls of a program share its connection, the stream with its rows too.
TEST_F(QueryWatchTest, WatchesLeaveRoomForOtherCallsOnTheirConnection) {
  options_.limits.set_max_watches(1000);
  Start();
  AppendRows("train", 0, 0, {"a"}, 1);
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (int i = 0; i < 90; ++i) {
    watchers.push_back(Watch());
    ASSERT_TRUE(watchers.back()->ReadUntilLive());
  }
  const auto one_more = Watch();
  EXPECT_FALSE(one_more->Read());
  const grpc::Status status = one_more->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("this connection has 90 watches"));
  for (const auto& watcher : watchers) watcher->Cancel();
}

TEST_F(QueryWatchTest, EndsAClientThatReadsTooSlowlyAndNotWithAGap) {
  Start();
  const auto watcher = Watch();
  ASSERT_TRUE(watcher->ReadUntilLive());
  // More than gRPC, the stream, the backlog and the buffer hold together.
  while (Page().find("code=\"RESOURCE_EXHAUSTED\",method=\"Watch\"") == std::string::npos) {
    ASSERT_LT(value_, 30'000'000);
    AppendRows("train", 0, 0, {"a", "b", "c", "d"}, 20'000);
  }
  while (watcher->Read()) {
  }
  const grpc::Status status = watcher->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("begin_unix_ns"));
  // Whole messages of one batch after the other.
  EXPECT_GT(watcher->seen().size(), 10'000u);
  const auto metric_of = [](double value) { return static_cast<int64_t>(value - 1) % 4; };
  std::map<int64_t, double> last;
  for (const auto& [value, times] : watcher->seen()) {
    EXPECT_EQ(times, 1);
    const auto [found, added] = last.try_emplace(metric_of(value), value);
    if (added) {
      EXPECT_EQ(value, static_cast<double>(metric_of(value) + 1));
      continue;
    }
    EXPECT_EQ(value, found->second + 4);
    found->second = value;
  }
}

// A writer with random batches, rows that come late, attempts and new series; sealing meanwhile;
// watches that begin at any moment.
class QueryWatchRandomTest : public QueryWatchTest, public testing::WithParamInterface<uint32_t> {
 protected:
  QueryWatchRandomTest() : QueryWatchTest(GetParam()) {}
};

TEST_P(QueryWatchRandomTest, EverySampleComesOnce) {
  constexpr double kEnd = -1;
  Start();
  struct Joined {
    std::unique_ptr<Watcher> watcher;
    bool history = false;
    std::atomic<double> live_at = 0;  // Values above were appended after it was live.
    std::thread thread;
  };
  std::vector<std::unique_ptr<Joined>> joined;
  for (int i = 0; i < 400; ++i) {
    std::vector<std::string> metrics = {"loss", "lr"};
    if (Below(10) == 0) metrics.push_back("extra_" + std::to_string(Below(10)));
    const int64_t begin_ns = Below(5) == 0 ? kTestBase - Below(1'000'000) * kTestSecond : kTestBase;
    AppendRows("train", static_cast<uint32_t>(Below(4)), static_cast<uint32_t>(Below(3)), metrics,
               1 + Below(5), begin_ns);
    if (Below(100) == 0) {
      ASSERT_TRUE(store_->Seal().ok());
    }
    if (Below(40) != 0 || joined.size() == 10) continue;
    Joined* const one = joined.emplace_back(std::make_unique<Joined>()).get();
    one->history = Below(2) == 0;
    request_.clear_begin_unix_ns();
    if (one->history) request_.set_begin_unix_ns(0);
    one->thread = std::thread([this, one, request = request_] {
      do {  // As many as there are workers begin at once.
        one->watcher = std::make_unique<Watcher>(stub_.get(), request);
      } while (!one->watcher->ReadUntilLive() &&
               one->watcher->Finish().error_code() == grpc::StatusCode::UNAVAILABLE);
      one->live_at = begun_.load();
      EXPECT_TRUE(one->watcher->ReadUntil(kEnd)) << one->watcher->Finish().error_message();
    });
  }
  for (const auto& one : joined) {
    while (one->live_at == 0) std::this_thread::yield();
  }
  AppendRows("train", 0, 0, {"loss"}, 1);
  Append(Register("train", 9, 0, {"end"}), {kTestBase}, {1}, {kEnd});
  ASSERT_GT(joined.size(), 3u);
  for (const auto& one : joined) {
    one->thread.join();
    const std::map<double, int>& seen = one->watcher->seen();
    for (const auto& [value, times] : seen) EXPECT_EQ(times, 1) << value;
    for (double value = one->history ? 1 : one->live_at + 1; value <= value_; ++value) {
      EXPECT_TRUE(seen.contains(value)) << value;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, QueryWatchRandomTest, testing::Range(1u, 5u));

}  // namespace
}  // namespace tacho::server::query
