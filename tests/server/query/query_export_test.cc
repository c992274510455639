#include <gmock/gmock.h>

#include <bit>

#include "server/query/lists/export_query.h"
#include "tests/server/query/query_store_fixture.h"

namespace tacho::server::query {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class QueryExportTest : public QueryStoreFixture {
 protected:
  QueryExportTest() { request_.mutable_selector()->set_job("train"); }

  absl::Status Run() {
    messages_.clear();
    return Export(*store_, request_, limits_, absl::Now(), control_,
                  [this](const v1::ExportResponse& message) {
                    messages_.push_back(message);
                    return absl::OkStatus();
                  });
  }
  // What has been exported, as it was appended.
  TestJob Exported() const {
    TestJob job;
    std::vector<TestSeries> series;
    for (const v1::ExportResponse& message : messages_) {
      if (message.has_series()) {
        EXPECT_EQ(message.series().index(), series.size());
        series.emplace_back(message.series().series().metric().name(),
                            message.series().series().task());
      }
      if (!message.has_samples()) continue;
      const v1::Points& points = message.samples().points();
      for (int i = 0; i < points.values_size(); ++i) {
        job[series.at(message.samples().index())]
           [{points.times_unix_ns(i), points.attempts_size() > 0 ? points.attempts(i) : 0,
             points.steps_size() > 0 ? points.steps(i) : storage::kNoStep}] = points.values(i);
      }
    }
    return job;
  }
  void AppendEvent(const std::string& kind, int64_t time_ns, uint32_t attempt,
                   std::optional<int64_t> step) {
    storage::Event event;
    event.source = {"train", 0, attempt, "host-0"};
    event.time_ns = time_ns;
    event.step = step;
    event.kind = kind;
    absl::Notification done;
    store_->AppendEvent({}, event, [&](const absl::Status& status) {
      EXPECT_TRUE(status.ok()) << status;
      done.Notify();
    });
    done.WaitForNotification();
  }
  std::vector<std::string> Kinds() const {
    std::vector<std::string> kinds;
    for (const auto& message : messages_) {
      if (message.has_event()) kinds.push_back(message.event().kind());
    }
    return kinds;
  }
  static uint64_t Count(const TestJob& job) {
    uint64_t samples = 0;
    for (const auto& [series, all] : job) samples += all.size();
    return samples;
  }
  // Bits, so that NaN equals itself.
  static std::map<TestSeries, std::map<std::tuple<int64_t, uint32_t, int64_t>, uint64_t>> Bits(
      const TestJob& job) {
    std::map<TestSeries, std::map<std::tuple<int64_t, uint32_t, int64_t>, uint64_t>> bits;
    for (const auto& [series, samples] : job) {
      for (const auto& [key, value] : samples) bits[series][key] = std::bit_cast<uint64_t>(value);
    }
    return bits;
  }

  v1::ExportRequest request_;
  RangeLimits limits_;
  QueryControl control_;
  std::vector<v1::ExportResponse> messages_;
};

TEST_F(QueryExportTest, HasEverythingBitForBitAndSaysHowMuch) {
  MakeJob("train", {});
  AppendEvent("started", kTestBase, 0, std::nullopt);
  AppendEvent("ended", kTestBase + kTestSecond, 2, 7);
  ASSERT_TRUE(Run().ok());
  ASSERT_TRUE(messages_.front().has_job());
  EXPECT_EQ(messages_.front().job().job().name(), "train");
  EXPECT_EQ(messages_.front().job().attempts_size(), 3);
  EXPECT_THAT(Kinds(), ElementsAre("started", "ended"));
  EXPECT_EQ(Bits(Exported()), Bits(jobs_["train"]));
  ASSERT_TRUE(messages_.back().has_end());
  EXPECT_EQ(messages_.back().end().series(), 6u);
  EXPECT_EQ(messages_.back().end().events(), 2u);
  EXPECT_EQ(messages_.back().end().samples(), Count(jobs_["train"]));
}

TEST_F(QueryExportTest, TakesTimesStepsAndAttempts) {
  MakeJob("train", {});
  AppendEvent("before", kTestBase - 1, 0, 20);
  AppendEvent("stepless", kTestBase + 1, 0, std::nullopt);
  AppendEvent("inside", kTestBase + 1, 2, 150);
  request_.mutable_time()->set_begin_unix_ns(kTestBase);
  request_.mutable_steps()->set_begin(10);
  request_.mutable_steps()->set_end(300);
  request_.set_attempts(v1::ATTEMPTS_EFFECTIVE);
  ASSERT_TRUE(Run().ok());
  TestJob expected;
  for (const auto& [series, samples] : jobs_["train"]) {
    for (const auto& [key, value] : samples) {
      const auto [time, attempt, step] = key;
      if (step < 10 || step > 300 || IsSuperseded("train", attempt, step)) continue;
      expected[series][key] = value;
    }
  }
  EXPECT_EQ(Bits(Exported()), Bits(expected));
  EXPECT_THAT(Kinds(), ElementsAre("inside"));
}

TEST_F(QueryExportTest, TellsWhatIsWrong) {
  EXPECT_TRUE(absl::IsNotFound(Run()));
  MakeJob("train", {});
  request_.mutable_selector()->set_job("trai");
  EXPECT_THAT(Run().message(), HasSubstr("\"train\""));
  request_.mutable_selector()->set_job("");
  EXPECT_TRUE(absl::IsInvalidArgument(Run()));
  request_.mutable_selector()->set_job("train");
  limits_.max_samples = 10;
  EXPECT_TRUE(absl::IsResourceExhausted(Run()));
  EXPECT_THAT(Run().message(), HasSubstr("max_samples = 10"));
  limits_ = {.max_series = 2};
  EXPECT_THAT(Run().message(), HasSubstr("max_series = 2"));
  limits_ = {};
  control_.Cancel();
  EXPECT_TRUE(absl::IsCancelled(Run()));
}

}  // namespace
}  // namespace tacho::server::query
