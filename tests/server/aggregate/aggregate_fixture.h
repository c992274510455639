// Aggregates of a store in memory, as lines by what stands before their value.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "server/aggregate/aggregator.h"
#include "tests/server/memory_store.h"

namespace tacho::server::aggregate {

class AggregateFixture : public testing::Test {
 protected:
  using RuleConfig = config::v1::AggregateRule;

  AggregateFixture() { config_.set_built_in_rules(true); }

  // With the defaults of the configuration.
  RuleConfig* AddRule(const std::string& metric = "") {
    RuleConfig* rule = config_.add_rules();
    rule->set_metric(metric);
    rule->set_keep(true);
    rule->set_rename("tacho_job_{metric}");
    rule->set_max_groups(1000);
    return rule;
  }
  // Before the first series, which is then new to it; again if rules were added since.
  void MakeAggregator() {
    const std::string config = config_.SerializeAsString();
    if (aggregator_ != nullptr && config == made_of_) return;
    made_of_ = config;
    auto rules = MakeAggregateRules(config_);
    EXPECT_TRUE(rules.ok()) << rules.status();
    aggregator_ = std::make_unique<Aggregator>(store_.get(), *rules);
  }
  storage::SeriesPtr Series(const std::string& job, const std::string& metric,
                            std::optional<uint32_t> task, const std::string& host,
                            storage::MetricType type = storage::MetricType::kGauge,
                            const storage::Labels& labels = {}) {
    storage::SeriesPtr& series = series_[{job, metric, host, task, labels}];
    MakeAggregator();
    if (series == nullptr)
      series = store_.AddSeries(job, MetricNamed(metric, type), task, host, labels);
    return series;
  }
  storage::SeriesPtr Loss(uint32_t task, const std::string& job = "j") {
    return Series(job, "loss", task, "h" + std::to_string(task));
  }
  void Row(std::vector<storage::SeriesPtr> series, std::vector<double> values,
           int64_t time_ns = 100, absl::Duration age = absl::ZeroDuration(), uint32_t attempt = 0,
           int64_t step = 7) {
    MakeAggregator();
    store_.AddLatestRow(std::move(series), attempt, time_ns, step, now_ - age, std::move(values));
  }
  std::string Page() {
    MakeAggregator();
    std::string page;
    aggregator_->Scrape(
        {now_, absl::Minutes(5), max_series_},
        [this](absl::string_view job) { return job != hidden_job_; }, &page);
    return page;
  }
  // Returns the lines that have a value.
  std::map<std::string, double> Lines() {
    std::map<std::string, double> lines;
    std::istringstream page(Page());
    for (std::string line; std::getline(page, line);) {
      const size_t space = line.rfind(' ');
      double value = 0;
      if (line[0] == '#' || !absl::SimpleAtod(line.substr(space + 1), &value)) continue;
      EXPECT_TRUE(lines.emplace(line.substr(0, space), value).second) << "twice: " << line;
    }
    return lines;
  }
  // NaN also if it is not there.
  double Line(const std::string& line) {
    const auto lines = Lines();
    const auto found = lines.find(line);
    return found == lines.end() ? std::nan("") : found->second;
  }
  double Stat(const std::string& stat) {
    return Line("tacho_job_loss{job=\"j\",stat=\"" + stat + "\"}");
  }

  MemoryStore store_;
  config::v1::Collector::Metrics config_;
  std::unique_ptr<Aggregator> aggregator_;
  std::string made_of_;  // Its configuration.
  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  size_t max_series_ = 10'000;
  std::string hidden_job_;

 private:
  std::map<
      std::tuple<std::string, std::string, std::string, std::optional<uint32_t>, storage::Labels>,
      storage::SeriesPtr>
      series_;
};

}  // namespace tacho::server::aggregate
