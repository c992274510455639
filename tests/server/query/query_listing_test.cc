#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "server/query/lists/event_listing.h"
#include "server/query/lists/job_detail.h"
#include "server/query/lists/job_listing.h"
#include "server/query/lists/listings.h"
#include "tests/server/memory_store.h"

namespace tacho::server::query {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000'000;
const absl::Time kNow = absl::FromUnixSeconds(1'000'000);

class QueryListingTest : public testing::Test {
 protected:
  // A job whose newest sample is so old.
  storage::SeriesPtr Job(const std::string& name, int64_t seconds_ago) {
    auto series = store_.AddSeries(name, MetricNamed("loss"), 0, "h");
    Sample(series, seconds_ago);
    return series;
  }
  void Sample(const storage::SeriesPtr& series, int64_t seconds_ago, uint32_t attempt = 0) {
    store_.AddSamples(series, {{(1'000'000 - seconds_ago) * kSecond, 1, attempt, 1}});
  }
  absl::StatusOr<std::vector<std::string>> Page() {
    v1::ListJobsResponse response;
    absl::Status status = query::ListJobs(store_, jobs_, kNow, control_, &response);
    if (!status.ok()) return status;
    jobs_.set_page_token(response.next_page_token());
    std::vector<std::string> names;
    for (const v1::Job& job : response.jobs()) names.push_back(job.name());
    return names;
  }
  template <typename Response>
  auto Into(std::vector<Response>* pieces) {
    return [pieces](const Response& piece) {
      pieces->push_back(piece);
      return absl::OkStatus();
    };
  }

  MemoryStore store_;
  QueryControl control_;
  v1::ListJobsRequest jobs_;
};

TEST_F(QueryListingTest, ListsActiveJobsByNameThenTheNewestActivity) {
  Job("old", 90'000);
  Job("recent", 4'000);
  Job("b-active", 1);
  Job("a-active", 200);
  EXPECT_THAT(*Page(), ElementsAre("a-active", "b-active", "recent", "old"));
  EXPECT_EQ(jobs_.page_token(), "");
}

TEST_F(QueryListingTest, PagesMissNoJobThatIsSeenMeanwhile) {
  auto a = Job("a", 10), b = Job("b", 20), c = Job("c", 30);
  Job("d", 4'000);
  Job("e", 5'000);
  jobs_.set_page_size(2);
  EXPECT_THAT(*Page(), ElementsAre("a", "b"));
  for (const auto& series : {a, b, c}) Sample(series, 0);
  EXPECT_THAT(*Page(), ElementsAre("c", "d"));
  EXPECT_THAT(*Page(), ElementsAre("e"));
  EXPECT_EQ(jobs_.page_token(), "");
}

TEST_F(QueryListingTest, SelectsByPatternAndByActivity) {
  Job("train-1", 10);
  Job("train-2", 4'000);
  Job("x-train-3", 10);
  jobs_.set_name_pattern("train-.*");
  EXPECT_THAT(*Page(), ElementsAre("train-1", "train-2")) << "anchored";
  jobs_.set_seen_within_ns(60 * kSecond);
  EXPECT_THAT(*Page(), ElementsAre("train-1"));
}

TEST_F(QueryListingTest, RefusesWhatMakesNoSense) {
  const auto refused = [&](const char* field) {
    EXPECT_THAT(std::string(Page().status().message()), HasSubstr(field));
    EXPECT_EQ(Page().status().code(), absl::StatusCode::kInvalidArgument);
    jobs_.Clear();
  };
  jobs_.set_name_pattern("(");
  refused("name_pattern");
  jobs_.set_page_size(kMaxPageSize + 1);
  refused("page_size");
  jobs_.set_seen_within_ns(-1);
  refused("seen_within_ns");
  for (const char* token : {"x", "!!!", "MSwy", "YSxiLGM"}) {
    jobs_.set_page_token(token);
    refused("page_token");
  }
}

TEST_F(QueryListingTest, TakesASeenWithinOfAllOfTime) {
  Job("a", 999'999);
  jobs_.set_seen_within_ns(std::numeric_limits<int64_t>::max());
  EXPECT_THAT(*Page(), ElementsAre("a"));
}

TEST_F(QueryListingTest, GetJobNamesTheNearestOfAnUnknownJob) {
  Job("bert-large", 1);
  v1::GetJobRequest request;
  v1::GetJobResponse response;
  request.set_job("bert-larg");
  const absl::Status status = query::GetJob(store_, request, kNow, control_, &response);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("bert-large"));
  request.set_job("bert-large");
  EXPECT_TRUE(query::GetJob(store_, request, kNow, control_, &response).ok());
  EXPECT_EQ(response.job().last_seen_unix_ns(), 999'999 * kSecond);
  request.clear_job();
  EXPECT_EQ(query::GetJob(store_, request, kNow, control_, &response).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(QueryListingTest, ListSeriesHonoursTheAttempt) {
  auto zero = Job("j", 5);
  auto one = store_.AddSeries("j", MetricNamed("loss"), 1, "h");
  Sample(one, 4, /*attempt=*/1);
  store_.AddSeries("j", MetricNamed("loss"), 2, "h");
  v1::ListSeriesRequest request;
  request.mutable_selector()->set_job("j");
  std::vector<v1::ListSeriesResponse> pieces;
  ASSERT_TRUE(query::ListSeries(store_, request, 10, control_, Into(&pieces)).ok());
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].series_size(), 3);
  auto* matcher = request.mutable_selector()->add_matchers();
  matcher->set_label("attempt");
  matcher->set_op(v1::Matcher::OP_EQUAL);
  matcher->set_value("1");
  pieces.clear();
  ASSERT_TRUE(query::ListSeries(store_, request, 10, control_, Into(&pieces)).ok());
  ASSERT_EQ(pieces[0].series_size(), 1);
  EXPECT_EQ(pieces[0].series(0).task(), 1u);
}

TEST_F(QueryListingTest, ListSeriesSendsManyInPieces) {
  for (uint32_t task = 0; task < 5'000; ++task) {
    store_.AddSeries("j", MetricNamed("loss"), task, std::string(100, 'h'));
  }
  v1::ListSeriesRequest request;
  request.mutable_selector()->set_job("j");
  std::vector<v1::ListSeriesResponse> pieces;
  ASSERT_TRUE(query::ListSeries(store_, request, 10'000, control_, Into(&pieces)).ok());
  EXPECT_GT(pieces.size(), 2u);
  int listed = 0;
  for (const auto& piece : pieces) {
    EXPECT_LT(piece.ByteSizeLong(), 2 * kListMessageBytes);
    listed += piece.series_size();
  }
  EXPECT_EQ(listed, 5'000);
  EXPECT_EQ(query::ListSeries(store_, request, 4'999, control_, Into(&pieces)).code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(QueryListingTest, LatestTakesTheNewestSampleOfTheAttempt) {
  auto series = Job("j", 5);
  Sample(series, 3, /*attempt=*/1);
  store_.AddSeries("j", MetricNamed("empty"), 0, "h");
  v1::LatestRequest request;
  request.mutable_selector()->set_job("j");
  std::vector<v1::LatestResponse> pieces;
  ASSERT_TRUE(query::Latest(store_, request, 10, control_, Into(&pieces)).ok());
  ASSERT_EQ(pieces[0].samples_size(), 1);
  EXPECT_EQ(pieces[0].samples(0).attempt(), 1u);
  auto* matcher = request.mutable_selector()->add_matchers();
  matcher->set_label("attempt");
  matcher->set_op(v1::Matcher::OP_NOT_EQUAL);
  matcher->set_value("1");
  pieces.clear();
  ASSERT_TRUE(query::Latest(store_, request, 10, control_, Into(&pieces)).ok());
  EXPECT_EQ(pieces[0].samples(0).attempt(), 0u);
  EXPECT_EQ(pieces[0].samples(0).time_unix_ns(), 999'995 * kSecond);
  EXPECT_EQ(pieces[0].samples(0).step(), 1);
}

TEST_F(QueryListingTest, ListsEventsByTimeAndKind) {
  Job("j", 5);
  const auto event = [](int64_t time_ns, const char* kind) {
    storage::Event made;
    made.source.job = "j";
    made.time_ns = time_ns;
    made.kind = kind;
    return made;
  };
  store_.AddEvent(event(10, "compiled"));
  store_.AddEvent(event(20, "checkpoint_saved"));
  store_.AddEvent(event(30, "checkpoint_saved"));
  v1::ListEventsRequest request;
  request.set_job("j");
  request.set_kind("checkpoint_saved");
  request.mutable_time()->set_begin_unix_ns(0);
  request.mutable_time()->set_end_unix_ns(30);
  std::vector<v1::ListEventsResponse> pieces;
  ASSERT_TRUE(query::ListEvents(store_, request, control_, Into(&pieces)).ok());
  ASSERT_EQ(pieces.size(), 1u);
  ASSERT_EQ(pieces[0].events_size(), 1);
  EXPECT_EQ(pieces[0].events(0).time_unix_ns(), 20);
  EXPECT_FALSE(pieces[0].events(0).has_step());
  request.set_job("k");
  EXPECT_EQ(query::ListEvents(store_, request, control_, Into(&pieces)).code(),
            absl::StatusCode::kNotFound);
}

TEST_F(QueryListingTest, EndsWithTheErrorOfTheSender) {
  Job("j", 5);
  v1::LatestRequest request;
  request.mutable_selector()->set_job("j");
  const auto gone = [](const v1::LatestResponse&) { return absl::CancelledError("gone"); };
  EXPECT_EQ(query::Latest(store_, request, 10, control_, gone).code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace tacho::server::query
