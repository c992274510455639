// Tests what is read from event files: names, times, attempts, steps.
#include <gmock/gmock.h>

#include <cstdlib>
#include <limits>
#include <set>
#include <string>
#include <tuple>

#include "tests/agent/sources/tfevents/tfevents_source_fixture.h"

namespace tacho::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(TfeventsSourceTest, ScalarIsStoredWithItsNames) {
  WriteFile(Path("vision/a", kFirstFile),
            FileVersionRecord(1600000000) + ScalarRecord(1600000000.25, 7, "loss", 1.5f));
  Cycle();
  ASSERT_THAT(sink_.samples, SizeIs(1));
  const StoredSample& sample = sink_.samples[0];
  EXPECT_EQ(sample.job, "vision/a");
  EXPECT_EQ(sample.task, 0);
  EXPECT_EQ(sample.attempt, 0u);
  EXPECT_EQ(sample.host, "host-a");
  EXPECT_EQ(sample.metric, "loss");
  EXPECT_EQ(sample.label, "");
  EXPECT_EQ(sample.time_ns, 1600000000250000000);
  EXPECT_EQ(sample.step, 7);
  EXPECT_EQ(sample.value(), 1.5);
  EXPECT_EQ(sink_.layouts[0].series(0).metric().type(), v1::METRIC_TYPE_GAUGE);
}

TEST_F(TfeventsSourceTest, TimesThatNoHistoryHasAreCountedAndTheFileGoesOn) {
  WriteFile(Path("run", kFirstFile), ScalarRecord(0, 1, "a", 1) + ScalarRecord(-5, 2, "a", 2) +
                                         ScalarRecord(1e300, 3, "a", 3) +
                                         Record(BytesField(5, BytesField(1, SimpleValue("a", 4)))) +
                                         ScalarRecord(5, 5, "a", 5));
  Cycle();
  EXPECT_THAT(Stored("a"), ElementsAre(std::tuple(0u, 5, 5.0)));
  EXPECT_EQ(source_->stats().skipped.no_time, 4u);
}

TEST_F(TfeventsSourceTest, TagsThatNoMetricCanHaveAreCounted) {
  WriteFile(Path("run", kFirstFile),
            ScalarRecord(1, 1, "", 1) + ScalarRecord(1, 1, std::string(257, 'x'), 1) +
                ScalarRecord(1, 1, "bad\xff", 1) + ScalarRecord(1, 1, "line\n", 1) +
                ScalarRecord(1, 1, std::string(256, 'x'), 1));
  Cycle();
  EXPECT_THAT(sink_.samples, SizeIs(1));
  EXPECT_EQ(source_->stats().skipped.bad_tag, 4u);
}

TEST_F(TfeventsSourceTest, RestartedTrainerIsTheNextAttemptAndBothAreKept) {
  WriteFile(Path("run", kFirstFile),
            ScalarRecord(1, 0, "a", 1) + ScalarRecord(2, 10, "a", 2) + ScalarRecord(3, 20, "a", 3));
  WriteFile(Path("run", kSecondFile), ScalarRecord(4, 11, "a", 4) + ScalarRecord(5, 21, "a", 5));
  Cycle();
  EXPECT_THAT(Stored("a"),
              ElementsAre(std::tuple(0u, 0, 1.0), std::tuple(0u, 10, 2.0), std::tuple(0u, 20, 3.0),
                          std::tuple(1u, 11, 4.0), std::tuple(1u, 21, 5.0)));
}

TEST_F(TfeventsSourceTest, FileThatGoesOnWhereTheLastOneEndedIsTheSameAttempt) {
  WriteFile(Path("run", kFirstFile), ScalarRecord(1, 10, "a", 1));
  WriteFile(Path("run", kSecondFile), ScalarRecord(2, 11, "a", 2));
  Cycle();
  EXPECT_THAT(Stored("a"), ElementsAre(std::tuple(0u, 10, 1.0), std::tuple(0u, 11, 2.0)));
}

TEST_F(TfeventsSourceTest, AttemptsAreTheSameAfterARestartOfTheAgent) {
  WriteFile(Path("run", kFirstFile), ScalarRecord(1, 10, "a", 1));
  Cycle();
  Restart();
  WriteFile(Path("run", kSecondFile), ScalarRecord(2, 10, "a", 2));
  Cycle();
  AppendToFile(Path("run", kFirstFile), ScalarRecord(3, 11, "a", 3));
  Cycle();
  EXPECT_THAT(Stored("a"), ElementsAre(std::tuple(0u, 10, 1.0), std::tuple(1u, 10, 2.0),
                                       std::tuple(0u, 11, 3.0)));
}

TEST_F(TfeventsSourceTest, StepsThatGoBackInAFileStayInTheirAttempt) {
  WriteFile(Path("run", kFirstFile), ScalarRecord(1, 100, "batch", 1) +
                                         ScalarRecord(2, 1, "epoch", 2) +
                                         ScalarRecord(3, 50, "batch", 3));
  Cycle();
  for (const StoredSample& sample : sink_.samples) EXPECT_EQ(sample.attempt, 0u);
  EXPECT_THAT(sink_.samples, SizeIs(3));
}

TEST_F(TfeventsSourceTest, SessionStartThatPurgesBeginsTheNextAttempt) {
  WriteFile(Path("run", kFirstFile), SessionStartRecord(1, 0) + ScalarRecord(1, 1, "a", 1) +
                                         ScalarRecord(2, 5, "a", 2) + SessionStartRecord(3, 3) +
                                         ScalarRecord(4, 4, "a", 3) + SessionStartRecord(5, 6) +
                                         ScalarRecord(6, 6, "a", 4));
  Cycle();
  EXPECT_THAT(Stored("a"), ElementsAre(std::tuple(0u, 1, 1.0), std::tuple(0u, 5, 2.0),
                                       std::tuple(1u, 4, 3.0), std::tuple(1u, 6, 4.0)));
}

TEST_F(TfeventsSourceTest, EarlierFileThatArrivesLateDoesNotBeginAnAttempt) {
  WriteFile(Path("run", kSecondFile), ScalarRecord(2, 10, "a", 2));
  Cycle();
  WriteFile(Path("run", kFirstFile), ScalarRecord(1, 5, "a", 1));
  Cycle();
  EXPECT_THAT(Stored("a"), ElementsAre(std::tuple(0u, 10, 2.0), std::tuple(0u, 5, 1.0)));
}

TEST_F(TfeventsSourceTest, PatternNamesJobTaskAndAttempt) {
  config_.mutable_directories(0)->set_run_pattern(
      "(?P<job>[^/]+)/try(?P<attempt>\\d+)(/rank_(?P<task>\\d+))?");
  config_.mutable_directories(0)->set_job("vision/{job}");
  config_.mutable_directories(0)->set_task(3);
  Restart();
  WriteFile(Path("resnet/try2/rank_5", kFirstFile), ScalarRecord(1, 1, "a", 1));
  WriteFile(Path("resnet/try4", kFirstFile), ScalarRecord(1, 1, "b", 1));
  WriteFile(Path("resnet/try4", kSecondFile), ScalarRecord(1, 1, "b", 1));
  WriteFile(Path("other", kFirstFile), ScalarRecord(1, 1, "c", 1));
  WriteFile(Path("resnet/try99999999999", kFirstFile), ScalarRecord(1, 1, "d", 1));
  Cycle();
  ASSERT_THAT(sink_.samples, SizeIs(3));
  EXPECT_EQ(sink_.samples[0].job, "vision/resnet");
  for (const StoredSample& sample : sink_.samples) {
    EXPECT_EQ(sample.task, sample.metric == "a" ? 5 : 3);
    EXPECT_EQ(sample.attempt, sample.metric == "a" ? 2u : 4u)
        << "the pattern's, whatever the steps";
  }
  EXPECT_THAT(log_, SizeIs(2));
  EXPECT_EQ(source_->stats().unmatched_runs, 2u);
}

TEST_F(TfeventsSourceTest, ImpossibleConfigurationIsRefused) {
  const auto code = [this] { return TfeventsSource::Create(config_, {}).status().code(); };
  auto* directory = config_.mutable_directories(0);
  directory->set_job("{nobody}");
  EXPECT_EQ(code(), absl::StatusCode::kInvalidArgument);
  directory->set_job("{job");
  EXPECT_EQ(code(), absl::StatusCode::kInvalidArgument);
  directory->set_job("job}");
  EXPECT_EQ(code(), absl::StatusCode::kInvalidArgument);
  directory->set_job("{job}");
  directory->set_run_pattern("(");
  EXPECT_EQ(code(), absl::StatusCode::kInvalidArgument);
  directory->set_run_pattern("(?P<job>.*)");
  *config_.add_directories() = *directory;
  config_.mutable_directories(1)->set_path(directory->path() + "/");
  EXPECT_EQ(code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(TfeventsSourceTest, MetadataOfTheFirstValueHoldsForLaterOnesAlsoOverRestarts) {
  const std::string number = VarintField(1, 1) + FloatField(5, 2);
  const auto tensor = [&](absl::string_view tag, absl::string_view plugin) {
    return Record(SummaryEvent(1, 1, TensorValue(tag, number, plugin)));
  };
  const std::string path = Path("run", kFirstFile);
  WriteFile(path, tensor("curve", "pr_curves") + tensor("curve", "") + tensor("loss", "scalars") +
                      tensor("loss", "") + tensor("bare", ""));
  Cycle();
  Restart();
  AppendToFile(path, tensor("curve", "") + tensor("loss", ""));
  Cycle();
  EXPECT_THAT(Stored("curve"), IsEmpty());
  EXPECT_THAT(Stored("loss"), SizeIs(3));
  EXPECT_THAT(Stored("bare"), SizeIs(1));
  EXPECT_EQ(source_->stats().skipped.other, 1u);
}

TEST_F(TfeventsSourceTest, HistogramsAndLongRecordsAreSkippedAndCounted) {
  limits_.max_payload_bytes = 1000;
  Restart();
  WriteFile(Path("run", kFirstFile), Record(SummaryEvent(1, 1, HistogramValue("weights"))) +
                                         Record(BytesField(4, std::string(5000, 'g'))) +
                                         ScalarRecord(1, 1, "a", 1));
  Cycle();
  EXPECT_THAT(Stored("a"), SizeIs(1));
  EXPECT_EQ(source_->stats().skipped.other, 1u);
  EXPECT_EQ(source_->stats().skipped_records, 1u);
}

// Captured by others (see the folder's README); absent from the repository.
TEST_F(TfeventsSourceTest, EveryScalarOfRealLogsIsStored) {
  const char* shared = std::getenv("TACHO_SHARED_DATA");
  const fs::path data = shared != nullptr
                            ? fs::path(shared) / "tfevents"
                            : fs::path(TACHO_SOURCE_DIR) / ".." / "shared" / "data" / "tfevents";
  if (!fs::exists(data)) GTEST_SKIP() << data << " is not there";
  config_.mutable_directories(0)->set_path(data.string());
  Restart();
  Cycle();
  EXPECT_THAT(sink_.samples, SizeIs(84'335));
  EXPECT_EQ(source_->stats().skipped.no_time, 7u) << "guildai's samples have no wall time";
  EXPECT_EQ(source_->stats().dead_files, 0u);
  const std::set<StoredSample> distinct(sink_.samples.begin(), sink_.samples.end());
  EXPECT_THAT(distinct, SizeIs(84'335));
  Restart();
  Cycle();
  EXPECT_THAT(sink_.samples, SizeIs(84'335)) << "nothing is read twice";
}

}  // namespace
}  // namespace tacho::agent
