#include "server/query/query_service.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "tests/server/memory_store.h"
#include "tests/support/patient_context.h"

namespace tacho::server::query {
namespace {

using testing::HasSubstr;

class QueryServiceTest : public testing::Test {
 protected:
  QueryServiceTest() {
    options_.store = store_.get();
    options_.limits.set_max_series(1000);
    options_.limits.set_max_samples(100'000'000);
    options_.limits.set_timeout(absl::ToInt64Nanoseconds(absl::Minutes(1)));
    options_.limits.set_max_concurrent(2);
    options_.registry = std::make_shared<prometheus::Registry>();
    request_.mutable_selector()->set_job("j");
  }
  ~QueryServiceTest() override {
    if (service_ != nullptr) service_->Drain();
    if (server_ != nullptr) server_->Shutdown();
  }

  void Start() {
    options_.store = store_.get();  // It may have been opened again.
    service_ = std::make_unique<QueryService>(options_);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    stub_ = v1::Query::NewStub(grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                                   grpc::InsecureChannelCredentials()));
  }
  // Samples of 24 bytes, against windows that grow to 8 MiB.
  static constexpr int kMoreThanFlowControlHolds = 1'000'000;

  void AddSeries(int samples) {
    std::vector<TestSample> all(samples);
    for (int i = 0; i < samples; ++i) all[i] = {i, i, 0, 0.5 * i};
    store_.AddSamples(store_.AddSeries("j", MetricNamed("loss"), 0, "h"), std::move(all));
  }
  grpc::Status Range(std::vector<double>* values = nullptr) {
    PatientContext context;
    auto reader = stub_->Range(&context, request_);
    for (v1::RangeResponse piece; reader->Read(&piece);) {
      if (values == nullptr) continue;
      values->insert(values->end(), piece.points().values().begin(), piece.points().values().end());
      for (const v1::RangeResponse& next : piece.more()) {
        values->insert(values->end(), next.points().values().begin(), next.points().values().end());
      }
    }
    return reader->Finish();
  }
  std::string Page() {
    return prometheus::TextSerializer().Serialize(options_.registry->Collect());
  }
  // A query that is cut off leaves its slot a moment after its client reads the status.
  grpc::Status RangeWhenFree() {
    for (int i = 0; i < 500; ++i) {
      grpc::Status status = Range();
      if (status.error_code() != grpc::StatusCode::UNAVAILABLE) return status;
      absl::SleepFor(absl::Milliseconds(10));
    }
    return {grpc::StatusCode::UNAVAILABLE, "still full"};
  }

  MemoryStore store_{1000};
  QueryServiceOptions options_;
  v1::RangeRequest request_;
  std::unique_ptr<QueryService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::Query::Stub> stub_;
};

TEST_F(QueryServiceTest, StreamsALongSeriesWhole) {
  AddSeries(200'000);
  Start();
  std::vector<double> values;
  ASSERT_TRUE(Range(&values).ok());
  ASSERT_EQ(values.size(), 200'000u);
  EXPECT_EQ(values.back(), 0.5 * 199'999);
  service_->Drain();
  EXPECT_THAT(Page(), HasSubstr("tacho_query_samples_returned_total 200000\n"));
  EXPECT_THAT(Page(), HasSubstr("tacho_query_requests_total{code=\"OK\",method=\"Range\"} 1\n"));
  EXPECT_THAT(Page(), HasSubstr("tacho_query_active 0\n"));
}

TEST_F(QueryServiceTest, PackedItIsTheSameAnswer) {
  AddSeries(200'000);
  Start();
  request_.set_packed(true);
  std::vector<double> values;
  ASSERT_TRUE(Range(&values).ok());
  ASSERT_EQ(values.size(), 200'000u);
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], 0.5 * static_cast<double>(i));
}

TEST_F(QueryServiceTest, AnswersEveryMethod) {
  AddSeries(3);
  Start();
  PatientContext jobs_context, job_context, series_context, latest_context, events_context;
  v1::ListJobsResponse jobs;
  ASSERT_TRUE(stub_->ListJobs(&jobs_context, {}, &jobs).ok());
  ASSERT_EQ(jobs.jobs_size(), 1);
  v1::GetJobRequest get;
  get.set_job("j");
  v1::GetJobResponse job;
  ASSERT_TRUE(stub_->GetJob(&job_context, get, &job).ok());
  EXPECT_EQ(job.job().name(), "j");
  v1::ListSeriesRequest list;
  list.mutable_selector()->set_job("j");
  v1::ListSeriesResponse series;
  auto series_reader = stub_->ListSeries(&series_context, list);
  EXPECT_TRUE(series_reader->Read(&series));
  EXPECT_TRUE(series_reader->Finish().ok());
  v1::LatestRequest latest_request;
  latest_request.mutable_selector()->set_job("j");
  v1::LatestResponse latest;
  auto latest_reader = stub_->Latest(&latest_context, latest_request);
  ASSERT_TRUE(latest_reader->Read(&latest));
  EXPECT_EQ(latest.samples(0).value(), 1.0);
  EXPECT_TRUE(latest_reader->Finish().ok());
  v1::ListEventsRequest events_request;
  events_request.set_job("j");
  v1::ListEventsResponse events;
  auto events_reader = stub_->ListEvents(&events_context, events_request);
  EXPECT_FALSE(events_reader->Read(&events));
  EXPECT_TRUE(events_reader->Finish().ok());
}

TEST_F(QueryServiceTest, ComparesExportsAndFindsWhatIsNotFinite) {
  AddSeries(3);
  Start();
  PatientContext compare_context, export_context, first_context;
  v1::CompareRequest compare;
  compare.add_subjects()->set_job("j");
  v1::CompareResponse compared;
  auto compare_reader = stub_->Compare(&compare_context, compare);
  ASSERT_TRUE(compare_reader->Read(&compared));
  EXPECT_EQ(compared.subjects().subjects(0).last_step(), 2);
  ASSERT_TRUE(compare_reader->Read(&compared));
  EXPECT_THAT(compared.metric().columns(0).avg(), testing::ElementsAre(0, 0.5, 1));
  EXPECT_FALSE(compare_reader->Read(&compared));
  EXPECT_TRUE(compare_reader->Finish().ok());
  PatientContext packed_context;
  compare.set_packed(true);
  auto packed_reader = stub_->Compare(&packed_context, compare);
  v1::CompareResponse packed;
  ASSERT_TRUE(packed_reader->Read(&packed));
  EXPECT_EQ(packed.subjects().subjects(0).last_step(), 2);
  ASSERT_EQ(packed.more_size(), 1);
  EXPECT_EQ(packed.more(0).SerializeAsString(), compared.SerializeAsString());
  EXPECT_FALSE(packed_reader->Read(&packed));
  EXPECT_TRUE(packed_reader->Finish().ok());
  v1::ExportRequest whole;
  whole.mutable_selector()->set_job("j");
  v1::ExportResponse exported;
  auto export_reader = stub_->Export(&export_context, whole);
  while (export_reader->Read(&exported)) {
  }
  EXPECT_TRUE(export_reader->Finish().ok());
  EXPECT_EQ(exported.end().samples(), 3u);
  v1::FirstNonFiniteRequest first;
  first.mutable_selector()->set_job("j");
  v1::FirstNonFiniteResponse found;
  ASSERT_TRUE(stub_->FirstNonFinite(&first_context, first, &found).ok());
  EXPECT_EQ(found.samples_examined(), 3u);
}

TEST_F(QueryServiceTest, TellsWhatIsWrongWithARequest) {
  AddSeries(3);
  Start();
  request_.mutable_selector()->set_job("jj");
  EXPECT_EQ(Range().error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(Range().error_message(), HasSubstr("did you mean \"j\""));
  request_.mutable_selector()->set_job("");
  EXPECT_EQ(Range().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(QueryServiceTest, RefusesMoreThanItMayRunAndSaysWhenToRetry) {
  absl::Notification release;
  AddSeries(3);
  store_.Reopen();
  store_.env.OnRead([&] { release.WaitForNotification(); });
  Start();
  std::vector<std::thread> running;
  for (int i = 0; i < 2; ++i) running.emplace_back([&] { EXPECT_EQ(Range().error_message(), ""); });
  while (Page().find("tacho_query_active 2\n") == std::string::npos) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  const grpc::Status refused = Range();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(refused.error_message(), HasSubstr("query.max_concurrent"));
  EXPECT_THAT(refused.error_details(), HasSubstr("google.rpc.RetryInfo"));
  release.Notify();
  for (std::thread& thread : running) thread.join();
  store_.env.OnRead(nullptr);
  EXPECT_TRUE(Range().ok());
}

TEST_F(QueryServiceTest, ListsWhatIsAtWorkAndHowMuchItHasRead) {
  AddSeries(kMoreThanFlowControlHolds);
  options_.limits.set_max_watches(1);
  Start();
  EXPECT_THAT(service_->running().Oldest(10), testing::IsEmpty());
  {
    PatientContext range_context, watch_context;
    auto range = stub_->Range(&range_context, request_);
    v1::RangeResponse piece;
    ASSERT_TRUE(range->Read(&piece));  // It waits for a reader, as there are more than fit.
    v1::WatchRequest live;
    live.mutable_selector()->set_job("j");
    auto watch = stub_->Watch(&watch_context, live);
    v1::WatchResponse said;
    ASSERT_TRUE(watch->Read(&said));
    const std::vector<RunningQuery> running = service_->running().Oldest(10);
    ASSERT_EQ(running.size(), 2u);
    EXPECT_EQ(running[0].method, "Range");
    EXPECT_EQ(running[0].job, "j");
    EXPECT_THAT(running[0].peer, testing::StartsWith("ipv4:127.0.0.1:"));
    EXPECT_GT(running[0].samples_read, 0u);
    EXPECT_LT(running[0].samples_read, uint64_t{kMoreThanFlowControlHolds});
    EXPECT_FALSE(running[0].watch);
    EXPECT_EQ(running[1].method, "Watch");
    EXPECT_TRUE(running[1].watch);
    EXPECT_EQ(service_->running().Oldest(1).size(), 1u);
    range_context.TryCancel();
    watch_context.TryCancel();
    range->Finish();
    watch->Finish();
  }
  while (!service_->running().Oldest(1).empty()) absl::SleepFor(absl::Milliseconds(1));
}

TEST_F(QueryServiceTest, ACallThatHasEndedLeavesItsPlaceToTheNext) {
  AddSeries(30);
  options_.limits.set_max_concurrent(1);
  Start();
  for (int i = 0; i < 200; ++i) {
    const grpc::Status ranged = Range();
    ASSERT_TRUE(ranged.ok()) << i << ": " << ranged.error_message();
    PatientContext context;
    v1::GetJobRequest job;
    v1::GetJobResponse described;
    job.set_job("j");
    const grpc::Status got = stub_->GetJob(&context, job, &described);
    ASSERT_TRUE(got.ok()) << i << ": " << got.error_message();
  }
}

TEST_F(QueryServiceTest, AClientThatGoesAwayFreesItsSlot) {
  AddSeries(kMoreThanFlowControlHolds);
  options_.limits.set_max_concurrent(1);
  Start();
  {
    PatientContext context;
    auto reader = stub_->Range(&context, request_);
    v1::RangeResponse piece;
    ASSERT_TRUE(reader->Read(&piece));
    context.TryCancel();
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  request_.set_max_samples(1);  // Ends soon.
  EXPECT_EQ(RangeWhenFree().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(QueryServiceTest, AClientThatDoesNotReadIsCutOffAtTheDeadline) {
  AddSeries(kMoreThanFlowControlHolds);
  options_.limits.set_timeout(absl::ToInt64Nanoseconds(absl::Seconds(2)));
  options_.limits.set_max_concurrent(1);
  Start();
  PatientContext context;
  auto reader = stub_->Range(&context, request_);
  v1::RangeResponse piece;
  ASSERT_TRUE(reader->Read(&piece));
  request_.set_max_samples(1);
  EXPECT_EQ(RangeWhenFree().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  context.TryCancel();
  reader->Finish();
}

TEST_F(QueryServiceTest, StopsAQueryThatRunsTooLong) {
  AddSeries(1000);
  store_.Reopen();
  store_.env.OnRead([] { absl::SleepFor(absl::Milliseconds(300)); });
  options_.limits.set_timeout(absl::ToInt64Nanoseconds(absl::Milliseconds(200)));
  request_.set_max_points(10);
  Start();
  const grpc::Status status = Range();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("query.timeout"));
}

TEST_F(QueryServiceTest, LimitsAreReloaded) {
  AddSeries(3);
  Start();
  ASSERT_TRUE(Range().ok());
  config::v1::Collector config;
  *config.mutable_query() = options_.limits;
  config.mutable_query()->set_max_samples(2);
  (*service_->Prepare(config))();
  EXPECT_EQ(RangeWhenFree().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  config.mutable_query()->set_max_samples(3);
  config.mutable_query()->set_max_concurrent(0);
  (*service_->Prepare(config))();
  EXPECT_THAT(Range().error_message(), HasSubstr("query.max_concurrent"));
  config.mutable_query()->set_max_concurrent(1);
  (*service_->Prepare(config))();
  EXPECT_TRUE(RangeWhenFree().ok());
}

TEST_F(QueryServiceTest, DrainEndsWhatRunsAndRefusesMore) {
  AddSeries(1000);
  store_.Reopen();
  store_.env.OnRead([this] {
    while (!service_->draining()) absl::SleepFor(absl::Milliseconds(1));
  });
  request_.set_max_points(10);
  Start();
  grpc::Status status;
  std::thread client([&] { status = Range(); });
  while (Page().find("tacho_query_active 1\n") == std::string::npos) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  service_->Drain();
  client.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_details(), HasSubstr("google.rpc.RetryInfo"));
  EXPECT_THAT(Range().error_message(), HasSubstr("draining"));
  service_->Drain();
  store_.env.OnRead(nullptr);
}

}  // namespace
}  // namespace tacho::server::query
