// What a receiver gets through a cursor: everything, whatever was sealed, trimmed or merged
// meanwhile, and whenever the process ended.
#include "storage/forward_log.h"

#include <bit>
#include <map>
#include <random>
#include <tuple>

#include "gmock/gmock.h"
#include "proto/base/stale_marker.h"
#include "tests/storage/store_fixture.h"

namespace tacho::storage {
namespace {

constexpr int64_t kForwardBase = int64_t{1'700'000'000} * 1'000'000'000;
constexpr int64_t kForwardDay = int64_t{86'400} * 1'000'000'000;

// (task, metric, attempt, time, bits of the value) and how often it came.
using Sample = std::tuple<uint32_t, std::string, uint32_t, int64_t, uint64_t>;
using Counted = std::map<Sample, int>;

class CountingSink final : public ForwardSink {
 public:
  bool Wants(const LayoutPtr& layout, size_t column) override {
    return unwanted.empty() || layout->series[column]->metric->name != unwanted;
  }
  void Take(const LayoutPtr& layout, size_t column, std::span<const int64_t> times,
            std::span<const double> values) override {
    const Series& series = *layout->series[column];
    for (size_t i = 0; i < times.size(); ++i) {
      if (IsStaleMarker(values[i])) continue;
      ++seen[{series.source->task.value_or(0), series.metric->name, layout->attempt, times[i],
              std::bit_cast<uint64_t>(values[i])}];
      ordered = ordered && times[i] >= last[{series.id, layout->attempt}];
      last[{series.id, layout->attempt}] = times[i];
    }
  }

  std::string unwanted;
  Counted seen;
  std::map<std::pair<SeriesId, uint32_t>, int64_t> last;
  bool ordered = true;
};

class ForwardLogTest : public StoreFixture {
 protected:
  std::unique_ptr<ForwardLog> OpenLog(ForwardLog::Start start = ForwardLog::Start::kNow) {
    auto log = ForwardLog::Open(store_.get(), "receiver", start);
    EXPECT_TRUE(log.ok()) << log.status();
    return log.ok() ? *std::move(log) : nullptr;
  }
  // Everything that there is, in requests of a few samples.
  void TakeAll(ForwardLog* log, size_t request = 3) {
    for (;;) {
      const auto more = log->Next(request, &sink_);
      ASSERT_TRUE(more.ok()) << more.status();
      if (!*more) return;
      ASSERT_TRUE(log->Commit(1).ok());
    }
  }
  // A row, which is to come.
  void Put(const LayoutPtr& layout, int64_t time_ns, double value) {
    std::vector<double> values;
    for (size_t i = 0; i < layout->series.size(); ++i) values.push_back(value + double(i));
    ASSERT_TRUE(Append(layout, {time_ns}, {1}, values).ok());
    for (size_t i = 0; i < layout->series.size(); ++i) {
      const Series& series = *layout->series[i];
      put_[{series.source->task.value_or(0), series.metric->name, layout->attempt, time_ns,
            std::bit_cast<uint64_t>(values[i])}] = 1;
    }
  }

  CountingSink sink_;
  Counted put_;
};

TEST_F(ForwardLogTest, ACursorIsReadAsItWasWritten) {
  const ForwardCursor cursor{7, 9, 3, uint64_t{1} << 40, 5, -12};
  EXPECT_EQ(ForwardCursor::Decode(cursor.Encode()), cursor);
  const std::string bytes = cursor.Encode();
  EXPECT_EQ(ForwardCursor::Decode(bytes.substr(1)), std::nullopt);
  EXPECT_EQ(ForwardCursor::Decode(bytes + "x"), std::nullopt);
  EXPECT_EQ(ForwardCursor::Decode(""), std::nullopt);
}

TEST_F(ForwardLogTest, WhatIsStoredComesOnceWhileTheReceiverKeepsUp) {
  const auto layout = Register(Definition("job", {"a", "b"}));
  Put(layout, kForwardBase, 1);
  put_.clear();  // Stored before there was a receiver.
  const auto log = OpenLog();
  for (int i = 1; i <= 10; ++i) {
    Put(layout, kForwardBase + i, i);
    TakeAll(log.get());
    if (i % 3 == 0) {
      ASSERT_TRUE(store_->Seal().ok());
    }
  }
  EXPECT_EQ(sink_.seen, put_);
  EXPECT_TRUE(sink_.ordered);
}

TEST_F(ForwardLogTest, ANewReceiverCanHaveTheHistory) {
  const auto one = Register(Definition("job", {"a", "b"}));
  const auto two = Register(Definition("other", {"a"}, 3));
  for (int i = 0; i < 40; ++i) {
    Put(one, kForwardBase + i * kForwardDay / 8, i);
    Put(two, kForwardBase + i * kForwardDay / 8, -i);
    if (i == 20) {
      ASSERT_TRUE(store_->Seal().ok());
    }
  }
  TakeAll(OpenLog(ForwardLog::Start::kOldest).get());
  EXPECT_EQ(sink_.seen, put_);
  EXPECT_TRUE(sink_.ordered);
}

// The journal has forgotten what the receiver lacks, and the process has ended meanwhile.
TEST_F(ForwardLogTest, AReceiverThatWasAwayGetsWhatItMissed) {
  const auto one = Register(Definition("job", {"a", "b"}));
  const auto two = Register(Definition("other", {"a"}, 3));
  auto log = OpenLog();
  Put(one, kForwardBase, 0);
  TakeAll(log.get());
  ASSERT_TRUE(store_->Seal().ok());
  log = nullptr;
  for (int i = 1; i <= 60; ++i) {
    Put(one, kForwardBase + i * kForwardDay / 8, i);
    Put(two, kForwardBase + i * kForwardDay / 8, -i);
    if (i == 20 || i == 40) {
      ASSERT_TRUE(store_->Seal().ok());
    }
    if (i == 30) Reopen();
  }
  // Layouts that were not registered when the cursor was written, and rows that come while a sweep
  // is at work.
  log = OpenLog();
  ASSERT_TRUE(log->Next(10, &sink_).ok());
  EXPECT_NE(log->cursor().until, 0u);
  Put(one, kForwardBase + 61 * kForwardDay / 8, 61);
  ASSERT_TRUE(store_->Seal().ok());
  Put(two, kForwardBase + 61 * kForwardDay / 8, 61);
  TakeAll(log.get());
  EXPECT_EQ(sink_.seen, put_);
  EXPECT_EQ(log->cursor().until, 0u);
}

TEST_F(ForwardLogTest, WhatIsNotWantedIsPassedOver) {
  const auto layout = Register(Definition("job", {"a", "b"}));
  const auto log = OpenLog();
  sink_.unwanted = "b";
  for (int i = 0; i < 10; ++i) Put(layout, kForwardBase + i, i);
  ASSERT_TRUE(store_->Seal().ok());
  for (int i = 10; i < 20; ++i) Put(layout, kForwardBase + i, i);
  std::erase_if(put_, [](const auto& sample) { return std::get<1>(sample.first) == "b"; });
  TakeAll(log.get());
  EXPECT_EQ(sink_.seen, put_);
}

TEST_F(ForwardLogTest, WhatWasNotCommittedComesAgain) {
  const auto layout = Register(Definition("job", {"a"}));
  auto log = OpenLog();
  Put(layout, kForwardBase, 1);
  ASSERT_TRUE(log->Next(100, &sink_).ok());
  log = OpenLog();
  TakeAll(log.get());
  for (auto& [sample, count] : put_) count = 2;
  EXPECT_EQ(sink_.seen, put_);
}

// Against a model: rows of several layouts in any order of time, sealing, merging, and receivers
// that end at any moment.
class ForwardLogModelTest : public ForwardLogTest,
                            public ::testing::WithParamInterface<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, ForwardLogModelTest, ::testing::Range(1u, 13u));

TEST_P(ForwardLogModelTest, NothingIsMissingWhateverHappens) {
  std::mt19937 random(GetParam());
  options_.seal_rows = 16;
  Reopen();
  std::vector<LayoutPtr> layouts;
  auto log = OpenLog();
  for (int i = 0; i < 2000; ++i) {
    const auto dice = random() % 100;
    if (layouts.size() < 3 || dice == 0) {
      const auto n = static_cast<uint32_t>(layouts.size());
      layouts.push_back(Register(Definition(n % 2 == 0 ? "job" : "other", {"a", "b"}, n / 2)));
    }
    if (dice < 70) {
      Put(layouts[random() % layouts.size()],
          kForwardBase + int64_t(random() % 5) * kForwardDay + i, i);
    } else if (dice < 75) {
      ASSERT_TRUE(store_->Seal().ok());
    } else if (dice < 77) {
      ASSERT_TRUE(store_->MergeFrames().ok());
    } else if (dice < 80) {
      log = OpenLog();
    } else if (dice < 84) {
      const auto more = log->Next(1 + random() % 20, &sink_);
      ASSERT_TRUE(more.ok()) << more.status();
      if (random() % 2 == 0) {
        ASSERT_TRUE(log->Commit(i).ok());
      }
    }
  }
  TakeAll(log.get());
  for (auto& [sample, count] : sink_.seen) count = std::min(count, 1);
  EXPECT_EQ(sink_.seen, put_);
}

}  // namespace
}  // namespace tacho::storage
