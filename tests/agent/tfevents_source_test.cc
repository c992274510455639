#include "agent/sources/tfevents_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/sources/tfevents_delivery.h"
#include "tests/agent/recording_sink.h"
#include "tests/support/tfevents_writer.h"

namespace tacho::agent {
namespace {

namespace fs = std::filesystem;
using namespace ::tacho::testing;  // NOLINT: the writer's functions are this test's vocabulary.
using ::tacho::agent::testing::RecordingSink;
using ::tacho::agent::testing::StoredSample;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kFirstFile[] = "events.out.tfevents.1600000000.host.1.0";
constexpr char kSecondFile[] = "events.out.tfevents.1600001000.host.2.0";

class TfeventsSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ =
        fs::path(::testing::TempDir()) /
        absl::StrCat("tfevents_", ::testing::UnitTest::GetInstance()->current_test_info()->name(),
                     "_", ::getpid());
    fs::remove_all(root_);
    fs::create_directories(root_);
    config_.set_poll_interval(absl::ToInt64Nanoseconds(absl::Seconds(2)));
    auto* directory = config_.add_directories();
    directory->set_path(root_.string());
    directory->set_run_pattern("(?P<job>.*)");
    directory->set_job("{job}");
    Restart();
  }
  void TearDown() override { fs::remove_all(root_); }

  // A new source over the same checkpoints, as after a restart of the agent.
  void Restart() {
    TfeventsOptions options;
    options.host = "host-a";
    options.log = [this](absl::string_view line) { log_.emplace_back(line); };
    options.limits = limits_;
    options.turn = turn_;
    auto source = TfeventsSource::Create(config_, std::move(options));
    ASSERT_TRUE(source.ok()) << source.status();
    source_ = *std::move(source);
  }

  // One cycle: until the source wants to sleep.
  void Cycle() {
    now_ += absl::Seconds(3);
    for (int turn = 0; turn < 100'000; ++turn) {
      if (source_->Poll(now_, &sink_) > now_) return;
    }
    FAIL() << "the source does not come to rest";
  }

  std::string Path(absl::string_view run, absl::string_view file) const {
    return absl::StrCat(root_.string(), "/", run, "/", file);
  }

  // (attempt, step, value) of a tag, in the order of storing.
  std::vector<std::tuple<uint32_t, int64_t, double>> Stored(absl::string_view tag) const {
    std::vector<std::tuple<uint32_t, int64_t, double>> out;
    for (const StoredSample& sample : sink_.samples) {
      if (sample.metric == tag) out.emplace_back(sample.attempt, sample.step, sample.value());
    }
    return out;
  }

  fs::path root_;
  config::v1::Agent::Tfevents config_;
  TfeventsChunkLimits limits_;
  absl::Duration turn_ = absl::Milliseconds(50);
  RecordingSink sink_;
  std::vector<std::string> log_;
  std::unique_ptr<TfeventsSource> source_;
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
};

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

TEST_F(TfeventsSourceTest, FileThatGrowsByteByByteGivesEachValueOnceAndNeverAWrongOne) {
  std::string bytes = FileVersionRecord(1);
  for (int step = 0; step < 4; ++step) {
    bytes += ScalarRecord(10 + step, step, "loss", static_cast<float>(step));
  }
  const std::string path = Path("run", kFirstFile);
  WriteFile(path, "");
  for (char byte : bytes) {
    AppendToFile(path, absl::string_view(&byte, 1));
    Cycle();
  }
  EXPECT_THAT(Stored("loss"), ElementsAre(std::tuple(0u, 0, 0.0), std::tuple(0u, 1, 1.0),
                                          std::tuple(0u, 2, 2.0), std::tuple(0u, 3, 3.0)));
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(TfeventsSourceTest, EmptyAndHeaderOnlyAndForeignFilesAreQuiet) {
  WriteFile(Path("run", kFirstFile), "");
  WriteFile(Path("run", kSecondFile), FileVersionRecord(1));
  WriteFile(Path("run", "events.out.tfevents.1.host.profile-empty"), "not an event file");
  WriteFile(Path("run", "checkpoint.txt"), "not an event file");
  Cycle();
  EXPECT_THAT(sink_.samples, IsEmpty());
  EXPECT_THAT(log_, IsEmpty());
}

// Every byte of a small file, flipped: what is stored is a beginning of what the file said.
TEST_F(TfeventsSourceTest, DamageAtAnyByteEndsTheFileAndNeverGivesAWrongValue) {
  const std::vector<std::string> records = {FileVersionRecord(1), ScalarRecord(2, 1, "a", 1),
                                            ScalarRecord(3, 2, "a", 2), ScalarRecord(4, 3, "a", 3)};
  std::string good;
  for (const std::string& record : records) good += record;
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    WriteFile(Path(absl::StrCat("run", at), kFirstFile), bad);
  }
  Cycle();
  std::map<std::string, std::vector<double>> by_run;
  for (const StoredSample& sample : sink_.samples) by_run[sample.job].push_back(sample.value());
  size_t begin = 0;
  for (size_t damaged = 0; damaged < records.size(); ++damaged) {
    for (size_t at = begin; at < begin + records[damaged].size(); ++at) {
      std::vector<double> want;
      for (size_t i = 1; i < damaged; ++i) want.push_back(static_cast<double>(i));
      EXPECT_EQ(by_run[absl::StrCat("run", at)], want) << "byte " << at;
    }
    begin += records[damaged].size();
  }
  EXPECT_EQ(source_->stats().dead_files, good.size());
}

TEST_F(TfeventsSourceTest, DeadFileIsSaidOnceWithItsOffsetAndStaysDeadOverRestarts) {
  const std::string good = FileVersionRecord(1) + ScalarRecord(2, 1, "a", 1);
  const std::string path = Path("run", kFirstFile);
  WriteFile(path, good + "this is no record.");
  Cycle();
  ASSERT_THAT(log_, SizeIs(1));
  EXPECT_THAT(log_[0], HasSubstr(kFirstFile));
  EXPECT_THAT(log_[0], HasSubstr(absl::StrCat("at byte ", good.size())));
  AppendToFile(path, ScalarRecord(3, 2, "a", 2));
  Cycle();
  Restart();
  Cycle();
  EXPECT_THAT(log_, SizeIs(1));
  EXPECT_THAT(Stored("a"), SizeIs(1));
}

TEST_F(TfeventsSourceTest, NanWallTimeAndUndecodableEventKillTheFile) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  WriteFile(Path("nan", kFirstFile), ScalarRecord(nan, 1, "a", 1) + ScalarRecord(1, 2, "a", 2));
  WriteFile(Path("junk", kFirstFile), Record("\xff\xff") + ScalarRecord(1, 2, "a", 2));
  Cycle();
  EXPECT_THAT(sink_.samples, IsEmpty());
  EXPECT_EQ(source_->stats().dead_files, 2u);
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

TEST_F(TfeventsSourceTest, RecordLongerThanAChunkIsRead) {
  limits_.chunk_bytes = 64;
  Restart();
  std::string bytes = FileVersionRecord(1);
  for (int i = 0; i < 20; ++i) {
    bytes += Record(BytesField(4, std::string(static_cast<size_t>(i) * 37, 'g')));
    bytes += ScalarRecord(i + 1, i, "a", static_cast<float>(i));
  }
  WriteFile(Path("run", kFirstFile), bytes);
  Cycle();
  EXPECT_THAT(Stored("a"), SizeIs(20));
}

TEST_F(TfeventsSourceTest, FileThatIsReplacedIsReadFromItsBeginning) {
  const std::string path = Path("run", kFirstFile);
  WriteFile(path, FileVersionRecord(1) + ScalarRecord(2, 1, "a", 1) + ScalarRecord(3, 2, "a", 2));
  Cycle();
  // Shorter than what was read, and longer than it.
  WriteFile(path, FileVersionRecord(10) + ScalarRecord(11, 1, "a", 3));
  Cycle();
  WriteFile(path,
            FileVersionRecord(20) + ScalarRecord(21, 1, "a", 4) + ScalarRecord(22, 2, "a", 5));
  Cycle();
  EXPECT_THAT(Stored("a"),
              ElementsAre(std::tuple(0u, 1, 1.0), std::tuple(0u, 2, 2.0), std::tuple(1u, 1, 3.0),
                          std::tuple(2u, 1, 4.0), std::tuple(2u, 2, 5.0)));
  EXPECT_EQ(source_->stats().replaced_files, 2u);
}

// As copying tools do it: cut to nothing, then written again.
TEST_F(TfeventsSourceTest, FileThatShrinksAndGrowsBackGoesOnWhereItWas) {
  const std::string path = Path("run", kFirstFile);
  const std::string first = FileVersionRecord(1) + ScalarRecord(2, 1, "a", 1);
  const std::string second = ScalarRecord(3, 2, "a", 2);
  WriteFile(path, first);
  Cycle();
  WriteFile(path, "");
  Cycle();
  WriteFile(path, first.substr(0, first.size() - 5));
  Cycle();
  WriteFile(path, first + second);
  Cycle();
  EXPECT_THAT(Stored("a"), ElementsAre(std::tuple(0u, 1, 1.0), std::tuple(0u, 2, 2.0)));
  EXPECT_THAT(log_, ElementsAre(HasSubstr("shorter")));
}

TEST_F(TfeventsSourceTest, DeletedFileIsForgotten) {
  WriteFile(Path("run", kFirstFile), ScalarRecord(2, 1, "a", 1));
  Cycle();
  EXPECT_THAT(sink_.checkpoints, SizeIs(1));
  fs::remove_all(root_ / "run");
  Cycle();
  EXPECT_THAT(sink_.checkpoints, IsEmpty());
  EXPECT_THAT(log_, IsEmpty());
}

// An unmounted log directory must not make the agent read everything again when it comes back.
TEST_F(TfeventsSourceTest, MissingLogDirectoryForgetsNothing) {
  WriteFile(Path("run", kFirstFile), ScalarRecord(2, 1, "a", 1));
  Cycle();
  fs::rename(root_, root_.string() + ".away");
  Cycle();
  fs::rename(root_.string() + ".away", root_);
  Cycle();
  EXPECT_THAT(Stored("a"), SizeIs(1));
  EXPECT_THAT(log_, ElementsAre(HasSubstr("No such file")));
}

// The spool takes a few batches, then refuses, and the agent restarts: at every possible place.
TEST_F(TfeventsSourceTest, EachValueIsStoredOnceWhereverTheSinkRefusesOrTheAgentDies) {
  limits_.chunk_bytes = 200;
  std::string first;
  std::string second;
  for (int step = 0; step < 12; ++step) {
    for (const char* tag : {"c", "a", "b"}) {
      first += ScalarRecord(100 + step, step, tag, static_cast<float>(step));
      second += ScalarRecord(200 + step, step + 6, tag, static_cast<float>(step));
    }
    if (step == 5) second += SessionStartRecord(206, 8);
  }
  WriteFile(Path("run", kFirstFile), first);
  WriteFile(Path("run", kSecondFile), second);
  Restart();
  Cycle();
  std::vector<StoredSample> want = sink_.samples;
  std::sort(want.begin(), want.end());
  ASSERT_THAT(want, SizeIs(72));
  for (int64_t operations = 1; operations < 40; ++operations) {
    for (const bool restart : {false, true}) {
      sink_ = RecordingSink();
      Restart();
      for (int round = 0; round < 200 && sink_.samples.size() < want.size(); ++round) {
        sink_.RefuseAfter(operations);
        Cycle();
        if (restart) Restart();
      }
      sink_.RefuseNothing();
      Cycle();
      std::sort(sink_.samples.begin(), sink_.samples.end());
      EXPECT_EQ(sink_.samples, want) << operations << restart;
    }
  }
}

// The deadline has always passed: every turn stores one batch and goes on later.
TEST_F(TfeventsSourceTest, NoTimeAtAllOnlyMakesItSlow) {
  turn_ = absl::ZeroDuration();
  Restart();
  std::string bytes;
  for (int step = 0; step < 5; ++step) {
    for (const char* tag : {"c", "a", "b"}) bytes += ScalarRecord(100 + step, step, tag, 1);
  }
  for (const char* run : {"x", "y/z"}) WriteFile(Path(run, kFirstFile), bytes);
  Cycle();
  EXPECT_THAT(sink_.samples, SizeIs(30));
  const std::set<StoredSample> distinct(sink_.samples.begin(), sink_.samples.end());
  EXPECT_THAT(distinct, SizeIs(30));
}

TEST_F(TfeventsSourceTest, LongFilesAreSentInBoundedBatches) {
  limits_.chunk_bytes = 4 << 20;
  Restart();
  std::string bytes;
  for (int step = 0; step < 10'000; ++step) bytes += ScalarRecord(100 + step, step, "a", 1);
  WriteFile(Path("run", kFirstFile), bytes);
  Cycle();
  EXPECT_THAT(sink_.samples, SizeIs(10'000));
  EXPECT_LE(sink_.largest_batch_rows, TfeventsDelivery::kMaxRowsPerBatch);
}

TEST_F(TfeventsSourceTest, ThousandsOfRunsAreAllRead) {
  for (int run = 0; run < 2000; ++run) {
    WriteFile(Path(absl::StrCat("group", run % 7, "/run", run), kFirstFile),
              FileVersionRecord(1) + ScalarRecord(2, 1, "a", static_cast<float>(run)));
  }
  Cycle();
  EXPECT_THAT(sink_.samples, SizeIs(2000));
  Cycle();
  EXPECT_THAT(sink_.samples, SizeIs(2000));
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
