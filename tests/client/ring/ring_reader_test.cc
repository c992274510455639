// The reader meets rings that overflow or end, whose writer died, and files that are no rings.
#include "client/ring/ring_reader.h"

#include <signal.h>
#include <sys/wait.h>

#include "tests/client/ring/ring_test_support.h"

namespace tacho::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RingReaderTest : public testing::Test {
 protected:
  RingReaderTest() : recorder_(Recorder::Open(SmallRing(directory_))) {
    value_ = recorder_.Gauge("value", "", "");
  }

  // Rows whose step, time and value say the same.
  void Record(int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      recorder_.Set(value_, static_cast<double>(i));
      recorder_.CommitStep(i, i);
    }
  }

  static void ExpectRun(const std::vector<Row>& rows, int64_t begin, int64_t end) {
    ASSERT_THAT(rows, SizeIs(end - begin));
    for (const Row& row : rows) {
      EXPECT_EQ(row, (Row{begin, true, begin, {Bits(static_cast<double>(begin))}}));
      ++begin;
    }
  }

  TestDirectory directory_;
  Recorder recorder_;
  Metric value_;
};

TEST_F(RingReaderTest, EmptyRing) {
  auto reader = OpenReader(recorder_.path());
  auto batch = reader->Read({});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(batch->pieces, IsEmpty());
  EXPECT_TRUE(batch->at_end);
}

TEST_F(RingReaderTest, FollowsTheWriterWithoutLossOrRepetition) {
  auto reader = OpenReader(recorder_.path());
  RingCursor cursor;
  int64_t next = 0;
  // Several laps, in portions that never fill the ring, of every size modulo the block.
  for (int64_t portion = 1; portion < 300; portion += 7) {
    Record(next, next + portion);
    const Everything read = ReadAll(reader.get(), cursor);
    ExpectRun(read.rows, next, next + portion);
    EXPECT_EQ(read.lost_rows, 0u);
    cursor = read.end;
    next += portion;
  }
  EXPECT_GT(static_cast<uint64_t>(next) * 56, kSmallRing) << "the test must lap the ring";
}

TEST_F(RingReaderTest, WhatWasOverwrittenIsCountedExactly) {
  constexpr int64_t kRows = 20'000;
  Record(0, kRows);
  auto reader = OpenReader(recorder_.path());
  const Everything read = ReadAll(reader.get());
  EXPECT_GT(read.lost_rows, 0u);
  EXPECT_EQ(read.lost_rows + read.rows.size(), static_cast<uint64_t>(kRows));
  ExpectRun(read.rows, static_cast<int64_t>(read.lost_rows), kRows);
  // At most the block that is being overwritten goes with what was overwritten.
  EXPECT_GE(read.rows.size() * 56, kSmallRing - 2 * kBlockBytes);
}

TEST_F(RingReaderTest, ALappedReaderCountsOnlyWhatItHasNotSeen) {
  auto reader = OpenReader(recorder_.path());
  Record(0, 100);
  recorder_.Event("seen", "");
  const Everything first = ReadAll(reader.get());
  ASSERT_THAT(first.rows, SizeIs(100));
  for (int i = 0; i < 50; ++i) recorder_.Event("missed", "");
  Record(100, 30'000);
  const Everything second = ReadAll(reader.get(), first.end);
  EXPECT_EQ(second.lost_events, 50u);
  EXPECT_EQ(second.lost_rows + second.rows.size(), 29'900u);
  ExpectRun(second.rows, 30'000 - static_cast<int64_t>(second.rows.size()), 30'000);
}

TEST_F(RingReaderTest, AnotherReaderGoesOnWhereTheFirstStopped) {
  Record(0, 1000);
  const Everything first = ReadAll(OpenReader(recorder_.path()).get());
  Record(1000, 1010);
  auto reader = OpenReader(recorder_.path());
  const Everything second = ReadAll(reader.get(), first.end);
  ExpectRun(second.rows, 1000, 1010);
  EXPECT_EQ(second.lost_rows, 0u);
  // Going back is possible too.
  ExpectRun(ReadAll(reader.get(), {500, 500}).rows, 500, 1010);
}

TEST_F(RingReaderTest, ANewReaderCountsWhatWasOverwrittenSinceTheCursor) {
  Record(0, 1000);
  const RingCursor cursor = ReadAll(OpenReader(recorder_.path()).get()).end;
  Record(1000, 30'000);
  const Everything read = ReadAll(OpenReader(recorder_.path()).get(), cursor);
  EXPECT_EQ(read.lost_rows + read.rows.size(), 29'000u);
}

TEST_F(RingReaderTest, ACursorOfAnotherRingIsRefused) {
  Record(0, 10);
  auto reader = OpenReader(recorder_.path());
  EXPECT_EQ(reader->Read({11, 11}).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(reader->Read({5, 9}).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(reader->Read({5, 2}).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(ReadAll(reader.get(), {10, 10}).rows, IsEmpty());
  ExpectRun(ReadAll(reader.get()).rows, 0, 10);
}

TEST_F(RingReaderTest, LimitsCutBatchesAndPiecesWithoutLoss) {
  Record(0, 3000);
  auto reader = OpenReader(recorder_.path());
  auto batch = reader->Read({}, {.max_rows_per_piece = 10, .max_rows = 25});
  ASSERT_TRUE(batch.ok());
  ASSERT_THAT(batch->pieces, SizeIs(3));
  EXPECT_FALSE(batch->at_end);
  EXPECT_EQ(batch->pieces[1].end, (RingCursor{20, 20}));
  EXPECT_EQ(batch->end, (RingCursor{25, 25}));
  ExpectRun(ReadAll(reader.get(), batch->end, {.max_rows_per_piece = 7, .max_rows = 11}).rows, 25,
            3000);
}

TEST_F(RingReaderTest, PiecesBreakWhereTheColumnsOrStepsChange) {
  Record(0, 2);
  recorder_.Commit();
  Record(2, 3);
  recorder_.Gauge("another", "", "");
  Record(3, 4);
  auto batch = OpenReader(recorder_.path())->Read({});
  ASSERT_TRUE(batch.ok());
  std::vector<std::pair<uint32_t, bool>> shapes;
  for (const RingPiece& piece : batch->pieces) {
    const auto& rows = std::get<RingRows>(piece.content);
    shapes.emplace_back(rows.metric_count, rows.has_steps);
  }
  using Shape = std::pair<uint32_t, bool>;
  EXPECT_THAT(shapes, ElementsAre(Shape{1, true}, Shape{1, false}, Shape{1, true}, Shape{2, true}));
}

// Records of every size meet the end of a block in every way: exactly, with room for padding, and
// with less than a header left.
TEST_F(RingReaderTest, RecordsOfAllSizesCrossBlocks) {
  auto reader = OpenReader(recorder_.path());
  RingCursor cursor;
  std::string message;
  for (int i = 0; i < 4000; ++i) {
    message.assign(static_cast<size_t>(i * 31 % 1024), 'm');
    recorder_.Event("kind", message);
    if (i % 50 != 49) continue;
    const Everything read = ReadAll(reader.get(), cursor);
    ASSERT_THAT(read.events, SizeIs(50)) << i;
    EXPECT_EQ(read.events.back().message, message);
    EXPECT_EQ(read.lost_events, 0u);
    cursor = read.end;
  }
  EXPECT_EQ(reader->corruptions(), 0u);
}

// The promise of the flight recorder: at whatever instruction the trainer dies, everything that it
// committed is there, and nothing else.
TEST_F(RingReaderTest, RowsUpToTheWritersDeathAreThere) {
  for (int round = 0; round < 5; ++round) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
      RecorderOptions options = SmallRing(directory_);
      options.task = 100 + round;
      Recorder recorder = Recorder::Open(options);
      const Metric value = recorder.Gauge("value", "", "");
      for (int64_t i = 0;; ++i) {
        recorder.Set(value, static_cast<double>(i));
        recorder.CommitStep(i, i);
        if (i == 1000) (void)!write(ready[1], "x", 1);
      }
    }
    char byte;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    const std::string path = directory_.path() + "/job." + std::to_string(100 + round) + "." +
                             std::to_string(child) + ".ring";
    auto reader = OpenReader(path);
    EXPECT_TRUE(reader->WriterAlive());
    usleep(1000 * round);
    kill(child, SIGKILL);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    close(ready[0]);
    close(ready[1]);
    EXPECT_FALSE(reader->WriterAlive());
    const Everything read = ReadAll(reader.get());
    EXPECT_FALSE(reader->closed());
    EXPECT_EQ(reader->corruptions(), 0u);
    const auto total = static_cast<int64_t>(read.lost_rows + read.rows.size());
    EXPECT_GE(total, 1001);
    ExpectRun(read.rows, static_cast<int64_t>(read.lost_rows), total);
  }
}

TEST_F(RingReaderTest, RefusesWhatIsNoRing) {
  const std::string& dir = directory_.path();
  EXPECT_EQ(RingReader::Open(dir + "/none").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(RingReader::Open(dir).status().code(), absl::StatusCode::kDataLoss);
  std::filesystem::create_symlink(recorder_.path(), dir + "/link");
  EXPECT_EQ(RingReader::Open(dir + "/link").status().code(), absl::StatusCode::kDataLoss);
  ASSERT_EQ(mkfifo((dir + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(RingReader::Open(dir + "/pipe").status().code(), absl::StatusCode::kDataLoss);
  close(open((dir + "/empty").c_str(), O_CREAT | O_WRONLY, 0600));
  EXPECT_EQ(RingReader::Open(dir + "/empty").status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(RingReaderTest, AnotherVersionIsSaidToBeOne) {
  const int fd = open(recorder_.path().c_str(), O_RDWR);
  for (const char version : {'\0', '\3'}) {
    ASSERT_EQ(pwrite(fd, &version, 1, 8), 1);
    const absl::Status status = RingReader::Open(recorder_.path()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  }
  close(fd);
}

TEST_F(RingReaderTest, AFileThatShrinksWhileItIsReadIsAnError) {
  Record(0, 10);
  auto reader = OpenReader(recorder_.path());
  ASSERT_TRUE(reader->Read({}).ok());
  ASSERT_EQ(truncate(recorder_.path().c_str(), 4096 + 100), 0);
  EXPECT_EQ(reader->Read({}).status().code(), absl::StatusCode::kDataLoss);
  ASSERT_EQ(truncate(recorder_.path().c_str(), 100), 0);
  EXPECT_EQ(reader->Read({}).status().code(), absl::StatusCode::kDataLoss);
  // The recorder's destructor closes the ring, and needs the page again for that.
  ASSERT_EQ(truncate(recorder_.path().c_str(), 1 << 20), 0);
}

TEST_F(RingReaderTest, CursorsThatFallAreAnError) {
  Record(0, 10);
  auto reader = OpenReader(recorder_.path());
  ASSERT_TRUE(reader->Read({}).ok());
  const int fd = open(recorder_.path().c_str(), O_RDWR);
  const uint64_t zero = 0;
  ASSERT_EQ(pwrite(fd, &zero, 8, kRingCursorsOffset + offsetof(RingCursors, committed)), 8);
  close(fd);
  EXPECT_EQ(reader->Read({}).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace tacho::client
