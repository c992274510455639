#include "server/interop/intake.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "re2/re2.h"
#include "tests/server/interop/intake_fixture.h"

namespace tacho::server::interop {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST_F(IntakeTest, SamplesOfOneScrapeAreOneRow) {
  ForeignWrite write;
  for (int i = 0; i < 20; ++i) Add(&write, absl::StrCat("m", i), i);
  const auto outcome = Write(write);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.stored, 20u);
  EXPECT_EQ(StoredRows(), 1u);
  EXPECT_THAT(Stored("m7"), ElementsAre(Pair(0, 7)));
}

// Prometheus cuts its requests anywhere, not between two scrapes.
TEST_F(IntakeTest, ASeriesKeepsItsColumnWhereverRequestsAreCut) {
  ForeignWrite first;
  for (const char* name : {"a", "b", "c"}) Add(&first, name, 1, 0);
  ASSERT_TRUE(Write(first).status.ok());
  ForeignWrite second;
  Add(&second, "c", 2, 1000);
  Add(&second, "a", 3, 2000);
  Add(&second, "d", 4, 2000);
  ASSERT_TRUE(Write(second).status.ok());
  EXPECT_THAT(Stored("a"), ElementsAre(Pair(0, 1), Pair(2000, 3)));
  EXPECT_THAT(Stored("b"), ElementsAre(Pair(0, 1)));
  EXPECT_THAT(Stored("c"), ElementsAre(Pair(0, 1), Pair(1000, 2)));
  EXPECT_THAT(Stored("d"), ElementsAre(Pair(2000, 4)));
  EXPECT_EQ(store_->Stats().series, 4u);
}

TEST_F(IntakeTest, AfterARestartTheSeriesAreTheSame) {
  ForeignWrite write;
  for (const char* name : {"a", "b"}) Add(&write, name, 1);
  ASSERT_TRUE(Write(write).status.ok());
  Restart();
  ForeignWrite other;
  Add(&other, "b", 2, 1000);
  ASSERT_TRUE(Write(other).status.ok());
  EXPECT_EQ(store_->Stats().series, 2u);
  EXPECT_THAT(Stored("b"), ElementsAre(Pair(0, 1), Pair(1000, 2)));
}

TEST_F(IntakeTest, OneRequestMayRepeatASeries) {
  ForeignWrite write;
  for (const int ms : {0, 1000, 2000}) {
    for (const char* name : {"a", "b"}) Add(&write, name, ms, ms);
  }
  ASSERT_TRUE(Write(write).status.ok());
  EXPECT_EQ(StoredRows(), 3u) << "one sheet for both";
  EXPECT_THAT(Stored("b"), ElementsAre(Pair(0, 0), Pair(1000, 1000), Pair(2000, 2000)));
}

// As after an outage of the sender, or in a backfill.
TEST_F(IntakeTest, SeriesThatComeOneByOneShareTheRowsOfTheirTimes) {
  constexpr int kTimes = 500;
  ForeignWrite write;
  for (const char* name : {"a", "b", "c"}) {
    Add(&write, name, 0, 0);
    for (int i = 1; i < kTimes; ++i) write.AddSample(ingest::kNowNs + i * 1'000'000, i);
  }
  // One whose times are in another order.
  Add(&write, "d", 0, 0);
  write.AddSample(ingest::kNowNs + 400 * int64_t{1'000'000}, 1);
  write.AddSample(ingest::kNowNs + 250 * int64_t{1'000'000}, 2);
  ASSERT_TRUE(Write(write).status.ok());
  EXPECT_EQ(StoredRows(), static_cast<uint64_t>(kTimes));
  EXPECT_EQ(Stored("c").size(), static_cast<size_t>(kTimes));
  EXPECT_THAT(Stored("d"), ElementsAre(Pair(0, 0), Pair(250, 2), Pair(400, 1)));
}

// Each sample would take a row of 64 columns.
TEST_F(IntakeTest, TooManyDifferentTimesOfSeriesOfOneSheetAreTooLarge) {
  const auto times = [this](int samples) {
    ForeignWrite write;
    for (int i = 0; i < 64; ++i) {
      Add(&write, absl::StrCat("m", i), 0, 0);
      for (int j = 1; j < samples; ++j) write.AddSample(ingest::kNowNs + i * 10'000 + j, j);
    }
    return Write(write).status;
  };
  EXPECT_TRUE(times(100).ok());
  const absl::Status refused = times(2000);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("fewer samples a request"));
  EXPECT_EQ(StoredRows(), 64u * 99 + 1) << "nothing of it";
}

TEST_F(IntakeTest, TwoKeysOfOneSeriesAreOneSeries) {
  ForeignWrite write;
  Add(&write, "a", 1);
  std::string& key = write.texts.emplace_back();
  AppendLabel("job", "vision", &key);
  AppendLabel("__name__", "a", &key);
  AppendLabel("instance", "h1:1", &key);
  write.AddSeries(key);
  write.AddSample(ingest::kNowNs + 5'000'000, 2);
  ASSERT_TRUE(Write(write).status.ok());
  EXPECT_EQ(store_->Stats().series, 1u);
  EXPECT_THAT(Stored("a"), ElementsAre(Pair(0, 1), Pair(5, 2)));
}

TEST_F(IntakeTest, TheEndOfASeriesIsTakenAndIsNoValue) {
  ForeignWrite write;
  Add(&write, "a", 1, 0);
  Add(&write, "a", StaleMarker(), 1000);
  const auto outcome = Write(write);
  EXPECT_EQ(outcome.stored, 2u);
  EXPECT_EQ(outcome.refused, 0u);
  EXPECT_THAT(Stored("a"), ElementsAre(Pair(0, 1)));
}

TEST_F(IntakeTest, WhatIsTooOldOrAheadIsRefusedAndTheRestIsStored) {
  ForeignWrite write;
  Add(&write, "a", 1, 0);
  Add(&write, "b", 2, -25 * 3600 * 1000);
  Add(&write, "c", 3, 11 * 60 * 1000);
  const auto outcome = Write(write);
  ASSERT_TRUE(outcome.status.ok());
  EXPECT_EQ(outcome.stored, 1u);
  EXPECT_EQ(outcome.refused, 2u);
  EXPECT_THAT(outcome.refusal, HasSubstr("ahead of the collector's clock"));
  EXPECT_THAT(Stored("a"), ElementsAre(Pair(0, 1)));
  EXPECT_THAT(Stored("b"), IsEmpty());
  EXPECT_EQ(limiting_.job_refusals().SamplesOf("vision"), 2u);
}

TEST_F(IntakeTest, WhatALimitRefusesIsCountedAndTheRestIsStored) {
  store_.Limit([](storage::LimitPolicy::Options* options) { options->series.series_per_job = 2; });
  ForeignWrite write;
  for (const char* name : {"a", "b", "c", "d"}) Add(&write, name, 1);
  for (int round = 0; round < 2; ++round) {
    const auto outcome = Write(write);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.stored, 2u);
    EXPECT_EQ(outcome.refused, 2u);
    EXPECT_THAT(outcome.refusal, HasSubstr("series_per_job"));
  }
  EXPECT_THAT(Stored("a"), ElementsAre(Pair(0, 1)));
  EXPECT_THAT(Stored("c"), IsEmpty());
}

TEST_F(IntakeTest, ALabelThatIsTooLongCostsItsSeriesAlone) {
  ForeignWrite write;
  Add(&write, "a", 1);
  std::string& key = write.texts.emplace_back();
  AppendLabel("__name__", "b", &key);
  AppendLabel("instance", "h1:1", &key);
  AppendLabel("job", "vision", &key);
  AppendLabel("long", std::string(2000, 'x'), &key);
  write.AddSeries(key);
  write.AddSample(ingest::kNowNs, 2);
  Add(&write, "c", 3);
  const auto outcome = Write(write);
  EXPECT_EQ(outcome.stored, 2u);
  EXPECT_EQ(outcome.refused, 1u);
  EXPECT_THAT(outcome.refusal, HasSubstr("at most 1024"));
  EXPECT_THAT(Stored("c"), ElementsAre(Pair(0, 3)));
}

TEST_F(IntakeTest, AJobOfSomebodyElseRefusesTheWholeRequest) {
  const auto rights = std::make_shared<const security::Rights>(security::Rights::Options{
      .name = "t", .write = true, .jobs = std::make_shared<const RE2>("^vision$")});
  ForeignWrite write;
  Add(&write, "a", 1);
  Add(&write, "a", 1, 0, "speech");
  EXPECT_TRUE(absl::IsPermissionDenied(Write(write, rights).status));
  EXPECT_EQ(StoredRows(), 0u);
  // Also where its place is known.
  ASSERT_TRUE(Write(write).status.ok());
  const size_t rows = StoredRows();
  EXPECT_TRUE(absl::IsPermissionDenied(Write(write, rights).status));
  EXPECT_EQ(StoredRows(), rows);
}

TEST_F(IntakeTest, AStoreThatTakesNothingIsAFailureOfTheWhole) {
  ForeignWrite write;
  Add(&write, "a", 1);
  ASSERT_TRUE(Write(write).status.ok());
  ASSERT_TRUE(store_->Close().ok());
  EXPECT_TRUE(absl::IsUnavailable(Write(write).status));
}

// No commit goes through.
class HeldIntakeTest : public IntakeTest {
  void SetUp() override {}
};

TEST_F(HeldIntakeTest, AFullQueueIsNoRequestThatIsTooLarge) {
  store_.FillQueue();
  ForeignWrite write;
  Add(&write, "a", 1);
  const auto outcome = Write(write);
  EXPECT_TRUE(absl::IsUnavailable(outcome.status)) << outcome.status;
}

TEST_F(IntakeTest, ASeriesThatIsNoneIsCountedEachTimeAndMakesNoJob) {
  ForeignWrite write;
  for (int i = 0; i < 2; ++i) {
    std::string& key = write.texts.emplace_back();
    AppendLabel("job", "vision", &key);
    write.AddSeries(key);
    write.AddSample(ingest::kNowNs, i);
  }
  Add(&write, "a", 1);
  const auto outcome = Write(write);
  EXPECT_EQ(outcome.stored, 1u);
  EXPECT_EQ(outcome.refused, 2u);
  EXPECT_THAT(outcome.refusal, HasSubstr("no metric name"));
  EXPECT_TRUE(limiting_.job_refusals().Of("").empty());
}

TEST_F(IntakeTest, AJobThatHasExpiredBeginsAnew) {
  ForeignWrite write;
  Add(&write, "a", 1);
  ASSERT_TRUE(Write(write).status.ok());
  store_.ExpireJobs();
  const auto outcome = Write(write);
  EXPECT_TRUE(absl::IsUnavailable(outcome.status)) << outcome.status;
  EXPECT_TRUE(Write(write).status.ok()) << "the sender sends again";
  EXPECT_THAT(Stored("a"), ElementsAre(Pair(0, 1)));
}

TEST_F(IntakeTest, TypesComeFromNamesAndFromMetadata) {
  ForeignWrite metadata;
  metadata.metrics.push_back(
      {{"temperature", storage::MetricType::kCounter, "Cel", "Help."}, true});
  metadata.metrics.push_back({{"odd_total", storage::MetricType::kGauge, "", ""}, true});
  Write(metadata);
  ForeignWrite write;
  for (const char* name :
       {"requests_total", "latency_bucket", "loss", "temperature", "odd_total"}) {
    Add(&write, name, 1);
  }
  ASSERT_TRUE(Write(write).status.ok());
  std::map<std::string, storage::Metric> metrics;
  const auto found = store_->FindSeries({.job = "vision"}, 100);
  ASSERT_TRUE(found.ok()) << found.status();
  for (const auto& series : *found) {
    metrics[series->metric->name] = *series->metric;
  }
  EXPECT_EQ(metrics["requests_total"].type, storage::MetricType::kCounter);
  EXPECT_EQ(metrics["latency_bucket"].type, storage::MetricType::kHistogram);
  EXPECT_EQ(metrics["loss"].type, storage::MetricType::kGauge);
  EXPECT_EQ(metrics["odd_total"].type, storage::MetricType::kGauge) << "what is told counts";
  EXPECT_EQ(metrics["temperature"],
            (storage::Metric{"temperature", storage::MetricType::kCounter, "Cel", "Help."}));
}

TEST_F(IntakeTest, ASenderAboveItsRateIsAskedToComeLater) {
  config::v1::Collector config;
  *config.mutable_quotas() = ingest::SmallQuotas();
  config.mutable_quotas()->set_agent_samples_per_second(10);
  auto apply = quotas_.Prepare(config);
  ASSERT_TRUE(apply.ok()) << apply.status();
  (*apply)();
  ForeignWrite write;
  for (int i = 0; i < 50; ++i) Add(&write, absl::StrCat("m", i), i);
  EXPECT_TRUE(Write(write).status.ok()) << "what has come is taken";
  const auto outcome = Write(write);
  EXPECT_THAT(outcome.status.message(), HasSubstr("quotas.agent_samples_per_second"));
}

TEST_F(IntakeTest, WhileTheCollectorDrainsItIsClosed) {
  EXPECT_TRUE(intake_->CheckOpen().ok());
  admission_.StartDraining();
  EXPECT_TRUE(absl::IsUnavailable(intake_->CheckOpen()));
}

TEST_F(IntakeTest, AJobOrHostThatBreaksTheRulesCostsItsSeriesAlone) {
  ForeignWrite write;
  Add(&write, "a", 1);
  Add(&write, "a", 2, 0, std::string(300, 'j'));
  Add(&write, "a", 3, 0, "vision", "\xff:1");
  const auto outcome = Write(write);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.stored, 1u);
  EXPECT_EQ(outcome.refused, 2u);
  EXPECT_THAT(outcome.refusal, HasSubstr("source"));
  EXPECT_THAT(Stored("a"), ElementsAre(Pair(0, 1)));
}

TEST_F(IntakeTest, SheetsKeepToTheLimitsOnLayouts) {
  config::v1::Collector config;
  *config.mutable_ingest() = ingest::SmallLimits();
  config.mutable_ingest()->set_max_series_per_layout(3);
  auto apply = limits_.Prepare(config);
  ASSERT_TRUE(apply.ok());
  (*apply)();
  ForeignWrite write;
  for (int i = 0; i < 10; ++i) Add(&write, absl::StrCat("m", i), i);
  const auto outcome = Write(write);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.stored, 10u);
  EXPECT_THAT(Stored("m9"), ElementsAre(Pair(0, 9)));
}

TEST_F(IntakeTest, ANewMappingHoldsForSeriesThatAreKnown) {
  ForeignWrite write;
  Add(&write, "a", 1);
  ASSERT_TRUE(Write(write).status.ok());
  config::v1::Collector config;
  auto* const rule = config.mutable_interop()->add_mapping();
  rule->set_job("new/{job}");
  rule->set_host("{instance}");
  rule->set_metric("{__name__}");
  auto apply = intake_->Prepare(config);
  ASSERT_TRUE(apply.ok());
  (*apply)();
  ASSERT_TRUE(Write(write).status.ok());
  EXPECT_THAT(Stored("a", "new/vision"), ElementsAre(Pair(0, 1)));
}

}  // namespace
}  // namespace tacho::server::interop
