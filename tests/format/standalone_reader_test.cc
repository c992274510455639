// docs/storage_format.md is complete: a reader written from that page alone reads a store, and
// finds what was written, to the bit. Nothing in standalone_reader.* and below it knows storage/.
#include "tests/format/standalone_reader.h"

#include <bit>
#include <limits>
#include <random>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/stale_marker.h"
#include "tests/format/format_fixture.h"
#include "tests/format/integer_column.h"
#include "tests/format/sample_columns.h"

namespace tacho::storage {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Key;
using ::testing::Pair;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kDay = 86'400 * kSecond;
// Noon of a day, so that an hour of rows stays within it.
constexpr int64_t kStart = 19'675 * kDay + kDay / 2;

enum class Clock { kRegular, kJittered, kRough };

std::vector<int64_t> MakeTimes(Clock clock, size_t rows) {
  std::mt19937_64 random(rows);
  std::vector<int64_t> times;
  int64_t time = kStart;
  for (size_t row = 0; row < rows; ++row) {
    times.push_back(time);
    time += kSecond;
    if (clock == Clock::kJittered) time += static_cast<int64_t>(random() % 5) * 1'000'000;
    if (clock == Clock::kRough) time += static_cast<int64_t>(random() % 100'000'007);
  }
  return times;
}

std::vector<int64_t> MakeSteps(size_t rows, int64_t stride) {
  std::vector<int64_t> steps;
  for (size_t row = 0; row < rows; ++row) steps.push_back(7 + stride * static_cast<int64_t>(row));
  return steps;
}

class StandaloneReaderTest : public FormatFixture {
 protected:
  // Rows of every kind of column, in a job of their own.
  void WriteEveryKind(const std::string& job, size_t rows, Clock clock, int64_t stride) {
    LayoutDefinition definition = Definition(job, {});
    definition.has_steps = stride != 0;
    Rows data = {MakeTimes(clock, rows), {}, {}};
    if (stride != 0) data.steps = MakeSteps(rows, stride);
    for (const ColumnKind& kind : AllColumnKinds()) {
      definition.series.push_back({{kind.name, MetricType::kGauge, "1", ""}, {}});
      data.columns.push_back(MakeColumn(kind, rows, rows));
    }
    Write(definition, data);
  }

  // A layout with the metric "loss".
  static LayoutDefinition Loss(const std::string& job, uint32_t task = 0, uint32_t attempt = 0) {
    return Definition(job, {"loss"}, task, attempt);
  }
};

TEST_F(StandaloneReaderTest, ReadsEveryEncodingOfColumnsOfEveryLength) {
  for (const size_t rows : {1, 2, 3, 8, 9, 255, 256, 258, 1024}) {
    const std::string name = std::to_string(rows);
    WriteEveryKind("regular-" + name, rows, Clock::kRegular, 1);
  }
  WriteEveryKind("jittered", 300, Clock::kJittered, 0);
  WriteEveryKind("rough", 300, Clock::kRough, 10);
  Compare();
  ASSERT_TRUE(store_->Seal().ok());
  Compare();

  for (const char* const form : {"values: raw",
                                 "values: constant",
                                 "values: gaps 0",
                                 "values: gaps 1",
                                 "values: gaps 2",
                                 "values: ordered doubles",
                                 "values: ordered floats",
                                 "values: quotients",
                                 "values: quotients as floats",
                                 "values: steps",
                                 "values: exceptions",
                                 "values: dictionary",
                                 "values: in a column, depth 1",
                                 "values: in a column, depth 2",
                                 "integers: equal",
                                 "integers: packed",
                                 "integers: buckets",
                                 "integers: order 0",
                                 "integers: order 1",
                                 "integers: order 2",
                                 "integers: folded",
                                 "integers: divisor",
                                 "buckets: machines 1",
                                 "buckets: machines 4",
                                 "buckets: shift",
                                 "statistics: none",
                                 "statistics: counts",
                                 "statistics: doubles",
                                 "statistics: floats",
                                 "statistics: decimals",
                                 "frames: steps",
                                 "frames: no steps",
                                 "journal: open entry",
                                 "journal: trim mark",
                                 "columns: rows 1",
                                 "columns: rows 8",
                                 "columns: rows 9",
                                 "columns: rows 255",
                                 "columns: rows 256",
                                 "columns: rows 1024"}) {
    EXPECT_THAT(met_, Contains(Key(form)));
  }
}

// What the store never writes, but the page allows; and the page's example.
TEST(FormatPageTest, ReadsIntegersThatAreWrittenByHand) {
  const auto read = [](std::string_view text, size_t count) {
    format_page::Findings findings;
    format_page::Bytes bytes("column", text, &findings);
    const std::vector<int64_t> integers = format_page::ReadIntegers(&bytes, count);
    bytes.ExpectEnd();
    EXPECT_THAT(findings.errors, ElementsAre());
    return integers;
  };
  EXPECT_THAT(read("\x18\x14\x07\x01\x10", 5), ElementsAre(10, 10, 10, 10, 17));
  EXPECT_THAT(read("\x01\x14", 1), ElementsAre(10));
  EXPECT_THAT(read("\x02\x14\x03", 2), ElementsAre(10, 8));
  EXPECT_THAT(read("", 0), ElementsAre());
  EXPECT_EQ(format_page::Crc32c("123456789"), 0xe3069283);
}

TEST_F(StandaloneReaderTest, ReadsLongColumns) {
  options_.seal_rows = 100'000;
  Reopen();
  LayoutDefinition definition = Definition("long", {});
  constexpr size_t kRows = 5000;
  Rows rows = {MakeTimes(Clock::kJittered, kRows), MakeSteps(kRows, 1), {}};
  for (const ColumnKind& kind : AllColumnKinds()) {
    if (definition.series.size() == 8) break;
    definition.series.push_back({{kind.name, MetricType::kCounter, "", ""}, {}});
    rows.columns.push_back(MakeColumn(kind, kRows, 1));
  }
  Write(definition, rows);
  ASSERT_TRUE(store_->Seal().ok());
  Compare();
  EXPECT_THAT(met_, Contains(Key("columns: rows 5000")));
}

TEST_F(StandaloneReaderTest, ReadsWhatIsPartlySealedAndPartlyInTheJournal) {
  for (int round = 0; round < 4; ++round) {
    const int64_t begin = kStart + round * 100 * kSecond;
    Write(Loss("job", 1), {{begin, begin + kSecond}, {round, round + 1}, {{0.5, 0.25}}});
    Write(Loss("job", 2), {{begin}, {kNoStep}, {{1.0 * round}}});
    Write(Loss("other"), {{begin}, {0}, {{3.0}}});
    Compare();
    if (round == 1) {
      ASSERT_TRUE(store_->Seal().ok());
    }
    Compare();
  }
  EXPECT_THAT(met_, Contains(Key("journal: open entry")));
}

TEST_F(StandaloneReaderTest, TheLaterOfTwoWritesCounts) {
  const LayoutDefinition loss = Loss("job");
  const LayoutDefinition both = Definition("job", {"loss", "accuracy"});
  const double stale = StaleMarker();
  const auto at = [](int second) { return kStart + second * kSecond; };
  // Out of order and twice within an entry; the same step twice at different times.
  Write(loss, {{at(5), at(3), at(4), at(3)}, {5, 3, 4, 3}, {{1, 2, 3, 4}}});
  Write(loss, {{at(3), at(3)}, {2, kNoStep}, {{5, 6}}});
  Compare();
  ASSERT_TRUE(store_->Seal().ok());
  Compare();
  // Frames that overlap; no value does not replace one.
  Write(loss, {{at(4), at(5), at(9)}, {4, 5, 9}, {{stale, 7, 8}}});
  Compare();
  ASSERT_TRUE(store_->Seal().ok());
  // The same series in another layout.
  Write(both, {{at(1), at(4), at(9)}, {1, 4, 9}, {{9, 10, stale}, {0.5, stale, 0.25}}});
  Compare();
  ASSERT_TRUE(store_->Seal().ok());
  Write(loss, {{at(4)}, {4}, {{11}}});
  Compare();
  ASSERT_TRUE(store_->Seal().ok());
  Compare();
  EXPECT_GE(met_["frames"], 4u);
}

TEST_F(StandaloneReaderTest, ReadsAttemptsTasksHostsAndLabels) {
  for (uint32_t attempt = 0; attempt < 3; ++attempt) {
    for (uint32_t task = 0; task < 3; ++task) {
      LayoutDefinition definition = Definition("job", {"loss", "lr"}, task, attempt);
      if (task == 2) definition.source.task.reset();
      if (task == 1) definition.source.host.clear();
      definition.series.push_back({{"lr", MetricType::kHistogram, "unit", "help"},
                                   {{"group", "a"}, {"layer", std::string("\0\xff", 2)}}});
      definition.series.push_back({{"lr", MetricType::kHistogram, "unit", "help"}, {{"le", ""}}});
      definition.series[1].metric.type = MetricType::kHistogram;
      // A restarted attempt writes the same times again.
      const int64_t begin = kStart + attempt * 10 * kSecond;
      Write(definition, {{begin, begin + 20 * kSecond},
                         {attempt, attempt + 20},
                         {{1, 2}, {3, 4}, {5, 6}, {7, 8}}});
      Compare();
    }
    WriteAttributes({"job", attempt, {{"model", "mlp"}, {"empty", ""}}});
    ASSERT_TRUE(store_->Seal().ok());
    Compare();
  }
  // The same definition again, and one whose ids are not in a row.
  LayoutDefinition mixed = Definition("job", {"new"}, 1, 2);
  mixed.series.push_back(Definition("job", {"lr"}).series[0]);
  mixed.series.push_back(Definition("job", {"loss"}).series[0]);
  Write(mixed, {{kStart + 1000 * kSecond}, {1}, {{1}, {2}, {3}}});
  WriteAttributes({"job", 1, {{"model", ""}, {"seed", "7"}}});
  WriteAttributes({"only attributes", 4, {{"a", "b"}}});
  Compare();
  ASSERT_TRUE(store_->Seal().ok());
  Compare();
  Reopen();
  Compare();
}

TEST_F(StandaloneReaderTest, ReadsDaysAroundAndBefore1970) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  const std::vector<int64_t> times = {-kDay - 1, -kDay, -1, 0, kDay - 1, kDay, kStart};
  for (int round = 0; round < 2; ++round) {
    Write(Loss("job"), {times, MakeSteps(times.size(), 1), {{1, 2, 3, 4, 5, 6, 7.0 + round}}});
    ASSERT_TRUE(store_->Seal().ok());
    Compare();
  }
  EXPECT_GE(met_["frames"], 6u);
  // The ends of what times and steps can be.
  Write(Loss("ends"), {{-kMax - 1, 0, kMax}, {-kMax, 0, kMax}, {{1, 2, 3}}});
  Compare();
  ASSERT_TRUE(store_->Seal().ok());
  Compare();
}

TEST_F(StandaloneReaderTest, ReadsMergedFrames) {
  for (int round = 0; round < 200; ++round) {
    const int64_t begin = kStart + round * 60 * kSecond;
    Write(Loss("job"), {{begin, begin + 30 * kSecond}, {round, round}, {{1.5, 0.5 * round}}});
    ASSERT_TRUE(store_->Seal().ok());
  }
  Compare();
  const uint64_t before = met_["frames"];
  now_ += absl::Hours(48);
  ASSERT_TRUE(store_->MergeFrames().ok());
  EXPECT_GT(store_->Stats().merges, 0u);
  Compare();
  EXPECT_LT(met_["frames"] - before, before) << "nothing was merged";
}

TEST_F(StandaloneReaderTest, OfLayoutsThatTakeTurnsAllOpenRowsOfTheLastCount) {
  const LayoutPtr loss = Register(Loss("job"));
  const LayoutPtr both = Register(Definition("job", {"loss", "accuracy"}));
  ASSERT_TRUE(Append(loss, {kStart}, {0}, {1.0}).ok());
  ASSERT_TRUE(Append(both, {kStart}, {0}, {2.0, 2.0}).ok());
  const auto expect_loss = [this](double value) {
    EXPECT_THAT(ReadAll(Find("job", "loss")).values, Contains(value));
    const format_page::Contents contents = format_page::ReadStore(options_.path, options_.env);
    EXPECT_THAT(contents.findings.errors, ElementsAre());
    EXPECT_EQ(contents.samples.at(1).at({kStart, 0, 0}).bits, std::bit_cast<uint64_t>(value));
  };
  expect_loss(2);
  ASSERT_TRUE(Append(loss, {kStart + kSecond}, {1}, {3.0}).ok());
  expect_loss(1);
  ASSERT_TRUE(store_->Seal().ok());
  expect_loss(1);
}

TEST_F(StandaloneReaderTest, ReadsEvents) {
  Write(Loss("job"), {{kStart}, {0}, {{1}}});
  const Source source = {"job", 3, 1, "host"};
  WriteEvent({source, kStart, 5, "saved", "first", {{"path", "/tmp"}, {"", "x"}}});
  WriteEvent({{"job", std::nullopt, 0, ""}, kStart, std::nullopt, "", "second", {}});
  WriteEvent({source, -kStart, -5, "before 1970", "", {}});
  Compare();
  ASSERT_TRUE(store_->Seal().ok());
  Compare();
}

TEST_F(StandaloneReaderTest, ReadsDurableSequencesAndLosses) {
  const LayoutPtr layout = Register(Loss("job"));
  for (const uint64_t sequence : {1, 2, 3, 5, 9}) {
    ASSERT_TRUE(Append(layout, {kStart}, {0}, {1.0}, {"agent", 7, sequence}).ok());
  }
  ASSERT_TRUE(Wait([&](AppendDone done) {
                store_->AppendGap({"agent", 7, 6}, {6, 7}, 12, "disk full", std::move(done));
              }).ok());
  const format_page::Contents contents = format_page::ReadStore(options_.path, options_.env);
  ASSERT_THAT(contents.findings.errors, ElementsAre());
  EXPECT_THAT(
      contents.records.durable,
      ElementsAre(Pair(Pair("agent", 7u), ElementsAre(Pair(1u, 3u), Pair(5u, 7u), Pair(9u, 9u)))));
  EXPECT_EQ(contents.records.commits.commits, 6u);
  EXPECT_EQ(contents.records.commits.messages, 6u);
  EXPECT_EQ(contents.records.commits.rows, 5u);
  ASSERT_TRUE(contents.records.events.contains(0));
  const std::vector<format_page::Event>& losses = contents.records.events.at(0);
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_EQ(losses[0].kind, "data_lost");
  EXPECT_EQ(losses[0].host, "agent");
}

}  // namespace
}  // namespace tacho::storage
