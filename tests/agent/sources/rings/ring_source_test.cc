#include "agent/sources/rings/ring_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/recorder.h"
#include "tests/agent/sources/rings/ring_source_fixture.h"
#include "tests/support/tfevents_writer.h"

namespace tacho::agent {
namespace {

namespace fs = std::filesystem;
using ::tacho::agent::testing::RecordingSink;
using ::tacho::agent::testing::RingSourceFixture;
using ::tacho::agent::testing::StoredSample;
using ::tacho::client::Recorder;
using ::tacho::testing::WriteFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using RingSourceTest = RingSourceFixture;

TEST_F(RingSourceTest, RowsArriveWithTheirNames) {
  Recorder recorder = Open();
  ASSERT_TRUE(recorder.recording()) << recorder.error();
  Record(&recorder, 7, 8);
  Cycle();
  ASSERT_THAT(sink_.samples, SizeIs(1));
  const StoredSample& sample = sink_.samples[0];
  EXPECT_EQ(sample.job, "job");
  EXPECT_EQ(sample.task, 3);
  EXPECT_EQ(sample.attempt, 2u);
  EXPECT_EQ(sample.host, "host-a");
  EXPECT_EQ(sample.metric, "loss");
  EXPECT_EQ(sample.step, 7);
  EXPECT_EQ(sample.value(), 7);
  EXPECT_EQ(sink_.layouts[0].series(0).metric().help(), "Training loss.");
}

TEST_F(RingSourceTest, RingOfALiveTrainerStaysAndOfAnEndedOneGoesOnceItIsDrained) {
  std::string path;
  {
    Recorder recorder = Open();
    path = recorder.path();
    Record(&recorder, 0, 2);
    Cycle();
    EXPECT_TRUE(fs::exists(path));
    Record(&recorder, 2, 4);
  }
  Cycle();
  EXPECT_THAT(Steps(), ElementsAre(0, 1, 2, 3));
  EXPECT_FALSE(fs::exists(path));
  EXPECT_THAT(sink_.checkpoints, IsEmpty());
  EXPECT_EQ(source_->stats().removed_files, 1u);
}

TEST_F(RingSourceTest, NewRingIsReadAtTheNextLook) {
  Cycle();
  CycleAfter(absl::Milliseconds(200));
  Recorder recorder = Open();
  Record(&recorder, 0, 1);
  CycleAfter(absl::Milliseconds(200));
  EXPECT_THAT(Steps(), ElementsAre(0));
}

TEST_F(RingSourceTest, NewRingThatTheDirectorysTimeDoesNotShowIsReadWithinASecond) {
  Cycle();
  const auto changed = fs::last_write_time(root_);
  Recorder recorder = Open();
  Record(&recorder, 0, 1);
  fs::last_write_time(root_, changed);
  CycleAfter(absl::Milliseconds(200));
  EXPECT_THAT(Steps(), IsEmpty()) << "it is not listed again for nothing";
  CycleAfter(absl::Milliseconds(800));
  EXPECT_THAT(Steps(), ElementsAre(0));
}

TEST_F(RingSourceTest, RestartedAgentGoesOnWhereItWas) {
  Recorder recorder = Open();
  Record(&recorder, 0, 3);
  Cycle();
  Restart();
  Record(&recorder, 3, 5);
  Cycle();
  EXPECT_THAT(Steps(), ElementsAre(0, 1, 2, 3, 4));
}

TEST_F(RingSourceTest, CheckpointOfAnotherRingOfTheSameNameIsNotUsed) {
  Recorder recorder = Open();
  Record(&recorder, 0, 3);
  sink_.checkpoints[absl::StrCat("rings/", fs::path(recorder.path()).filename().string())] =
      "1 1 2 3 1000 1000 0";
  Cycle();
  EXPECT_THAT(Steps(), ElementsAre(0, 1, 2));
}

TEST_F(RingSourceTest, NothingIsLostWhenTheSinkRefuses) {
  std::string path;
  {
    Recorder recorder = Open();
    path = recorder.path();
    Record(&recorder, 0, 3);
    recorder.SetAttribute("model", "small");
  }
  for (int room = 0; room < 3; ++room) {
    sink_.RefuseAfter(room == 1 ? 1 : 0);
    Cycle();
    EXPECT_TRUE(fs::exists(path)) << room;
  }
  sink_.RefuseNothing();
  Cycle();
  EXPECT_THAT(Steps(), ElementsAre(0, 1, 2));
  EXPECT_THAT(sink_.attributes, SizeIs(1));
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(RingSourceTest, OverwrittenRowsAreReportedAsAnEventWithTheirNumber) {
  constexpr int kRows = 300'000;  // Far more than the smallest ring holds.
  Recorder recorder = Recorder::Open({.directory = root_, .job = "job", .ring_bytes = 256 * 1024});
  Record(&recorder, 0, kRows);
  Cycle();
  ASSERT_THAT(sink_.events, SizeIs(1));
  EXPECT_EQ(sink_.events[0].kind(), "rows_lost");
  EXPECT_EQ(sink_.events[0].source().job(), "job");
  const int64_t lost = std::stoll(sink_.events[0].fields().at("rows"));
  EXPECT_GT(lost, 0);
  EXPECT_EQ(lost + static_cast<int64_t>(sink_.samples.size()), kRows);
  EXPECT_EQ(Steps().back(), kRows - 1);
  EXPECT_EQ(source_->stats().lost_rows, static_cast<uint64_t>(lost));
}

TEST_F(RingSourceTest, EventsAndAttributesAreHandedOnOnce) {
  Recorder recorder = Open();
  recorder.SetAttribute("model", "small");
  Record(&recorder, 0, 1);
  const Recorder::EventField fields[] = {{"path", "/x"}};
  recorder.Event("checkpoint_saved", "to disk", fields);
  Cycle();
  recorder.SetAttribute("model", "large");
  Restart();
  Cycle();
  ASSERT_THAT(sink_.events, SizeIs(1));
  EXPECT_EQ(sink_.events[0].kind(), "checkpoint_saved");
  EXPECT_EQ(sink_.events[0].step(), 0);
  EXPECT_EQ(sink_.events[0].fields().at("path"), "/x");
  ASSERT_THAT(sink_.attributes, SizeIs(2));
  EXPECT_EQ(sink_.attributes[0].values().at("model"), "small");
  EXPECT_EQ(sink_.attributes[1].values().at("model"), "large");
  EXPECT_EQ(sink_.attributes[1].attempt(), 2u);
}

TEST_F(RingSourceTest, AHistogramArrivesAsCumulativeBuckets) {
  {
    Recorder recorder = Open();
    const client::HistogramMetric norms =
        recorder.Histogram("norms", "1", "Norms.", {.first = 1, .factor = 10, .count = 2});
    for (const double norm : {0.5, 5.0, 7.0, 50.0}) recorder.Observe(norms, norm);
    Record(&recorder, 4, 5);
  }
  Cycle();
  ASSERT_THAT(sink_.samples, SizeIs(5)) << "one of loss";
  const StoredSample* bucket = &sink_.samples[1];
  EXPECT_EQ(bucket[0].metric, "norms");
  EXPECT_EQ(bucket[0].job, "job");
  EXPECT_EQ(bucket[0].task, 3);
  EXPECT_EQ(bucket[0].step, 4);
  EXPECT_EQ(bucket[0].label, "le=1");
  EXPECT_EQ(bucket[0].value(), 1);
  EXPECT_EQ(bucket[1].label, "le=10");
  EXPECT_EQ(bucket[1].value(), 3);
  EXPECT_EQ(bucket[2].label, "le=+Inf");
  EXPECT_EQ(bucket[2].value(), 4);
  EXPECT_EQ(bucket[3].metric, "norms_sum");
  EXPECT_EQ(bucket[3].value(), 62.5);
}

TEST_F(RingSourceTest, FilesThatAreNoRingsAreSaidOnceAndLeftWhereTheyAre) {
  WriteFile(root_ + "/empty.ring", "");
  WriteFile(root_ + "/junk.ring", std::string(100'000, 'j'));
  fs::create_directory(root_ + "/directory.ring");
  WriteFile(root_ + "/other.txt", "not looked at");
  Recorder recorder = Open();
  Record(&recorder, 0, 1);
  for (int i = 0; i < 200; ++i) Cycle();
  EXPECT_THAT(Steps(), ElementsAre(0)) << "the sound ring is read";
  EXPECT_THAT(log_, SizeIs(3));
  EXPECT_EQ(source_->stats().rejected_files, 3u);
  EXPECT_TRUE(fs::exists(root_ + "/junk.ring"));
}

// Every byte of header and definitions that is in use, flipped.
TEST_F(RingSourceTest, DamagedRingNeverGivesAWrongValue) {
  std::string path;
  {
    Recorder recorder = Open();
    path = recorder.path();
    Record(&recorder, 0, 2);
  }
  std::string good(fs::file_size(path), '\0');
  FILE* file = fopen(path.c_str(), "rb");
  ASSERT_EQ(fread(good.data(), 1, good.size(), file), good.size());
  fclose(file);
  fs::remove(path);
  constexpr size_t kUsedDefinitionBytes = 128;
  for (size_t at = 0; at < 4096 + kUsedDefinitionBytes; at += at < 600 || at >= 4096 ? 3 : 500) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x04);
    const std::string damaged = absl::StrCat(root_, "/damaged.ring");
    WriteFile(damaged, bad);
    sink_ = RecordingSink();
    Restart();
    Cycle();
    for (const StoredSample& sample : sink_.samples) {
      EXPECT_EQ(sample.job, "job") << at;
      EXPECT_EQ(sample.value(), static_cast<double>(sample.step)) << at;
    }
    fs::remove(damaged);
  }
}

TEST_F(RingSourceTest, MissingDirectoryIsQuiet) {
  fs::remove_all(root_);
  Cycle();
  EXPECT_THAT(log_, IsEmpty());
}

}  // namespace
}  // namespace tacho::agent
