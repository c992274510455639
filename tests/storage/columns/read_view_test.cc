// Reading through a view: consistent, merged, day by day, and by summaries where columns allow it.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/stale_marker.h"
#include "storage/codec/keys.h"
#include "tests/storage/store_fixture.h"

namespace tacho::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kBegin = 1'700'000'000 * kSecond;

class ReadViewTest : public StoreFixture {
 protected:
  static SampleBlock Drain(SeriesReader* reader) {
    SampleBlock all;
    SampleBlock block;
    for (;;) {
      const auto more = NextBlock(reader, &block);
      EXPECT_TRUE(more.ok()) << more.status();
      if (!more.ok() || !*more) return all;
      EXPECT_GT(block.size(), 0u);
      all.times.insert(all.times.end(), block.times.begin(), block.times.end());
      all.steps.insert(all.steps.end(), block.steps.begin(), block.steps.end());
      all.attempts.insert(all.attempts.end(), block.attempts.begin(), block.attempts.end());
      all.values.insert(all.values.end(), block.values.begin(), block.values.end());
    }
  }

  // Appends rows of a layout with one series, seconds after kBegin; the steps are the seconds.
  void AppendSeconds(const LayoutPtr& layout, const std::vector<int64_t>& seconds,
                     const std::vector<double>& values) {
    std::vector<int64_t> times;
    for (const int64_t second : seconds) times.push_back(kBegin + second * kSecond);
    ASSERT_TRUE(Append(layout, times, seconds, values).ok());
  }
};

TEST_F(ReadViewTest, AViewSeesWhatWasThereWhenItWasMadeAndNothingElse) {
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  AppendSeconds(layout, {1, 2}, {1, 2});
  ASSERT_TRUE(store_->Seal().ok());
  AppendSeconds(layout, {3}, {3});
  const SeriesPtr loss = Find("job", "loss");
  const auto view = store_->OpenView({loss});
  AppendSeconds(layout, {2, 4}, {22, 4});
  ASSERT_TRUE(store_->Seal().ok()) << "what the view saw open is a column now";
  EXPECT_THAT(Drain(view->Read(loss, {}).get()).values, ElementsAre(1, 2, 3));
  EXPECT_THAT(Drain(view->Read(loss, {}).get()).values, ElementsAre(1, 2, 3)) << "again";
  EXPECT_THAT(ReadAll(loss).values, ElementsAre(1, 22, 3, 4));
  view->Read(loss, {}).reset();
}

TEST_F(ReadViewTest, AViewOutlivesTheDaysItReads) {
  options_.retention = absl::Hours(24);
  Reopen();
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  AppendSeconds(layout, {1, 2}, {1, 2});
  ASSERT_TRUE(store_->Seal().ok());
  const SeriesPtr loss = Find("job", "loss");
  const auto view = store_->OpenView({loss});
  now_ += absl::Hours(24 * 9);
  ASSERT_TRUE(store_->EnforceRetention().ok());
  EXPECT_THAT(Drain(view->Read(loss, {}).get()).values, ElementsAre(1, 2));
}

TEST_F(ReadViewTest, ReadersOfOneViewDoNotDisturbEachOther) {
  const LayoutPtr layout = Register(Definition("job", {"a", "b"}));
  for (int64_t second = 0; second < 6; ++second) {
    ASSERT_TRUE(Append(layout, {kBegin + second * kSecond}, {second},
                       {static_cast<double>(second), static_cast<double>(-second)})
                    .ok());
    if (second % 2 == 1) {
      ASSERT_TRUE(store_->Seal().ok());
    }
  }
  const SeriesPtr a = Find("job", "a");
  const SeriesPtr b = Find("job", "b");
  const auto view = store_->OpenView({a, b});
  const auto first = view->Read(a, {});
  const auto second = view->Read(b, {});
  SampleBlock block_a;
  SampleBlock block_b;
  std::vector<double> values_a;
  std::vector<double> values_b;
  while (*NextBlock(first, &block_a) && *NextBlock(second, &block_b)) {
    values_a.insert(values_a.end(), block_a.values.begin(), block_a.values.end());
    values_b.insert(values_b.end(), block_b.values.begin(), block_b.values.end());
  }
  EXPECT_THAT(values_a, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(values_b, ElementsAre(0, -1, -2, -3, -4, -5));
}

// The last sample of each step but for the step of the last sample, as a view should have them.
std::vector<uint32_t> StepEnds(std::span<const int64_t> steps) {
  std::vector<uint32_t> ends;
  for (uint32_t i = 0; i + 1 < steps.size(); ++i) {
    if (steps[i] != steps[i + 1]) ends.push_back(i);
  }
  return ends;
}

void CheckStepOrder(const SampleView& view) {
  const std::span<const int64_t> steps = view.columns.steps;
  std::vector<uint32_t> told;
  for (const uint32_t end : view.step_ends) told.push_back(end - view.step_ends_from);
  if (view.step_order == StepOrder::kAny) {
    EXPECT_THAT(told, IsEmpty());
    return;
  }
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
  if (view.step_order == StepOrder::kNeverFall) {
    EXPECT_EQ(told, StepEnds(steps));
  } else {
    EXPECT_EQ(StepEnds(steps).size(), steps.size() - 1) << "each is higher";
    EXPECT_THAT(told, IsEmpty());
  }
}

// Checks that all chunks together are `all`. Returns how many of each order showed a column as it
// lies.
std::map<StepOrder, int> CheckViews(std::unique_ptr<SeriesReader> reader, const SampleBlock& all) {
  std::map<StepOrder, int> offered;
  SampleBlock read;
  SampleView last;
  Chunk chunk;
  for (;;) {
    const auto more = reader->Next({}, &chunk);
    EXPECT_TRUE(more.ok()) << more.status();
    if (!more.ok()) return offered;
    if (!*more) break;
    const SampleView& view = chunk.samples();
    EXPECT_GT(view.size(), 0u);
    if (view.owner != nullptr) {
      ++offered[view.step_order];
      EXPECT_THAT(view.attempts, IsEmpty()) << "columns are of one attempt";
      CheckStepOrder(view);
      last = view;
    } else {
      EXPECT_EQ(view.step_order, StepOrder::kAny);
    }
    for (size_t i = 0; i < view.size(); ++i) read.attempts.push_back(view.AttemptOf(i));
    const SampleColumns& columns = view.columns;
    read.times.insert(read.times.end(), columns.times.begin(), columns.times.end());
    read.steps.insert(read.steps.end(), columns.steps.begin(), columns.steps.end());
    read.values.insert(read.values.end(), columns.values.begin(), columns.values.end());
  }
  reader.reset();
  // A view holds what it shows.
  const auto end = all.times.end();
  EXPECT_TRUE(last.size() == 0 || std::search(all.times.begin(), end, last.columns.times.begin(),
                                              last.columns.times.end()) != end);
  EXPECT_EQ(read.times, all.times);
  EXPECT_EQ(read.steps, all.steps);
  EXPECT_EQ(read.attempts, all.attempts);
  const auto bits = [](double a, double b) {
    return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
  };
  EXPECT_TRUE(std::equal(read.values.begin(), read.values.end(), all.values.begin(),
                         all.values.end(), bits));
  return offered;
}

TEST_F(ReadViewTest, ViewsShowColumnsThatStandAloneAndTheOrderOfTheirSteps) {
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  int64_t second = 0;
  const auto append = [&](const std::vector<int64_t>& steps) {
    std::vector<int64_t> times;
    std::vector<double> values;
    for (size_t i = 0; i < steps.size(); ++i) {
      times.push_back(kBegin + ++second * kSecond);
      values.push_back(static_cast<double>(second));
    }
    ASSERT_TRUE(Append(layout, times, steps, values).ok());
    ASSERT_TRUE(store_->Seal().ok());
  };
  append({1, 2, 3, 4});
  append({5, 5, 5, 6, 7, 7, 9, 9});
  append({9, 9, 9});
  append({10, 11, 3, 4});
  append({kNoStep, kNoStep, 5, 6});
  const SeriesPtr loss = Find("job", "loss");
  // The second time from memory.
  for (int i = 0; i < 2; ++i) {
    const auto offered = CheckViews(store_->Read(loss, {}), ReadAll(loss));
    EXPECT_EQ(offered,
              (std::map<StepOrder, int>{
                  {StepOrder::kRise, 1}, {StepOrder::kNeverFall, 3}, {StepOrder::kAny, 1}}));
  }
  // Whatever part of them is asked for.
  for (int64_t begin = 0; begin <= second + 1; ++begin) {
    for (int64_t end = begin; end <= second + 1; ++end) {
      ReadOptions options;
      options.begin_ns = kBegin + begin * kSecond;
      options.end_ns = kBegin + end * kSecond;
      CheckViews(store_->Read(loss, options), ReadAll(loss, options));
    }
  }
  ReadOptions steps;
  steps.first_step = 6;
  CheckViews(store_->Read(loss, steps), ReadAll(loss, steps));
  // What an open row lies within is not shown.
  ASSERT_TRUE(Append(layout, {kBegin + 2 * kSecond}, {2}, {22}).ok());
  EXPECT_EQ(CheckViews(store_->Read(loss, {}), ReadAll(loss)).count(StepOrder::kRise), 0u);
}

void CheckEnd(const SampleEnds::End& end, int64_t time_ns, const SampleBlock& all, size_t begin) {
  EXPECT_EQ(end.time_ns, time_ns);
  bool found = false;
  for (size_t i = begin; i < all.size(); ++i) {
    found |= all.times[i] == time_ns && all.steps[i] == end.step && all.attempts[i] == end.attempt;
  }
  EXPECT_TRUE(found) << "one of the samples of that time";
}

// Checks that the ends of what is left are those of the samples that then come, at the beginning
// and after `chunks` chunks.
void CheckEnds(SeriesReader* reader, const SampleBlock& all, size_t chunks) {
  SampleBlock block;
  for (size_t at = 0;; at += block.size()) {
    if (chunks == 0 || at == 0) {
      const auto ends = reader->FindEnds();
      ASSERT_TRUE(ends.ok()) << ends.status();
      ASSERT_EQ(ends->has_value(), at < all.size());
      if (!ends->has_value()) break;
      CheckEnd((*ends)->first, all.times[at], all, at);
      CheckEnd((*ends)->last, all.times.back(), all, at);
      if (chunks == 0 && at > 0) break;
    }
    chunks -= chunks > 0 ? 1 : 0;
    const auto more = NextBlock(reader, &block);
    ASSERT_TRUE(more.ok()) << more.status();
    ASSERT_EQ(*more, at < all.size());
    if (!*more) break;
  }
}

// Random frames over three days, overlapping, out of order, with repeats of times, stale markers
// and two attempts, against a map.
TEST_F(ReadViewTest, EqualsAModelWhateverTheFrames) {
  std::mt19937_64 random(20);
  using Identity = std::tuple<int64_t, uint32_t, int64_t>;
  std::map<Identity, uint64_t> model;
  const LayoutPtr layouts[] = {Register(Definition("job", {"loss"}, 0, 0)),
                               Register(Definition("job", {"loss", "extra"}, 0, 1))};
  const double odd[] = {std::numeric_limits<double>::quiet_NaN(),
                        -std::numeric_limits<double>::infinity(), -0.0, StaleMarker(), 5e-324};
  const auto append = [&] {
    const uint32_t attempt = random() % 2;
    std::vector<int64_t> times;
    std::vector<int64_t> steps;
    std::vector<double> values;
    const int64_t begin = kBegin + static_cast<int64_t>(random() % 200'000) * kSecond;
    for (size_t i = 0, rows = 1 + random() % 40; i < rows; ++i) {
      times.push_back(begin + static_cast<int64_t>(random() % 60) * kSecond);
      steps.push_back(random() % 3 == 0 ? kNoStep : static_cast<int64_t>(random() % 2));
      const double value =
          random() % 4 == 0 ? odd[random() % std::size(odd)] : static_cast<double>(random() % 9);
      values.push_back(value);
      if (attempt == 1) values.push_back(1);
      if (IsStaleMarker(value)) continue;
      model[{times.back(), attempt, steps.back()}] = std::bit_cast<uint64_t>(value);
    }
    ASSERT_TRUE(Append(layouts[attempt], times, steps, values).ok());
  };
  const auto check = [&](const ReadOptions& options) {
    std::vector<std::pair<Identity, uint64_t>> expected;
    for (const auto& [identity, bits] : model) {
      const auto& [time, attempt, step] = identity;
      if (time < options.begin_ns || (options.end_ns != INT64_MAX && time >= options.end_ns)) {
        continue;
      }
      if (options.attempt && attempt != *options.attempt) continue;
      if (options.first_step && (step == kNoStep || step < *options.first_step)) continue;
      expected.push_back({identity, bits});
    }
    const SampleBlock read = ReadAll(Find("job", "loss"), options);
    std::vector<std::pair<Identity, uint64_t>> actual;
    for (size_t i = 0; i < read.size(); ++i) {
      actual.push_back({{read.times[i], read.attempts[i], read.steps[i]},
                        std::bit_cast<uint64_t>(read.values[i])});
    }
    ASSERT_EQ(actual, expected);
    for (const size_t chunks : {0, 1, 3}) {
      CheckEnds(store_->Read(Find("job", "loss"), options).get(), read, chunks);
    }
    CheckViews(store_->Read(Find("job", "loss"), options), read);
  };
  for (int round = 0; round < 300; ++round) {
    append();
    if (random() % 3 == 0) {
      ASSERT_TRUE(store_->Seal().ok());
    }
    if (round % 20 != 0) continue;
    check({});
    ReadOptions part;
    part.begin_ns = kBegin + static_cast<int64_t>(random() % 200'000) * kSecond;
    part.end_ns = part.begin_ns + static_cast<int64_t>(random() % 100'000) * kSecond;
    check(part);
    part.attempt = random() % 2;
    check(part);
    part.first_step = 1;
    check(part);
  }
}

// Reads by summaries where they are offered, else by samples; checks each summary against `all`.
std::pair<size_t, size_t> ReadCoarsely(SeriesReader* reader, const SampleBlock& all) {
  size_t at = 0;
  size_t summaries = 0;
  Chunk chunk;
  for (;;) {
    const auto more = reader->Next(AnySummary(), &chunk);
    EXPECT_TRUE(more.ok()) << more.status();
    if (!more.ok() || !*more) return {at, summaries};
    if (!chunk.is_summary()) {
      at += chunk.samples().size();
      continue;
    }
    const SampleSummary& summary = chunk.summary();
    ++summaries;
    const size_t end = at + summary.count;
    EXPECT_LE(end, all.size());
    if (end > all.size()) return {at, summaries};
    double sum = 0;
    for (size_t i = at; i < end; ++i) sum += all.values[i];
    const auto begin = all.values.begin() + static_cast<ptrdiff_t>(at);
    const auto [min, max] = std::minmax_element(begin, begin + static_cast<ptrdiff_t>(end - at));
    EXPECT_EQ(summary.sum, sum);
    EXPECT_EQ(summary.min, *min);
    EXPECT_EQ(summary.max, *max);
    EXPECT_EQ(summary.first, all.values[at]);
    EXPECT_EQ(summary.last, all.values[end - 1]);
    EXPECT_EQ(summary.first_time_ns, all.times[at]);
    EXPECT_EQ(summary.last_time_ns, all.times[end - 1]);
    EXPECT_EQ(summary.first_step, all.steps[at]);
    EXPECT_EQ(summary.last_step, all.steps[end - 1]);
    EXPECT_EQ(summary.attempt, all.attempts[at]);
    at = end;
  }
}

TEST_F(ReadViewTest, ColumnsThatStandAloneAreSummarisedAndOthersAreNot) {
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  AppendSeconds(layout, {0, 1, 2}, {5, 3, 4});  // Alone.
  ASSERT_TRUE(store_->Seal().ok());
  AppendSeconds(layout, {10, 20, 30}, {1, 2, 3});  // The next lies within.
  ASSERT_TRUE(store_->Seal().ok());
  AppendSeconds(layout, {15, 20}, {7, 8});
  ASSERT_TRUE(store_->Seal().ok());
  AppendSeconds(layout, {40, 41}, {std::nan(""), 1});  // Not all finite.
  ASSERT_TRUE(store_->Seal().ok());
  AppendSeconds(layout, {50, 51}, {1, 2});  // Alone.
  ASSERT_TRUE(store_->Seal().ok());
  AppendSeconds(layout, {60, 61, 62}, {1, 2, 3});  // An open row lies within.
  ASSERT_TRUE(store_->Seal().ok());
  AppendSeconds(layout, {61}, {9});
  const SeriesPtr loss = Find("job", "loss");
  const SampleBlock all = ReadAll(loss);
  ASSERT_EQ(all.size(), 14u);
  EXPECT_EQ(ReadCoarsely(store_->Read(loss, {}).get(), all), std::pair(size_t{14}, size_t{2}));
}

TEST_F(ReadViewTest, ColumnsThatReachOutOfTheRangeAreNotSummarised) {
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  for (const int64_t begin : {0, 10, 20}) {
    AppendSeconds(layout, {begin, begin + 1}, {1, 2});
    ASSERT_TRUE(store_->Seal().ok());
  }
  const SeriesPtr loss = Find("job", "loss");
  ReadOptions options;
  options.begin_ns = kBegin + 1 * kSecond;
  options.end_ns = kBegin + 21 * kSecond;
  const SampleBlock all = ReadAll(loss, options);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(ReadCoarsely(store_->Read(loss, options).get(), all), std::pair(size_t{4}, size_t{1}));
  options.first_step = 0;
  EXPECT_EQ(ReadCoarsely(store_->Read(loss, options).get(), all), std::pair(size_t{4}, size_t{0}))
      << "a range of steps has to look at every row";
  ReadOptions other_attempt;
  other_attempt.attempt = 5;
  EXPECT_EQ(ReadCoarsely(store_->Read(loss, other_attempt).get(), {}),
            std::pair(size_t{0}, size_t{0}));
}

TEST_F(ReadViewTest, ARefusedSummaryLeavesTheSamplesToBeRead) {
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  AppendSeconds(layout, {1, 2}, {1, 2});
  ASSERT_TRUE(store_->Seal().ok());
  const SeriesPtr loss = Find("job", "loss");
  const auto reader = store_->Read(loss, {});
  Chunk chunk;
  ASSERT_TRUE(*reader->Next({.summary = [](const SampleSummary&) { return false; }}, &chunk));
  ASSERT_FALSE(chunk.is_summary());
  EXPECT_THAT(chunk.samples().columns.values, ElementsAre(1, 2));
  EXPECT_FALSE(*reader->Next({}, &chunk));
  EXPECT_FALSE(*reader->Next(AnySummary(), &chunk));
}

TEST_F(ReadViewTest, RowsOfOneFrameWithTheSameTimeAreNotCountedTwiceInASummary) {
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  const int64_t time = kBegin + kSecond;
  ASSERT_TRUE(Append(layout, {time, time, time + 1}, {1, 1, 1}, {100, 1, 2}).ok());
  ASSERT_TRUE(store_->Seal().ok());
  const SeriesPtr loss = Find("job", "loss");
  const SampleBlock all = ReadAll(loss);
  EXPECT_THAT(all.values, ElementsAre(1, 2));
  EXPECT_EQ(ReadCoarsely(store_->Read(loss, {}).get(), all).first, 2u);
}

TEST_F(ReadViewTest, EndsAreKnownFromHeadersUnlessTheRangeCutsAColumn) {
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  for (const int64_t begin : {0, 10, 20}) {
    AppendSeconds(layout, {begin, begin + 1, begin + 2}, {1, 2, std::nan("")});
    ASSERT_TRUE(store_->Seal().ok());
  }
  const SeriesPtr loss = Find("job", "loss");
  const auto decoded_for_ends = [&](const ReadOptions& options) {
    Reopen();  // So that nothing is known.
    const SeriesPtr series = Find("job", "loss");
    const auto view = store_->OpenView({series});
    EXPECT_TRUE(view->Read(series, options)->FindEnds().ok());
    return view->columns_decoded();
  };
  ReadOptions options;
  options.attempt = 5;
  CheckEnds(store_->Read(loss, options).get(), {}, 0);
  EXPECT_EQ(decoded_for_ends(options), 0u);
  EXPECT_EQ(decoded_for_ends({}), 0u);
  options = {};
  options.begin_ns = kBegin + 1 * kSecond;
  EXPECT_EQ(decoded_for_ends(options), 1u);
  options.end_ns = kBegin + 22 * kSecond;
  EXPECT_EQ(decoded_for_ends(options), 2u);
  const SampleBlock all = ReadAll(Find("job", "loss"), options);
  ASSERT_EQ(all.size(), 7u);
  CheckEnds(store_->Read(Find("job", "loss"), options).get(), all, 0);
  options.first_step = 0;
  EXPECT_EQ(decoded_for_ends(options), 2u) << "a range of steps has to look at rows";
  CheckEnds(store_->Read(Find("job", "loss"), options).get(), ReadAll(Find("job", "loss"), options),
            2);
}

TEST_F(ReadViewTest, AnEmptyRangeHasNothing) {
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  AppendSeconds(layout, {1}, {1});
  ASSERT_TRUE(store_->Seal().ok());
  ReadOptions options;
  options.begin_ns = kBegin + 2 * kSecond;
  EXPECT_THAT(ReadAll(Find("job", "loss"), options).values, IsEmpty());
  options.end_ns = options.begin_ns;
  EXPECT_THAT(ReadAll(Find("job", "loss"), options).values, IsEmpty());
}

}  // namespace
}  // namespace tacho::storage
