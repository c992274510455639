// Layouts that are too wide for one message: how they are cut, and that their rows stay whole.
#include <bit>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/spool/layout_parts.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/spool/spool_test_fixture.h"

namespace tacho::agent {
namespace {

using ::testing::SizeIs;

constexpr uint64_t kMostBytes = BatchLimits().max_bytes;

// As wide as a scrape of a large endpoint, with help texts and labels.
v1::Layout Scrape(int series, bool has_steps = false) {
  v1::Layout layout = MakeLayout("job", series, has_steps);
  for (v1::Layout::Series& one : *layout.mutable_series()) {
    one.mutable_metric()->set_help(std::string(120, 'h'));
    v1::Label* label = one.add_labels();
    label->set_name("resource");
    label->set_value("deployments/scale");
  }
  return layout;
}

std::vector<std::string> NamesOf(const v1::Layout& layout) {
  std::vector<std::string> names;
  for (const auto& series : layout.series()) names.push_back(series.metric().name());
  return names;
}

TEST(CutLayoutTest, PartsHaveAllSeriesInOrderAndEachFits) {
  const v1::Layout layout = Scrape(18'314, true);
  ASSERT_GT(layout.ByteSizeLong(), 3'000'000u);
  const std::vector<v1::Layout> parts = CutLayout(layout, {kMostBytes, 1000});
  std::vector<std::string> names;
  for (const v1::Layout& part : parts) {
    EXPECT_LE(part.ByteSizeLong() + kDefinitionOverhead, kMostBytes);
    EXPECT_LE(part.series_size(), 1000);
    EXPECT_EQ(part.source().job(), "job");
    EXPECT_TRUE(part.has_steps());
    for (const std::string& name : NamesOf(part)) names.push_back(name);
  }
  EXPECT_EQ(names, NamesOf(layout));
}

TEST(CutLayoutTest, LimitOfSeriesHoldsAndALayoutWithinTheLimitsIsOnePart) {
  const v1::Layout layout = MakeLayout("job", 10);
  EXPECT_THAT(CutLayout(layout, {kMostBytes, 0}), SizeIs(1));
  EXPECT_THAT(CutLayout(layout, {kMostBytes, 10}), SizeIs(1));
  EXPECT_GE(CutLayout(layout, {kMostBytes, 9}).size(), 2u);
  EXPECT_THAT(CutLayout(layout, {kMostBytes, 1}), SizeIs(10));
  EXPECT_THAT(CutLayout(layout, {1, 0}), SizeIs(10)) << "a series that is too large is alone";
}

TEST(CutLayoutTest, SeriesThatGoesChangesFewParts) {
  v1::Layout layout = Scrape(18'314);
  std::set<std::string> before;
  for (const auto& part : CutLayout(layout, {kMostBytes, 0}))
    before.insert(part.SerializeAsString());
  layout.mutable_series()->DeleteSubrange(100, 1);
  int changed = 0;
  for (const auto& part : CutLayout(layout, {kMostBytes, 0})) {
    if (!before.contains(part.SerializeAsString())) ++changed;
  }
  EXPECT_LE(changed, 5);
  EXPECT_GE(before.size(), 60u);
}

class WideRowsTest : public SpoolTest {
 protected:
  // The spooled values as the collector will see them: their bits, by metric, time and step.
  using Seen = std::map<std::tuple<std::string, int64_t, int64_t>, uint64_t>;
  Seen ReadValues() {
    Seen seen;
    for (const auto& entry : ReadAll()) {
      const v1::Batch& batch = entry.message.batch();
      EXPECT_LE(entry.message.ByteSizeLong(), kMostBytes);
      const auto layout = spool_->FindLayout(batch.layout());
      EXPECT_TRUE(layout.ok()) << layout.status();
      EXPECT_LE(layout->ByteSizeLong() + kDefinitionOverhead, kMostBytes);
      const auto names = NamesOf(*layout);
      const int width = static_cast<int>(names.size());
      EXPECT_EQ(batch.values_size(), batch.times_unix_ns_size() * width);
      for (int i = 0; i < batch.values_size(); ++i) {
        const int row = i / width;
        const bool is_new =
            seen.emplace(std::tuple(names[static_cast<size_t>(i % width)], batch.times_unix_ns(row),
                                    batch.steps_size() > 0 ? batch.steps(row) : -1),
                         std::bit_cast<uint64_t>(batch.values(i)))
                .second;
        EXPECT_TRUE(is_new) << "a value is there twice";
      }
    }
    return seen;
  }

  // Rows with a value of its own in every place; what they are is added to `expected`.
  absl::Status AppendRows(uint32_t id, const v1::Layout& layout, int64_t rows, Seen* expected,
                          const RowSink::Checkpoint& at = {}) {
    std::vector<int64_t> times;
    std::vector<int64_t> steps;
    std::vector<double> values;
    for (int64_t row = 0; row < rows; ++row) {
      times.push_back(++time_);
      if (layout.has_steps()) steps.push_back(-time_);
      for (const auto& series : layout.series()) {
        values.push_back(static_cast<double>(++value_));
        (*expected)[{series.metric().name(), time_, layout.has_steps() ? -time_ : -1}] =
            std::bit_cast<uint64_t>(values.back());
      }
    }
    return spool_->AppendRows(id, times, steps, values, at);
  }

 private:
  int64_t time_ = 0;
  int64_t value_ = 0;
};

TEST_F(WideRowsTest, EveryValueIsThereOnceWithItsTimeAndStep) {
  const v1::Layout layout = Scrape(18'314, true);
  const uint32_t id = Define(layout);
  EXPECT_EQ(Define(layout), id);
  Seen expected;
  ASSERT_TRUE(AppendRows(id, layout, 3, &expected, {"scrape/a", "1"}).ok());
  ASSERT_TRUE(AppendRows(id, layout, 1, &expected).ok());
  EXPECT_TRUE(ReadValues() == expected);
  EXPECT_EQ(expected.size(), 4 * 18'314u);
  Reopen();
  EXPECT_TRUE(ReadValues() == expected) << "after a restart";
  EXPECT_EQ(spool_->ReadCheckpoint("scrape/a"), "1");
}

TEST_F(WideRowsTest, LayoutWithoutTextsHasRowsThatAreTooLargeToo) {
  v1::Layout layout;
  layout.mutable_source()->set_job("j");
  for (int i = 0; i < 30'000; ++i) {
    layout.add_series()->mutable_metric()->set_name(absl::StrCat(i));
  }
  Seen expected;
  ASSERT_TRUE(AppendRows(Define(layout), layout, 2, &expected).ok());
  EXPECT_TRUE(ReadValues() == expected);
}

TEST_F(WideRowsTest, RowIsSpooledWholeOrNotAtAll) {
  const v1::Layout layout = Scrape(2000);
  const uint32_t id = Define(layout);
  Seen expected;
  env_.RefuseWrites(true);
  EXPECT_EQ(AppendRows(id, layout, 1, &expected, {"scrape/a", "1"}).code(),
            absl::StatusCode::kUnavailable);
  env_.RefuseWrites(false);
  expected.clear();
  ASSERT_TRUE(AppendRows(id, layout, 1, &expected, {"scrape/a", "2"}).ok());
  EXPECT_TRUE(ReadValues() == expected);
}

TEST_F(WideRowsTest, LimitsThatACollectorSaysLaterHoldForLayoutsThatAreThereAlready) {
  const v1::Layout wide = Scrape(2000);
  const v1::Layout narrow = MakeLayout("job", 10);
  const uint32_t wide_id = Define(wide);
  const uint32_t narrow_id = Define(narrow);
  spool_->LimitBatches({.max_series = 4});
  Seen expected;
  ASSERT_TRUE(AppendRows(wide_id, wide, 2, &expected).ok());
  ASSERT_TRUE(AppendRows(narrow_id, narrow, 2, &expected).ok());
  for (const auto& entry : ReadAll()) {
    EXPECT_LE(spool_->FindLayout(entry.message.batch().layout())->series_size(), 4);
  }
  EXPECT_TRUE(ReadValues() == expected);
}

}  // namespace
}  // namespace tacho::agent
