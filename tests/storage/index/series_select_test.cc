// What a selector finds in a catalogue, against evaluating its matchers series by series.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/index/catalog_queries.h"

namespace tacho::storage {
namespace {

Matcher Make(const char* label, Matcher::Op op, const char* value) {
  return *Matcher::Create(label, op, value);
}

class SeriesSelectTest : public testing::Test {
 protected:
  // 20 sources; each metric has a series a chip, and the last one series without labels too.
  SeriesSelectTest() : job_(1, "job") {
    for (const char* name : {"loss", "lr", "temp", "power"}) {
      job_.AddMetric({name, MetricType::kGauge, "", ""});
    }
    SeriesId id = 10;
    for (uint32_t task = 0; task < 20; ++task) {
      const auto* source =
          job_.InternSource(task % 5 == 4 ? std::nullopt : std::optional<uint32_t>(task),
                            absl::StrCat("host-", task / 2));
      for (MetricId metric = 1; metric <= 4; ++metric) {
        for (int chip = 0; chip < 8; ++chip) Add(++id, metric, source, {{"chip", Text(chip)}});
      }
      Add(++id, 4, source, {});
      Add(++id, 1, source, {{"chip", "1"}, {"zone", Text(task % 3)}});
      ++id;  // Ids of other jobs lie between.
    }
  }

  static std::string Text(uint32_t number) { return std::to_string(number); }

  void Add(SeriesId id, MetricId metric, const SeriesSource* source, const Labels& labels) {
    const std::vector<LabelSet::Label> views(labels.begin(), labels.end());
    ASSERT_NE(job_.AddSeries(id, metric, source, job_.InternLabels(views)), nullptr);
  }

  std::vector<SeriesId> Select(const Selector& selector, size_t limit = SIZE_MAX) const {
    std::vector<SeriesId> ids;
    for (const Series* one : SelectSeries(job_, selector, limit)) ids.push_back(one->id);
    std::sort(ids.begin(), ids.end());
    return ids;
  }

  std::vector<SeriesId> SelectOneByOne(const Selector& selector) const {
    std::vector<SeriesId> ids;
    for (uint32_t i = 0; i < job_.series_count(); ++i) {
      const Series& series = job_.series(i);
      const bool metric =
          selector.metrics.empty() ||
          std::count(selector.metrics.begin(), selector.metrics.end(), series.metric->name) > 0;
      if (metric && std::all_of(selector.matchers.begin(), selector.matchers.end(),
                                [&](const Matcher& m) { return m.Matches(series); })) {
        ids.push_back(series.id);
      }
    }
    return ids;
  }

  JobCatalog job_;
};

TEST_F(SeriesSelectTest, EveryCombinationOfMatchersFindsWhatEachSeriesSays) {
  using Op = Matcher::Op;
  const std::vector<std::vector<std::string>> metrics = {
      {}, {"loss"}, {"lr", "power"}, {"nothing"}, {"loss", "loss"}};
  const std::vector<Matcher> matchers = {
      Make("task", Op::kEqual, "3"),      Make("task", Op::kNotEqual, "3"),
      Make("task", Op::kEqual, ""),       Make("host", Op::kMatches, "host-[1-3]"),
      Make("host", Op::kEqual, "host-9"), Make("host", Op::kNotMatches, "host-.*"),
      Make("chip", Op::kEqual, "1"),      Make("chip", Op::kNotEqual, "1"),
      Make("chip", Op::kEqual, ""),       Make("zone", Op::kMatches, "[01]"),
      Make("zone", Op::kNotMatches, "1"), Make("absent", Op::kEqual, ""),
      Make("absent", Op::kMatches, ".+"),
  };
  for (const auto& names : metrics) {
    EXPECT_EQ(Select({.metrics = names}), SelectOneByOne({.metrics = names}));
    for (size_t a = 0; a < matchers.size(); ++a) {
      for (size_t b = a; b < matchers.size(); ++b) {
        const Selector selector{.metrics = names, .matchers = {matchers[a], matchers[b]}};
        EXPECT_EQ(Select(selector), SelectOneByOne(selector))
            << names.size() << " names, " << a << ", " << b;
      }
    }
  }
}

TEST_F(SeriesSelectTest, StopsBehindTheLimit) {
  EXPECT_EQ(Select({}, 10).size(), 11u);
  EXPECT_EQ(Select({.metrics = {"lr"}}, 10).size(), 11u);
  EXPECT_EQ(Select({.metrics = {"lr"}}, 160).size(), 160u);
}

TEST_F(SeriesSelectTest, WordsAndSetsAreHeldOnce) {
  EXPECT_EQ(job_.label_sets().size(), 8u + 1u + 3u);
  EXPECT_EQ(job_.series(0).labels, job_.series(8).labels) << "chip 0 of the next metric";
  const LabelSet& chip = *job_.series(1).labels;
  const LabelSet& zone = *job_.series(33).labels;
  ASSERT_EQ(zone.size(), 2u);
  EXPECT_EQ(chip.labels[0].second.data(), zone.labels[0].second.data());
}

TEST_F(SeriesSelectTest, TheSamePartsAreNoSecondSeries) {
  const Series& known = job_.series(3);
  EXPECT_EQ(job_.AddSeries(9999, known.metric_id, known.source, known.labels), nullptr);
  EXPECT_EQ(job_.FindSeries(known.metric_id, known.source, known.labels), &known);
  EXPECT_EQ(job_.FindNumber(known.id), 3u);
  EXPECT_EQ(job_.FindNumber(1), std::nullopt);
}

}  // namespace
}  // namespace tacho::storage
