// A store with jobs, and the boards from which a fleet is made, on a clock that tests set.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "server/query/read/query_control.h"
#include "server/view/fleet_answer.h"
#include "server/view/fleet_board.h"
#include "tests/server/durable_append.h"
#include "tests/server/query/query_store_fixture.h"

namespace tacho::server::view {

class FleetFixture : public query::QueryStoreFixture {
 protected:
  FleetFixture() {
    goodput::GoodputBoardOptions goodput;
    goodput.store = store_.get();
    goodput.now = [this] { return now_; };
    goodput.background = false;
    goodput_ = std::make_unique<goodput::GoodputBoard>(std::move(goodput));
    options_.store = store_.get();
    options_.conditions = &conditions_;
    options_.goodput = goodput_.get();
    options_.job_refusals = &refusals_;
    options_.now = [this] { return now_; };
  }

  // The time of a test begins at 0 s.
  void SetNow(int64_t seconds) { now_ = absl::FromUnixNanos(NsOf(seconds)); }
  static int64_t NsOf(int64_t seconds) { return query::kTestBase + seconds * query::kTestSecond; }

  // One row of task 0 on host-0, with the second as its step.
  void AddRow(const std::string& job, int64_t second, uint32_t attempt = 0) {
    Append(Register(job, 0, attempt, {"step_time_seconds"}), {NsOf(second)}, {second}, {0.5});
  }
  void AddAttributes(const std::string& job, std::map<std::string, std::string> values,
                     uint32_t attempt = 0) {
    const storage::Attributes attributes = {job, attempt, std::move(values)};
    AppendDurably([&](auto done) { store_->AppendAttributes({}, attributes, std::move(done)); });
  }
  void AddEnd(const std::string& job, int64_t second) {
    storage::Event event;
    event.source = {job, 0, 0, "host-0"};
    event.time_ns = NsOf(second);
    event.kind = "ended";
    AppendDurably([&](auto done) { store_->AppendEvent({}, event, std::move(done)); });
  }
  // Chips 0 to `chips` - 1, as an agent records them.
  void AddChips(const std::string& job, const std::string& host, int chips, int64_t second) {
    storage::LayoutDefinition definition;
    definition.source = {job, std::nullopt, 0, host};
    for (int chip = 0; chip < chips; ++chip) {
      definition.series.push_back({{"chip_duty_cycle_ratio", storage::MetricType::kGauge, "1", ""},
                                   {{"chip", std::to_string(chip)}}});
    }
    auto layout = store_->RegisterLayout(definition);
    ASSERT_TRUE(layout.ok()) << layout.status();
    const std::vector<int64_t> times = {NsOf(second)};
    const std::vector<double> values(static_cast<size_t>(chips), 1.0);
    AppendDurably([&](auto done) {
      store_->AppendRows({}, layout->layout, {times, {}, values}, done);
    });
  }
  // Replaces the conditions of the job by those that are true with these severities.
  void SetConditions(const std::string& job,
                     std::vector<std::pair<std::string, conditions::Severity>> wanted,
                     int64_t since_s) {
    conditions::JobConditions all;
    for (const auto& [name, severity] : wanted) {
      auto one = std::make_shared<conditions::JudgedCondition>();
      one->job = job;
      one->name = name;
      one->status = conditions::ConditionStatus::kTrue;
      one->finding = conditions::Present(severity, "Reason", name + " it is.");
      one->since_ns = NsOf(since_s);
      all.push_back(std::move(one));
    }
    conditions_.Put(job, all, all);
  }

  FleetPtr Look(FleetBoard& board) {
    auto fleet = board.Look(control_);
    EXPECT_TRUE(fleet.ok()) << fleet.status();
    return fleet.ok() ? *fleet : std::make_shared<const Fleet>();
  }
  static std::vector<std::string> Names(const Fleet& fleet) {
    std::vector<std::string> names;
    for (const FleetRowPtr& row : fleet.rows) names.push_back(row->job.name());
    return names;
  }
  static const FleetRow& RowOf(const Fleet& fleet, const std::string& job) {
    for (const FleetRowPtr& row : fleet.rows) {
      if (row->job.name() == job) return *row;
    }
    ADD_FAILURE() << "no job " << job;
    static const FleetRow none;
    return none;
  }

  absl::Time now_ = absl::FromUnixNanos(query::kTestBase);
  conditions::ConditionBoard conditions_;
  limits::JobRefusals refusals_;
  std::unique_ptr<goodput::GoodputBoard> goodput_;
  query::QueryControl control_{absl::InfiniteDuration(), MonotonicNow, nullptr};
  FleetBoardOptions options_;
};

}  // namespace tacho::server::view
