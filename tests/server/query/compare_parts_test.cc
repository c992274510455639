// The parts of a comparison by step over random samples: each step once, and one series alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "server/query/compare/compared_metric.h"
#include "server/query/read/step_order.h"

namespace tacho::server::query {
namespace {

// Returns blocks, and views where it holds a piece of one attempt.
class ListReader final : public storage::SeriesReader {
 public:
  ListReader(std::vector<Sample> samples, size_t block_size, bool shows)
      : samples_(std::move(samples)), block_size_(block_size), shows_(shows) {}

  absl::StatusOr<bool> Next(const storage::Want&, storage::Chunk* chunk) override {
    const auto block = std::make_shared<storage::SampleBlock>();
    if (!Take(block.get())) return false;
    const bool mixed = LeadingRows(block->attempts.front(), block->attempts) < block->size();
    if (mixed || !shows_ || (++calls_ % 5) == 0) {
      *chunk->block() = *block;
      chunk->ShowBlock();
      return true;
    }
    storage::SampleView view = {
        .attempt = block->attempts.front(), .columns = block->columns(), .owner = block};
    TellOrder(&view);
    chunk->Set(std::move(view));
    return true;
  }
  absl::StatusOr<std::optional<storage::SampleEnds>> FindEnds() override {
    return absl::UnimplementedError("these tests do not look ahead");
  }

 private:
  bool Take(storage::SampleBlock* block) {
    for (; next_ < samples_.size() && block->size() < block_size_; ++next_) {
      block->times.push_back(samples_[next_].time_ns);
      block->steps.push_back(samples_[next_].step);
      block->attempts.push_back(samples_[next_].attempt);
      block->values.push_back(samples_[next_].value);
    }
    return block->size() > 0;
  }

  // Reports it for some views only, as if they began within a column.
  void TellOrder(storage::SampleView* view) {
    const std::span<const int64_t> steps = view->columns.steps;
    if (calls_ % 3 == 0 || !std::is_sorted(steps.begin(), steps.end())) return;
    view->step_ends_from = 7;
    ends_.emplace_back();
    for (uint32_t i = 0; i + 1 < steps.size(); ++i) {
      if (steps[i] != steps[i + 1]) ends_.back().push_back(view->step_ends_from + i);
    }
    const bool rise = ends_.back().size() + 1 == steps.size();
    view->step_order = rise ? storage::StepOrder::kRise : storage::StepOrder::kNeverFall;
    if (!rise) view->step_ends = ends_.back();
  }

  const std::vector<Sample> samples_;
  const size_t block_size_;
  const bool shows_;
  size_t next_ = 0;
  size_t calls_ = 0;
  std::deque<std::vector<uint32_t>> ends_;  // Held for the views that were returned.
};

// Samples of one series in ascending time: steps stay for a while, some attempts go back, and in
// some histories steps fall within an attempt.
class CompareParts : public testing::TestWithParam<uint32_t> {
 protected:
  CompareParts() : random_(GetParam()) {}

  bool OneIn(uint32_t n) { return n > 0 && random_() % n == 0; }
  double RandomValue() {
    static const double kOdd[] = {0.0,
                                  -0.0,
                                  std::numeric_limits<double>::infinity(),
                                  -std::numeric_limits<double>::infinity(),
                                  std::numeric_limits<double>::quiet_NaN(),
                                  std::bit_cast<double>(uint64_t{0xfff8'0000'dead'beef})};
    if (OneIn(8)) return kOdd[random_() % std::size(kOdd)];
    return std::ldexp(static_cast<double>(random_()), static_cast<int>(random_() % 64) - 32);
  }
  std::vector<Sample> RandomSamples() {
    const uint32_t restarts = GetParam() % 3 == 0 ? 0 : 60;
    const uint32_t falls = GetParam() % 4 == 1 ? 40 : 0;
    std::vector<Sample> samples;
    Sample sample = {.time_ns = 1, .step = static_cast<int64_t>(random_() % 20)};
    for (auto count = random_() % 500; count > 0; --count) {
      sample.value = RandomValue();
      samples.push_back(sample);
      sample.time_ns += 1 + static_cast<int64_t>(random_() % 5);
      if (!OneIn(3)) sample.step += 1 + static_cast<int64_t>(random_() % 3);
      if (OneIn(restarts)) {
        ++sample.attempt;
        sample.step -= static_cast<int64_t>(random_() % 30);
      }
      if (OneIn(falls)) sample.step -= static_cast<int64_t>(random_() % 10);
    }
    return samples;
  }
  storage::SampleBlock Newest(const std::vector<Sample>& samples) {
    const size_t block_size = 1 + random_() % 50;
    const bool shows = random_() % 3 > 0;
    SeriesScan scan(std::make_unique<ListReader>(samples, block_size, shows), {}, control_);
    auto newest = NewestOfEachStep(&scan);
    EXPECT_TRUE(newest.ok()) << newest.status();
    return *std::move(newest);
  }

  std::mt19937 random_;
  QueryControl control_;
};

TEST_P(CompareParts, EachStepIsOfItsNewestAttemptAndTime) {
  const std::vector<Sample> samples = RandomSamples();
  std::map<int64_t, Sample> expected;
  for (const Sample& sample : samples) {
    const auto [it, added] = expected.try_emplace(sample.step, sample);
    if (std::pair(sample.attempt, sample.time_ns) >=
        std::pair(it->second.attempt, it->second.time_ns)) {
      it->second = sample;
    }
  }
  const storage::SampleBlock newest = Newest(samples);
  ASSERT_EQ(newest.size(), expected.size());
  size_t i = 0;
  for (const auto& [step, sample] : expected) {
    EXPECT_EQ(newest.steps[i], step);
    EXPECT_EQ(newest.times[i], sample.time_ns);
    EXPECT_EQ(newest.attempts[i], sample.attempt);
    EXPECT_EQ(std::bit_cast<uint64_t>(newest.values[i]), std::bit_cast<uint64_t>(sample.value));
    ++i;
  }
}

TEST_P(CompareParts, OneSeriesAloneIsAsIfItHadBeenFolded) {
  for (const auto function : {v1::AGGREGATE_FUNCTION_AVG, v1::AGGREGATE_FUNCTION_SUM}) {
    std::vector<ComparedPlaces> alone, folded;
    for (int subject = 0; subject < 3; ++subject) {
      const storage::SampleBlock newest = Newest(RandomSamples());
      FoldOptions options;
      options.function = function;
      Fold fold(options);
      for (size_t i = 0; i < newest.size(); ++i) {
        ASSERT_TRUE(fold.AddAtStep(SampleOf(newest, i)).ok());
      }
      folded.push_back(AsPlaces(fold.Take()));
      alone.push_back({newest.steps, newest.values, {}});
    }
    for (const uint32_t max_rows : {1u, 2u, 17u, 200u, 10'000u}) {
      v1::CompareMetric expected, actual;
      FillComparison(folded, max_rows, ComparedValues(), &expected);
      FillComparison(alone, max_rows, ComparedValues(), &actual);
      EXPECT_EQ(actual.SerializeAsString(), expected.SerializeAsString()) << max_rows;
      EXPECT_LE(actual.positions_size(), static_cast<int>(max_rows));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CompareParts, testing::Range(1u, 61u));

}  // namespace
}  // namespace tacho::server::query
