// A day without a collector, by a clock of the test's: what fits the bounds arrives once, the rest
// is counted to the row, and memory does not grow with what waits.
#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "agent/stream/sender.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/stream/fake_collector.h"

namespace tacho::agent {
namespace {

// One row in each interval. The cost of a test is that of its messages: with sanitizers, a row each
// second takes minutes.
constexpr absl::Duration kInterval = absl::Seconds(4);
constexpr int kDay = 86'400 / 4;  // Intervals, and rows.

double ResidentMiB() {
  std::ifstream file("/proc/self/statm");
  double size = 0;
  double resident = 0;
  file >> size >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

double AllocatedMiB() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd) / (1 << 20);
}

class SpoolOutageTest : public ::testing::Test {
 protected:
  SpoolOutageTest()
      : path_(absl::StrCat(::testing::TempDir(), "/spool_outage_test_",
                           ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(path_);
    collector_.Stop();
  }
  ~SpoolOutageTest() override {
    sender_.reset();
    spool_.reset();
    std::filesystem::remove_all(path_);
  }

  void Open(SpoolOptions options, int width) {
    options.path = path_;
    options.now = [this] { return start_ + row_.load() * kInterval; };
    auto spool = Spool::Open(std::move(options));
    ASSERT_TRUE(spool.ok()) << spool.status();
    spool_ = *std::move(spool);
    v1::Layout layout;
    layout.mutable_source()->set_job("job");
    for (int i = 0; i < width; ++i) {
      layout.add_series()->mutable_metric()->set_name(absl::StrCat("m", i));
    }
    layout_ = *spool_->DefineLayout(layout);
    values_.resize(static_cast<size_t>(width));

    StreamOptions stream;
    stream.addresses = {collector_.address()};
    stream.lanes.short_backlog = 1'000'000;  // One lane: the collector is not what is tried here.
    stream.agent_id = "agent";
    stream.backoff_min = absl::Milliseconds(20);
    stream.backoff_max = absl::Milliseconds(50);
    stream.sync_interval = absl::Milliseconds(10);
    sender_ = std::make_unique<Sender>(stream, spool_.get());
    sender_->Start();
  }

  // Row n has the value n and is spooled in interval n.
  void RecordUntil(int row) {
    for (; row_ < row; ++row_) {
      const int64_t time = absl::ToUnixNanos(start_ + row_.load() * kInterval);
      values_.assign(values_.size(), row_.load());
      ASSERT_TRUE(spool_->AppendRows(layout_, {&time, 1}, {}, values_, {}).ok());
    }
  }

  // The collector is there again. What it got must be the newest rows without a hole; returns how
  // many, after all else was reported as lost.
  int ComeBack() {
    collector_.Start();
    const absl::Time end = absl::Now() + absl::Seconds(100);
    while (spool_->begin() != spool_->end() && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(5));
    }
    EXPECT_EQ(spool_->begin(), spool_->end()) << "not delivered";
    std::vector<double> got;
    for (const auto& [sequence, value] : collector_.values()) got.push_back(value);
    uint64_t lost = 0;
    for (const v1::Gap& gap : collector_.gaps()) lost += gap.rows();
    EXPECT_EQ(got.size() + lost, static_cast<uint64_t>(kDay));
    EXPECT_EQ(lost, spool_->Stats().dropped_rows());
    for (size_t i = 0; i < got.size(); ++i) {
      if (got[i] != static_cast<double>(lost + i)) {
        ADD_FAILURE() << "row " << lost + i << " is " << got[i];
        break;
      }
    }
    return static_cast<int>(got.size());
  }

  const std::string path_;
  const absl::Time start_ = absl::FromUnixSeconds(1'700'000'000);
  std::atomic<int> row_ = 0;
  FakeCollector collector_;
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<Sender> sender_;
  uint32_t layout_ = 0;
  std::vector<double> values_;
};

TEST_F(SpoolOutageTest, DayThatFitsTheBoundsArrivesWholeAndCostsNoMemory) {
  Open({.max_age = absl::Hours(24 * 7)}, 400);
  RecordUntil(kDay / 8);
  const double allocated = AllocatedMiB();
  const double resident = ResidentMiB();
  const uint64_t waiting = spool_->Stats().bytes;
  RecordUntil(kDay);
  std::printf("waiting %.1f -> %.1f MiB, allocated %.1f -> %.1f, resident %.1f -> %.1f\n",
              static_cast<double>(waiting) / (1 << 20),
              static_cast<double>(spool_->Stats().bytes) / (1 << 20), allocated, AllocatedMiB(),
              resident, ResidentMiB());
  EXPECT_GT(spool_->Stats().bytes, uint64_t{60} << 20);
  // The three write buffers, of 1 MiB each, may be full at one moment and empty at the other.
  EXPECT_LT(AllocatedMiB(), allocated + 4);
  EXPECT_EQ(ComeBack(), kDay);
}

TEST_F(SpoolOutageTest, WhatIsOlderThanTheAgeBoundIsCountedAndTheRestArrives) {
  Open({.max_age = absl::Hours(12)}, 3);
  RecordUntil(kDay);
  // Up to a 64th of 12 hours more than needed.
  const int got = ComeBack();
  EXPECT_GE(got, kDay / 2);
  EXPECT_LE(got, kDay / 2 + kDay / 2 / 64 + 1);
  EXPECT_EQ(spool_->Stats().Of(SpoolLoss::kAge).rows, static_cast<uint64_t>(kDay - got));
  EXPECT_EQ(spool_->Stats().Of(SpoolLoss::kAge).messages, static_cast<uint64_t>(kDay - got));
}

TEST_F(SpoolOutageTest, WhatIsPastTheBytesIsCountedAndTheRestArrives) {
  constexpr uint64_t kBound = 8u << 20;
  Open({.max_bytes = kBound, .max_age = absl::Hours(24 * 7)}, 80);
  RecordUntil(kDay);
  const uint64_t row_bytes = 8 * 81;  // At least.
  const auto got = static_cast<uint64_t>(ComeBack());
  EXPECT_GT(got * (row_bytes + 32), kBound * 15 / 16 - 1000);
  EXPECT_LT(got * row_bytes, kBound);
  EXPECT_EQ(spool_->Stats().Of(SpoolLoss::kBytes).rows, kDay - got);
}

}  // namespace
}  // namespace tacho::agent
