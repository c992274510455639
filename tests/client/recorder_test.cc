// A trainer uses a recorder, also wrongly, and a reader checks the ring afterwards.
#include "client/recorder.h"

#include <sys/wait.h>

#include <cmath>
#include <limits>

#include "proto/base/stale_marker.h"
#include "tests/client/ring/ring_test_support.h"

namespace tacho::client {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::FieldsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

class RecorderTest : public testing::Test {
 protected:
  Recorder Open() { return Recorder::Open(SmallRing(directory_)); }
  static Everything Read(const Recorder& recorder) {
    return ReadAll(OpenReader(recorder.path()).get());
  }

  TestDirectory directory_;
};

TEST_F(RecorderTest, RowsComeBackBitForBit) {
  Recorder recorder = Open();
  const Metric loss = recorder.Gauge("loss", "1", "Training loss.");
  const Metric rate = recorder.Gauge("rate", "", "");
  const double values[] = {0.0,
                           -0.0,
                           std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::denorm_min(),
                           std::bit_cast<double>(uint64_t{0x7ff8000000000abc}),
                           std::bit_cast<double>(uint64_t{0xfff0000000000001})};  // Signaling.
  int64_t step = -3;
  for (const double value : values) {
    recorder.Set(loss, value);
    recorder.Set(rate, 0.5);
    recorder.CommitStep(step, 1000 + step);
    ++step;
  }
  const Everything read = Read(recorder);
  ASSERT_THAT(read.rows, SizeIs(std::size(values)));
  for (size_t i = 0; i < std::size(values); ++i) {
    EXPECT_THAT(read.rows[i].bits, ElementsAre(Bits(values[i]), Bits(0.5)));
    EXPECT_EQ(read.rows[i].step, static_cast<int64_t>(i) - 3);
  }
  EXPECT_EQ(read.lost_rows + read.lost_events, 0u);
}

TEST_F(RecorderTest, HeaderAndDefinitionsSayWhoRecordsWhat) {
  Recorder recorder = Open();
  recorder.Gauge("loss", "1", "Training loss.");
  recorder.Counter("examples", "examples", "");
  const auto reader = OpenReader(recorder.path());
  EXPECT_EQ(reader->info().job, "job");
  EXPECT_EQ(reader->info().task, 3u);
  EXPECT_EQ(reader->info().attempt, 2u);
  EXPECT_EQ(reader->info().pid, static_cast<uint32_t>(getpid()));
  EXPECT_NE(reader->info().process_start_ticks, 0u);
  EXPECT_EQ(reader->info().created_unix_ns, 1'700'000'000'000'000'000);
  EXPECT_THAT(reader->metrics(),
              ElementsAre(FieldsAre("loss", MetricType::kGauge, "1", "Training loss."),
                          FieldsAre("examples", MetricType::kCounter, "examples", "")));
  EXPECT_THAT(recorder.path(), EndsWith("/job.3." + std::to_string(getpid()) + ".ring"));
}

TEST_F(RecorderTest, AGaugeThatWasNotSetHasNoValueInTheRow) {
  Recorder recorder = Open();
  const Metric loss = recorder.Gauge("loss", "", "");
  const Metric accuracy = recorder.Gauge("accuracy", "", "");
  recorder.Set(loss, 1);
  recorder.Set(accuracy, 2);
  recorder.CommitStep(0);
  recorder.Set(loss, 3);
  recorder.CommitStep(1);
  const Everything read = Read(recorder);
  ASSERT_THAT(read.rows, SizeIs(2));
  EXPECT_THAT(read.rows[1].bits, ElementsAre(Bits(3), kStaleMarkerBits));
}

TEST_F(RecorderTest, ACounterKeepsItsTotal) {
  Recorder recorder = Open();
  const Metric tokens = recorder.Counter("tokens", "", "");
  recorder.CommitStep(0);
  recorder.Add(tokens, 5);
  recorder.CommitStep(1);
  recorder.CommitStep(2);
  recorder.Add(tokens, 2);
  recorder.CommitStep(3);
  const Everything read = Read(recorder);
  ASSERT_THAT(read.rows, SizeIs(4));
  EXPECT_THAT(read.rows[0].bits, ElementsAre(kStaleMarkerBits));
  EXPECT_THAT(read.rows[1].bits, ElementsAre(Bits(5)));
  EXPECT_THAT(read.rows[2].bits, ElementsAre(Bits(5)));
  EXPECT_THAT(read.rows[3].bits, ElementsAre(Bits(7)));
}

TEST_F(RecorderTest, AMetricDeclaredLateWidensTheRowsAfterIt) {
  Recorder recorder = Open();
  const Metric loss = recorder.Gauge("loss", "", "");
  recorder.Set(loss, 1);
  recorder.CommitStep(0);
  const auto reader = OpenReader(recorder.path());
  const Everything before = ReadAll(reader.get());
  const Metric late = recorder.Gauge("late", "", "");
  recorder.Set(late, 2);
  recorder.CommitStep(1);
  const Everything after = ReadAll(reader.get(), before.end);
  EXPECT_THAT(before.rows.at(0).bits, ElementsAre(Bits(1)));
  EXPECT_THAT(after.rows.at(0).bits, ElementsAre(kStaleMarkerBits, Bits(2)));
  EXPECT_THAT(reader->metrics(), SizeIs(2));
}

TEST_F(RecorderTest, RowsWithoutAStepSaySo) {
  Recorder recorder = Open();
  recorder.Set(recorder.Gauge("loss", "", ""), 1);
  recorder.Commit();
  const Everything read = Read(recorder);
  ASSERT_THAT(read.rows, SizeIs(1));
  EXPECT_FALSE(read.rows[0].has_step);
  EXPECT_EQ(read.rows[0].time, 1'700'000'000'000'000'000);
}

TEST_F(RecorderTest, EventsKeepTheirPlaceStepAndFields) {
  Recorder recorder = Open();
  const Metric loss = recorder.Gauge("loss", "", "");
  recorder.Event("attempt_started", "Hello.");
  recorder.Set(loss, 1);
  recorder.CommitStep(7);
  const Recorder::EventField fields[] = {{"path", "/ckpt/7"}, {"bytes", ""}};
  recorder.Event("checkpoint_saved", "line one\nline two", fields);
  auto reader = OpenReader(recorder.path());
  auto batch = reader->Read({});
  ASSERT_TRUE(batch.ok()) << batch.status();
  ASSERT_THAT(batch->pieces, SizeIs(3));
  const auto& started = std::get<RingEvent>(batch->pieces[0].content);
  EXPECT_EQ(started.kind, "attempt_started");
  EXPECT_EQ(started.step, std::nullopt);
  const auto& saved = std::get<RingEvent>(batch->pieces[2].content);
  EXPECT_EQ(saved.step, 7);
  EXPECT_EQ(saved.message, "line one line two");
  EXPECT_THAT(saved.fields, ElementsAre(Pair("path", "/ckpt/7"), Pair("bytes", "")));
  EXPECT_EQ(batch->end, (RingCursor{3, 1}));
}

TEST_F(RecorderTest, AttributesAreWrittenOnceForEachChange) {
  Recorder recorder = Open();
  recorder.SetAttribute("model", "mlp");
  recorder.SetAttribute("model", "mlp");
  recorder.SetAttribute("never", "");
  recorder.SetAttribute("model", "");
  recorder.SetAttribute("long", std::string(5000, 'v'));
  const auto reader = OpenReader(recorder.path());
  EXPECT_THAT(reader->attributes(), ElementsAre(FieldsAre("model", "mlp"), FieldsAre("model", ""),
                                                FieldsAre("long", std::string(4096, 'v'))));
  EXPECT_EQ(recorder.refused(), 0u);
}

// A trainer that sets an attribute at every step must not keep a late metric out.
TEST_F(RecorderTest, AttributesWithoutEndAreRefusedAndLeaveRoomForMetrics) {
  Recorder recorder = Open();
  for (int i = 0; i < 100; ++i) {
    recorder.SetAttribute("key", std::to_string(i) + std::string(4000, 'v'));
  }
  EXPECT_GT(recorder.refused(), 0u);
  recorder.Set(recorder.Gauge("late", "", ""), 1);
  recorder.CommitStep(0);
  const auto reader = OpenReader(recorder.path());
  EXPECT_THAT(ReadAll(reader.get()).rows, SizeIs(1));
  EXPECT_EQ(reader->refused(), recorder.refused());
}

TEST_F(RecorderTest, BadArgumentsAreRefusedCountedAndHarmless) {
  Recorder recorder = Open();
  uint64_t refused = 0;
  const auto one_more = [&] { return recorder.refused() == ++refused; };
  const Metric loss = recorder.Gauge("loss", "", "");
  recorder.Gauge("", "", "");
  EXPECT_TRUE(one_more());
  recorder.Gauge(std::string(257, 'n'), "", "");
  EXPECT_TRUE(one_more());
  recorder.Gauge("bad\xff", "", "");
  EXPECT_TRUE(one_more());
  const Metric twice = recorder.Counter("loss", "", "");
  EXPECT_TRUE(one_more());
  recorder.Set(twice, 1);
  EXPECT_TRUE(one_more());
  recorder.Add(Metric(), 1);
  EXPECT_TRUE(one_more());
  recorder.CommitStep(0, -1);
  EXPECT_TRUE(one_more());
  recorder.Event("", "no kind");
  EXPECT_TRUE(one_more());
  recorder.Event(std::string(129, 'k'), "");
  EXPECT_TRUE(one_more());
  recorder.Event("kind", "", std::vector<Recorder::EventField>(33, {"a", "b"}));
  EXPECT_TRUE(one_more());
  recorder.SetAttribute("", "x");
  EXPECT_TRUE(one_more());
  recorder.Set(loss, 4);
  recorder.CommitStep(1);
  const Everything read = Read(recorder);
  ASSERT_THAT(read.rows, SizeIs(1));
  EXPECT_THAT(read.rows[0].bits, ElementsAre(Bits(4)));
  EXPECT_THAT(read.events, IsEmpty());
}

TEST_F(RecorderTest, ARowBeforeAnyMetricIsRefused) {
  Recorder recorder = Open();
  recorder.CommitStep(0);
  EXPECT_EQ(recorder.refused(), 1u);
  EXPECT_THAT(Read(recorder).rows, IsEmpty());
}

TEST_F(RecorderTest, LimitsAreInclusive) {
  Recorder recorder = Open();
  const std::string name(256, 'n');
  recorder.Gauge(name, std::string(64, 'u'), std::string(1025, 'h'));
  std::vector<Metric> metrics;
  for (int i = 1; i < 1024; ++i) {
    metrics.push_back(recorder.Gauge("m" + std::to_string(i), "", ""));
  }
  EXPECT_EQ(recorder.refused(), 0u);
  recorder.Gauge("one too many", "", "");
  EXPECT_EQ(recorder.refused(), 1u);
  recorder.Set(metrics.back(), 1);
  recorder.CommitStep(0);
  const std::vector<Recorder::EventField> fields(
      32, {std::string_view(name).substr(0, 128), std::string_view(name)});
  recorder.Event(std::string(128, 'k'), std::string(2000, 'm'), fields);
  const auto reader = OpenReader(recorder.path());
  const Everything read = ReadAll(reader.get());
  ASSERT_THAT(reader->metrics(), SizeIs(1024));
  EXPECT_EQ(reader->metrics()[0].unit, std::string(63, 'u'));
  EXPECT_EQ(reader->metrics()[0].help, std::string(1024, 'h'));
  EXPECT_EQ(read.rows.at(0).bits.back(), Bits(1));
  EXPECT_EQ(read.events.at(0).message.size(), 1024u);
  EXPECT_THAT(read.events.at(0).fields, SizeIs(32));
}

TEST_F(RecorderTest, WhatIsNotSetComesFromTheEnvironmentAndThenFromDefaults) {
  static std::string ring_directory;
  ring_directory = directory_.path() + "/made";
  RecorderOptions options;
  options.environment = [](const char* name) -> const char* {
    if (std::string_view(name) == "TACHO_JOB") return "from environment";
    if (std::string_view(name) == "TACHO_TASK") return "9";
    if (std::string_view(name) == "TACHO_GROUP") return "sweep";
    if (std::string_view(name) == "TACHO_RING_DIR") return ring_directory.c_str();
    return nullptr;
  };
  const Recorder recorder = Recorder::Open(options);
  const auto reader = OpenReader(recorder.path());
  EXPECT_EQ(reader->info().job, "from environment");
  EXPECT_EQ(reader->info().task, 9u);
  EXPECT_EQ(reader->info().attempt, 0u);
  EXPECT_EQ(reader->info().record_bytes, 4u << 20);
  ASSERT_THAT(reader->attributes(), SizeIs(1));
  EXPECT_EQ(reader->attributes()[0].value, "sweep");
  EXPECT_THAT(recorder.path(), HasSubstr("/made/from_environment.9."));
}

TEST_F(RecorderTest, WithoutAPlaceOrANameNothingIsRecordedAndNothingBreaks) {
  RecorderOptions no_job = SmallRing(directory_);
  no_job.job = "";
  RecorderOptions no_directory = SmallRing(directory_);
  no_directory.directory = directory_.path() + "/not/there";
  RecorderOptions long_job = SmallRing(directory_);
  long_job.job = std::string(257, 'j');
  RecorderOptions bad_task = SmallRing(directory_);
  bad_task.task.reset();
  bad_task.environment = [](const char* name) {
    return std::string_view(name) == "TACHO_TASK" ? "-1" : nullptr;
  };
  for (const RecorderOptions& options : {no_job, no_directory, long_job, bad_task}) {
    testing::internal::CaptureStderr();
    Recorder recorder = Recorder::Open(options);
    EXPECT_FALSE(recorder.recording());
    EXPECT_FALSE(recorder.error().empty());
    const Metric loss = recorder.Gauge("loss", "", "");
    recorder.Set(loss, 1);
    recorder.Add(loss, 1);
    recorder.Observe(recorder.Histogram("h", "", ""), 1);
    {
      StepScope step = recorder.Step(0);
      step.Phase("data");
      step.Phase(recorder.StepPhase("compute"));
    }
    recorder.CommitStep(0);
    recorder.Commit();
    recorder.Event("kind", "message");
    recorder.SetAttribute("key", "value");
    EXPECT_EQ(recorder.path(), "");
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_THAT(said, HasSubstr(recorder.error()));
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

// With a strict umask, which many sites have, an agent of another user must still be able to read.
TEST_F(RecorderTest, TheModeOfTheRingIsTheOptionsAndNotTheUmasks) {
  const mode_t before = umask(0077);
  RecorderOptions group_only = SmallRing(directory_);
  group_only.ring_mode = 0660;
  const Recorder plain = Open();
  const Recorder restricted = Recorder::Open(group_only);
  umask(before);
  const auto mode_of = [](const Recorder& recorder) {
    struct stat facts = {};
    stat(recorder.path().c_str(), &facts);
    return facts.st_mode & 07777;
  };
  EXPECT_EQ(mode_of(plain), 0644u);
  EXPECT_EQ(mode_of(restricted), 0640u) << "nobody else may cut it short";
}

TEST_F(RecorderTest, NumbersAreAttributesInDecimal) {
  Recorder recorder = Open();
  recorder.SetAttribute("batch_size", 512);
  recorder.SetAttribute("flops_per_step", 1.5e15);
  const auto reader = OpenReader(recorder.path());
  EXPECT_THAT(reader->attributes(),
              ElementsAre(FieldsAre("batch_size", "512"), FieldsAre("flops_per_step", "1.5e+15")));
}

TEST_F(RecorderTest, TroubleIsSaidOnce) {
  Recorder recorder = Open();
  testing::internal::CaptureStderr();
  for (int i = 0; i < 5; ++i) recorder.Set(Metric(), 1);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST_F(RecorderTest, ASecondRecorderOfTheSameTaskDoesNotDisturbTheFirst) {
  Recorder first = Open();
  first.Set(first.Gauge("loss", "", ""), 1);
  first.CommitStep(0);
  Recorder second = Open();
  EXPECT_NE(first.path(), second.path());
  EXPECT_THAT(second.path(), EndsWith("-1.ring"));
  EXPECT_THAT(Read(first).rows, SizeIs(1));
  EXPECT_THAT(Read(second).rows, IsEmpty());
}

TEST_F(RecorderTest, AMovedRecorderGoesOn) {
  Recorder first = Open();
  const Metric loss = first.Gauge("loss", "", "");
  Recorder second = std::move(first);
  first.Set(loss, 1);  // NOLINT(bugprone-use-after-move): what was moved from records nothing.
  second.Set(loss, 2);
  second.CommitStep(0);
  EXPECT_THAT(Read(second).rows.at(0).bits, ElementsAre(Bits(2)));
}

TEST_F(RecorderTest, AliveUntilClosed) {
  auto recorder = std::make_unique<Recorder>(Open());
  const auto reader = OpenReader(recorder->path());
  EXPECT_TRUE(reader->WriterAlive());
  ASSERT_TRUE(reader->Read({}).ok());
  EXPECT_FALSE(reader->closed());
  recorder.reset();
  EXPECT_FALSE(reader->WriterAlive());
  ASSERT_TRUE(reader->Read({}).ok());
  EXPECT_TRUE(reader->closed());
}

// Data loaders fork from the trainer: a child has the recorder too, and must leave the ring alone.
TEST_F(RecorderTest, AForkedChildNeitherWritesNorCloses) {
  Recorder recorder = Open();
  const Metric loss = recorder.Gauge("loss", "", "");
  const pid_t child = fork();
  if (child == 0) {
    Recorder inherited = std::move(recorder);
    inherited.Set(loss, 666);
    inherited.CommitStep(666);
    inherited.Event("kind", "from the child");
    inherited.SetAttribute("from", "child");
    inherited.Gauge("child", "", "");
    inherited = Recorder();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  recorder.Set(loss, 1);
  recorder.CommitStep(1);
  const auto reader = OpenReader(recorder.path());
  const Everything read = ReadAll(reader.get());
  EXPECT_FALSE(reader->closed());
  EXPECT_TRUE(reader->WriterAlive());
  EXPECT_THAT(read.rows, SizeIs(1));
  EXPECT_THAT(read.events, IsEmpty());
  EXPECT_THAT(reader->attributes(), IsEmpty());
  EXPECT_THAT(reader->metrics(), SizeIs(1));
}

}  // namespace
}  // namespace tacho::client
