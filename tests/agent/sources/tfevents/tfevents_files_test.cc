// Files that grow, break, are replaced and go, and sources that are interrupted at any place.
#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "agent/sources/tfevents/tfevents_delivery.h"
#include "tests/agent/sources/tfevents/tfevents_source_fixture.h"

namespace tacho::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

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
  CycleLater();
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
  EXPECT_THAT(log_, IsEmpty()) << "it may yet turn out well";
  CycleLater();
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
  CycleLater();
  EXPECT_THAT(sink_.samples, IsEmpty());
  EXPECT_EQ(source_->stats().dead_files, 2u);
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

}  // namespace
}  // namespace tacho::agent
