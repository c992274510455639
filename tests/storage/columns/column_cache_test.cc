// Reading with a cache of columns: whatever is sealed, merged, dropped or unloaded in between, a
// store returns what one without the cache does.
#include "storage/columns/column_cache.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/stale_marker.h"
#include "tests/storage/store_fixture.h"

namespace tacho::storage {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kDay = 86'400 * kSecond;
const double kStale = StaleMarker();

void AddBlock(const SampleBlock& block, std::string* out) {
  for (size_t i = 0; i < block.size(); ++i) {
    absl::StrAppend(out, block.times[i], " ", block.attempts[i], " ", block.steps[i], " ",
                    std::bit_cast<uint64_t>(block.values[i]), "\n");
  }
}

// Samples of `all` from `at` on must be what the summary says.
void CheckSummary(const SampleSummary& summary, bool bound_steps, const SampleBlock& all,
                  size_t at) {
  ASSERT_LE(at + summary.count, all.size());
  const size_t last = at + summary.count - 1;
  SampleSummary expected = {.lowest_step = INT64_MAX, .highest_step = kNoStep};
  double sum = 0;
  for (size_t i = at; i <= last; ++i) {
    EXPECT_EQ(all.attempts[i], summary.attempt);
    sum += all.values[i];
    expected.min = i == at ? all.values[i] : std::min(expected.min, all.values[i]);
    expected.max = i == at ? all.values[i] : std::max(expected.max, all.values[i]);
    if (all.steps[i] == kNoStep) continue;
    expected.lowest_step = std::min(expected.lowest_step, all.steps[i]);
    expected.highest_step = std::max(expected.highest_step, all.steps[i]);
  }
  EXPECT_EQ(summary.first_time_ns, all.times[at]);
  EXPECT_EQ(summary.last_time_ns, all.times[last]);
  EXPECT_EQ(summary.first_step, all.steps[at]);
  EXPECT_EQ(summary.last_step, all.steps[last]);
  EXPECT_EQ(summary.first, all.values[at]);
  EXPECT_EQ(summary.last, all.values[last]);
  EXPECT_EQ(summary.min, expected.min);
  EXPECT_EQ(summary.max, expected.max);
  EXPECT_EQ(summary.sum, sum);
  if (bound_steps && expected.highest_step != kNoStep) {
    EXPECT_EQ(summary.lowest_step, expected.lowest_step);
    EXPECT_EQ(summary.highest_step, expected.highest_step);
  }
}

void Extend(const SampleBlock& from, size_t begin, size_t end, SampleBlock* to) {
  for (size_t i = begin; i < end; ++i) {
    to->times.push_back(from.times[i]);
    to->steps.push_back(from.steps[i]);
    to->attempts.push_back(from.attempts[i]);
    to->values.push_back(from.values[i]);
  }
}

// What a reader returns. With `all`, what it should return, by summaries where it offers them: each
// is checked and stands for its samples of `all`. (Which columns are merged first is by chance, so
// two stores need not offer the same.)
SampleBlock Drain(SeriesReader* reader, const SampleBlock* all = nullptr,
                  bool bound_steps = false) {
  SampleBlock out;
  Want want;
  if (all != nullptr) want = AnySummary();
  want.step_bounds = bound_steps;
  Chunk chunk;
  for (;;) {
    const auto more = reader->Next(want, &chunk);
    EXPECT_TRUE(more.ok()) << more.status();
    if (!more.ok() || !*more) return out;
    if (!chunk.is_summary()) {
      chunk.CopyToBlock();
      Extend(*chunk.block(), 0, chunk.block()->size(), &out);
      continue;
    }
    const SampleSummary& summary = chunk.summary();
    CheckSummary(summary, bound_steps, *all, out.size());
    if (testing::Test::HasFailure()) return out;
    Extend(*all, out.size(), out.size() + summary.count, &out);
  }
}

std::string Text(const SampleBlock& block) {
  std::string out;
  AddBlock(block, &out);
  return out;
}

// Two stores to which the same is done.
class ColumnCacheTest : public StoreFixture, public testing::WithParamInterface<uint64_t> {
 protected:
  ColumnCacheTest() {
    options_.seal_rows = 32;
    options_.retention = absl::Hours(24 * 5);
    options_.job_idle = absl::Minutes(30);
    options_.merge_quiet = absl::Hours(1);
    options_.path = "/plain";
    options_.column_cache_bytes = 0;
    Reopen();
    plain_ = std::move(store_);
    options_.path = "/cached";
    options_.column_cache_bytes = GetParam();
    Reopen();
  }

  template <typename Action>
  void Both(const Action& action) {
    for (Store* const store : {store_.get(), plain_.get()}) {
      const absl::Status status = action(store);
      EXPECT_TRUE(status.ok()) << status;
    }
  }

  // Rows of one layout, somewhere in the last four days: late ones, repeats, gaps, two attempts.
  void AppendSome() {
    const auto task = static_cast<uint32_t>(random_() % 3);
    const auto attempt = static_cast<uint32_t>(random_() % 2);
    const std::vector<std::string> metrics = random_() % 2 == 0
                                                 ? std::vector<std::string>{"loss"}
                                                 : std::vector<std::string>{"loss", "lr"};
    const int64_t begin =
        absl::ToUnixNanos(now_) - static_cast<int64_t>(random_() % 4) * kDay - 1000 * kSecond;
    std::vector<int64_t> times;
    std::vector<int64_t> steps;
    std::vector<double> values;
    for (size_t i = 0, rows = 1 + random_() % 30; i < rows; ++i) {
      times.push_back(begin + static_cast<int64_t>(random_() % 900) * kSecond);
      steps.push_back(random_() % 9 == 0 ? kNoStep : static_cast<int64_t>(random_() % 50));
      for (size_t column = 0; column < metrics.size(); ++column) {
        values.push_back(random_() % 40 == 0   ? kStale
                         : random_() % 40 == 0 ? std::nan("")
                                               : static_cast<double>(random_() % 100) / 4);
      }
    }
    Both([&](Store* store) -> absl::Status {
      const auto registered = store->RegisterLayout(Definition("job", metrics, task, attempt));
      if (!registered.ok()) return registered.status();
      return Wait([&](AppendDone done) {
        store->AppendRows({}, registered->layout, {times, steps, values}, std::move(done));
      });
    });
  }

  ReadOptions SomeOptions() {
    ReadOptions options;
    const int64_t now = absl::ToUnixNanos(now_);
    if (random_() % 2 == 0) {
      options.begin_ns = now - static_cast<int64_t>(random_() % 400'000) * kSecond;
    }
    if (random_() % 2 == 0) {
      options.end_ns = now - static_cast<int64_t>(random_() % 300'000) * kSecond;
    }
    if (random_() % 4 == 0) options.attempt = static_cast<uint32_t>(random_() % 2);
    if (random_() % 8 == 0) options.first_step = static_cast<int64_t>(random_() % 50);
    return options;
  }

  // All series read in both stores, one by summaries if `coarse`.
  void CompareEverything(const ReadOptions& options, bool coarse) {
    const auto expected = plain_->FindSeries({.job = "job"}, 100);
    const auto actual = store_->FindSeries({.job = "job"}, 100);
    ASSERT_TRUE(expected.ok() && actual.ok());
    ASSERT_EQ(actual->size(), expected->size());
    const auto expected_view = plain_->OpenView(*expected);
    const auto actual_view = store_->OpenView(*actual);
    for (size_t i = 0; i < expected->size(); ++i) {
      const SampleBlock all = Drain(expected_view->Read((*expected)[i], options).get());
      const SampleBlock read = Drain(actual_view->Read((*actual)[i], options).get(),
                                     coarse ? &all : nullptr, random_() % 2 == 0);
      ASSERT_EQ(Text(read), Text(all));
    }
    EXPECT_EQ(Newest(*store_, *actual), Newest(*plain_, *expected));
  }

  static std::string Newest(const Store& store, const std::vector<SeriesPtr>& series) {
    const auto latest = store.LatestOf(series);
    if (!latest.ok()) return latest.status().ToString();
    std::string out;
    for (const auto& one : *latest) {
      if (!one) continue;
      absl::StrAppend(&out, one->series->id, " ", one->time_ns, " ", one->step, " ", one->attempt,
                      " ", std::bit_cast<uint64_t>(one->value), "\n");
    }
    return out;
  }

  std::mt19937_64 random_{GetParam() + 5};
  std::unique_ptr<Store> plain_;
};

TEST_P(ColumnCacheTest, ReturnsWhatIsStored) {
  std::unique_ptr<ReadView> old_view;
  std::vector<SeriesPtr> old_series;
  std::vector<std::string> old_texts;
  for (int round = 0; round < 150; ++round) {
    AppendSome();
    switch (random_() % 12) {
      case 0:
      case 1:
      case 2:
        Both([](Store* store) { return store->Seal(); });
        break;
      case 3:
        now_ += absl::Hours(2);
        Both([](Store* store) { return store->Seal(); });
        Both([](Store* store) { return store->MergeFrames(); });
        break;
      case 4:
        now_ += absl::Hours(random_() % 10);
        Both([](Store* store) { return store->EnforceRetention(); });
        break;
      case 5:
        Both([](Store* store) { return store->Seal(); });
        now_ += absl::Hours(1);
        Both([](Store* store) { return store->UnloadIdleJobs(); });
        break;
      default:
        break;
    }
    const ReadOptions options = SomeOptions();
    const bool coarse = random_() % 2 == 0;
    for (int time = 0; time < 2; ++time) {
      CompareEverything(options, coarse);
      ASSERT_FALSE(HasFailure()) << "round " << round << ", time " << time;
    }
    if (round % 25 == 0) {
      // What an older view shows does not change either, nor does it disturb others.
      for (size_t i = 0; i < old_series.size(); ++i) {
        ASSERT_EQ(Text(Drain(old_view->Read(old_series[i], {}).get())), old_texts[i]) << round;
      }
      old_texts.clear();
      old_series = *store_->FindSeries({.job = "job"}, 100);
      old_view = store_->OpenView(old_series);
      for (const SeriesPtr& one : old_series) {
        old_texts.push_back(Text(Drain(old_view->Read(one, {}).get())));
      }
    }
  }
  const StoreStats stats = store_->Stats();
  EXPECT_GT(stats.merges, 0u);
  EXPECT_GT(stats.partitions_dropped, 0u);
  EXPECT_GT(stats.column_cache_hits, 0u);
  EXPECT_GT(stats.column_cache_misses, 0u);
  EXPECT_EQ(plain_->Stats().column_cache_bytes, 0u);
  old_view.reset();
  EXPECT_LE(store_->Stats().column_cache_bytes, GetParam());
}

// The second holds a few columns: what is wanted next has mostly left.
INSTANTIATE_TEST_SUITE_P(Sizes, ColumnCacheTest, testing::Values(64u << 20, 40u << 10));

class DroppedDayTest : public StoreFixture {};

TEST_F(DroppedDayTest, IsForgottenAlsoWhereItComesBack) {
  options_.retention = absl::Hours(24 * 3);
  Reopen();
  const int64_t old_ns = absl::ToUnixNanos(now_);
  const LayoutPtr layouts[] = {Register(Definition("job", {"loss"}, 0)),
                               Register(Definition("job", {"loss"}, 1))};
  for (const LayoutPtr& layout : layouts) ASSERT_TRUE(Append(layout, {old_ns}, {1}, {1}).ok());
  now_ += absl::Hours(24 * 9);
  for (const LayoutPtr& layout : layouts) {
    ASSERT_TRUE(Append(layout, {absl::ToUnixNanos(now_)}, {2}, {2}).ok());
  }
  ASSERT_TRUE(store_->Seal().ok());
  const auto series = *store_->FindSeries({.job = "job"}, 10);
  ASSERT_EQ(series.size(), 2u);
  for (const SeriesPtr& one : series) EXPECT_EQ(ReadAll(one).size(), 2u);
  ASSERT_TRUE(store_->EnforceRetention().ok());
  ASSERT_TRUE(Append(layouts[0], {old_ns + 1}, {3}, {3}).ok());
  ASSERT_TRUE(store_->Seal().ok());
  EXPECT_EQ(ReadAll(series[0]).values, (std::vector<double>{3, 2}));
  EXPECT_EQ(ReadAll(series[1]).values, (std::vector<double>{2}));
}

class ColumnCacheRoomTest : public StoreFixture {};

TEST_F(ColumnCacheRoomTest, WhatIsReadOnceDrivesNothingOut) {
  options_.column_cache_bytes = 80'000;
  Reopen();
  // A hundred columns of 800 bytes and what is noted of each; not much over half of them are kept.
  constexpr size_t kSeries = 100;
  constexpr int64_t kRows = 100;
  std::vector<std::string> names;
  for (size_t i = 0; i < kSeries; ++i) names.push_back(absl::StrCat("metric_", i));
  const LayoutPtr layout = Register(Definition("job", names));
  std::vector<int64_t> times;
  std::vector<int64_t> steps;
  std::vector<double> rows;
  std::vector<double> values;  // The values of each series.
  for (int64_t row = 0; row < kRows; ++row) {
    times.push_back(row * kSecond);
    steps.push_back(row);
    values.push_back(static_cast<double>(row));
    rows.insert(rows.end(), kSeries, values.back());
  }
  ASSERT_TRUE(Append(layout, times, steps, rows).ok());
  std::vector<SeriesPtr> all;
  for (const std::string& name : names) all.push_back(Find("job", name));
  ASSERT_TRUE(store_->Seal().ok());
  const std::vector<SeriesPtr> few(all.begin(), all.begin() + 12);
  // Returns how many columns had to be decoded.
  const auto read = [&](const std::vector<SeriesPtr>& some, bool once) {
    const auto view = store_->OpenView(some);
    for (const SeriesPtr& series : some) {
      EXPECT_EQ(Drain(view->Read(series, {.read_once = once}).get()).values, values);
    }
    return view->columns_decoded();
  };
  EXPECT_EQ(read(few, true), few.size());
  EXPECT_EQ(read(few, false), 0u) << "there was room";
  EXPECT_EQ(read(all, true), all.size() - few.size());
  EXPECT_LE(store_->Stats().column_cache_bytes, options_.column_cache_bytes / 2 + 2'000);
  EXPECT_EQ(read(few, false), 0u);
  EXPECT_GE(read(all, false), all.size() / 2);
  EXPECT_EQ(read(few, false), few.size()) << "what is read to be kept does drive it out";
}

class ColumnCacheThreadsTest : public StoreFixture {};

TEST_F(ColumnCacheThreadsTest, EverybodySeesWhatWasDurableBefore) {
  options_.seal_rows = 64;
  options_.merge_quiet = absl::ZeroDuration();
  Reopen();
  const LayoutPtr layouts[] = {Register(Definition("job", {"loss"}, 0)),
                               Register(Definition("job", {"loss"}, 1))};
  const auto series = *store_->FindSeries({.job = "job"}, 10);
  ASSERT_EQ(series.size(), 2u);
  std::atomic<int64_t> durable = 0;
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        const int64_t least = durable;
        const auto view = store_->OpenView(series);
        for (const SeriesPtr& one : series) {
          const auto reader = view->Read(one, {});
          SampleBlock block;
          int64_t next = 0;
          for (;;) {
            const auto more = NextBlock(reader, &block);
            ASSERT_TRUE(more.ok()) << more.status();
            if (!*more) break;
            for (size_t row = 0; row < block.size(); ++row, ++next) {
              ASSERT_EQ(block.times[row], next * kSecond);
              ASSERT_EQ(block.values[row], static_cast<double>(next));
            }
          }
          ASSERT_GE(next, least);
        }
      }
    });
  }
  for (int64_t row = 0; row < 600; ++row) {
    for (const LayoutPtr& layout : layouts) {
      ASSERT_TRUE(Append(layout, {row * kSecond}, {row}, {static_cast<double>(row)}).ok());
    }
    durable = row + 1;
    if (row % 3 == 0) {
      ASSERT_TRUE(store_->Seal().ok());
    }
    if (row % 50 == 0) {
      ASSERT_TRUE(store_->MergeFrames().ok());
    }
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(store_->Stats().merges, 0u);
}

TEST(ColumnMomentTest, AWriteOnItsWayLeavesItsSourceInDoubt) {
  SeriesSource sources[] = {{"job", 0, "a", 0}, {"job", 1, "b", 1}};
  Series series[2];
  for (size_t i = 0; i < 2; ++i) {
    series[i].id = i + 1;
    series[i].job_id = 1;
    series[i].source = &sources[i];
  }
  while (ColumnCache::SourceOf(series[0]) == ColumnCache::SourceOf(series[1])) {
    sources[1].host += "b";
  }
  Layout layout;
  layout.series = {&series[0]};
  ColumnCache cache(1 << 20);
  ColumnMoment before(cache);
  before.End(cache);
  ASSERT_TRUE(before.Of(series[0]).has_value());
  std::optional<ColumnMoment> during;
  {
    ColumnWrite write(&cache, ColumnWrite::Kind::kReplaces);
    write.AddSourceOf(layout);
    during.emplace(cache);
    during->End(cache);
    EXPECT_FALSE(during->Of(series[0]).has_value());
    EXPECT_EQ(during->Of(series[1]), before.Of(series[1]));
    during.emplace(cache);
  }
  during->End(cache);
  EXPECT_FALSE(during->Of(series[0]).has_value()) << "it ended after the moment had begun";
  ColumnMoment after(cache);
  after.End(cache);
  ASSERT_TRUE(after.Of(series[0]).has_value());
  EXPECT_EQ(after.Of(series[0])->writes, before.Of(series[0])->writes + 1);
  EXPECT_EQ(after.Of(series[0])->rewrites, before.Of(series[0])->rewrites + 1);
}

}  // namespace
}  // namespace tacho::storage
