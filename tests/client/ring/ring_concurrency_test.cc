// A writer at full speed and a reader beside it: no torn row, every row accounted for.
#include <sys/wait.h>

#include <atomic>
#include <thread>

#include "tests/client/ring/ring_test_support.h"

namespace tacho::client {
namespace {

constexpr int kMetrics = 9;

// Value m of row i; a torn row cannot match.
double ValueOf(int64_t i, int m) { return static_cast<double>(i * 16 + m); }

// With a lead the writer waits whenever it is that many rows ahead of the reader.
void WriteRows(Recorder* recorder, int64_t rows, int64_t lead, const std::atomic<int64_t>& seen) {
  std::vector<Metric> metrics;
  for (int m = 0; m < kMetrics; ++m) {
    metrics.push_back(recorder->Gauge("m" + std::to_string(m), "", ""));
  }
  for (int64_t i = 0; i < rows; ++i) {
    while (lead != 0 && i - seen >= lead) std::this_thread::yield();
    for (int m = 0; m < kMetrics; ++m) recorder->Set(metrics[m], ValueOf(i, m));
    recorder->CommitStep(i, i);
  }
}

void ExpectWhole(const Everything& read, int64_t* next) {
  for (const Row& row : read.rows) {
    ASSERT_GE(row.step, *next);
    *next = row.step + 1;
    ASSERT_EQ(row.bits.size(), static_cast<size_t>(kMetrics));
    for (int m = 0; m < kMetrics; ++m) ASSERT_EQ(row.bits[m], Bits(ValueOf(row.step, m)));
  }
}

struct Tally {
  uint64_t read = 0;
  uint64_t lost = 0;
};

Tally ReadBeside(int64_t rows, int64_t lead) {
  TestDirectory directory;
  Recorder recorder = Recorder::Open(SmallRing(directory));
  auto reader = OpenReader(recorder.path());
  std::atomic<bool> done = false;
  std::atomic<int64_t> seen = 0;
  std::thread writer([&] {
    WriteRows(&recorder, rows, lead, seen);
    done = true;
  });
  Tally tally;
  RingCursor cursor;
  int64_t next = 0;
  for (bool last = false; !last;) {
    last = done;
    const Everything read = ReadAll(reader.get(), cursor);
    ExpectWhole(read, &next);
    tally.read += read.rows.size();
    seen = next;
    tally.lost += read.lost_rows;
    cursor = read.end;
  }
  writer.join();
  EXPECT_EQ(reader->corruptions(), 0u);
  return tally;
}

TEST(RingConcurrencyTest, AWriterThatLapsTheReaderTearsNoRow) {
  constexpr int64_t kRows = 1'000'000;
  const Tally tally = ReadBeside(kRows, /*lead=*/0);
  EXPECT_EQ(tally.read + tally.lost, static_cast<uint64_t>(kRows));
  EXPECT_GT(tally.read, 0u);
}

TEST(RingConcurrencyTest, AReaderThatKeepsUpLosesNothing) {
  constexpr int64_t kRows = 60'000;
  const Tally tally = ReadBeside(kRows, /*lead=*/200);
  EXPECT_EQ(tally.read, static_cast<uint64_t>(kRows));
  EXPECT_EQ(tally.lost, 0u);
}

// Writer and reader are in two processes, as a trainer and an agent are.
TEST(RingConcurrencyTest, AWriterInAnotherProcessTearsNoRow) {
  constexpr int64_t kRows = 300'000;
  TestDirectory directory;
  const pid_t child = fork();
  if (child == 0) {
    Recorder recorder = Recorder::Open(SmallRing(directory));
    WriteRows(&recorder, kRows, /*lead=*/0, std::atomic<int64_t>(0));
    _exit(recorder.recording() ? 0 : 1);
  }
  const std::string path = directory.path() + "/job.3." + std::to_string(child) + ".ring";
  while (access(path.c_str(), R_OK) != 0) std::this_thread::yield();
  const auto reader = OpenReader(path);
  Tally tally;
  RingCursor cursor;
  int64_t next = 0;
  for (bool alive = true; alive;) {
    alive = reader->WriterAlive();
    const Everything read = ReadAll(reader.get(), cursor);
    ExpectWhole(read, &next);
    tally.read += read.rows.size();
    tally.lost += read.lost_rows;
    cursor = read.end;
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(tally.read + tally.lost, static_cast<uint64_t>(kRows));
  EXPECT_EQ(next, kRows);
  EXPECT_EQ(reader->corruptions(), 0u);
}

}  // namespace
}  // namespace tacho::client
