// A collector's store in memory, a clock to turn, and the engine on both.
#pragma once

#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "proto/config/yaml_config.h"
#include "server/conditions/condition_engine.h"
#include "server/ingest/agent_ledger.h"
#include "storage/store.h"
#include "tests/support/faulty_env.h"

namespace tacho::server::conditions {

class ConditionEngineFixture : public ::testing::Test {
 protected:
  ConditionEngineFixture() : env_(std::make_unique<storage::FaultyEnv>()) {
    OpenStore();
    EXPECT_TRUE(config::ParseYaml("", "none", &config_).ok());
  }
  ~ConditionEngineFixture() override {
    engine_.reset();
    if (store_ != nullptr) {
      EXPECT_TRUE(store_->Close().ok());
    }
  }

  void OpenStore() {
    storage::StoreOptions options;
    options.path = "/store";
    options.env = env_.get();
    options.background = false;
    options.commit_spacing = absl::ZeroDuration();
    options.retention = absl::ZeroDuration();
    options.now = [this] { return now_; };
    auto store = storage::Store::Open(options);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  // As after a start of the process: only what is stored remains.
  void StartEngine(Detectors detectors) {
    engine_.reset();
    registry_ = std::make_unique<prometheus::Registry>();
    ConditionEngineOptions options;
    options.store = store_.get();
    options.settings = ConditionSettings::WithDetectors(config_.conditions(), std::move(detectors));
    options.agents = &agents_;
    options.now = [this] { return now_; };
    options.registry = registry_.get();
    options.buffer_bytes = buffer_bytes_;
    options.on_profile = on_profile_;
    engine_ = std::make_unique<ConditionEngine>(std::move(options));
    engine_->RunOnce();  // Takes what is stored as known before the start.
  }
  void RestartCollector(Detectors detectors) {
    engine_.reset();
    ASSERT_TRUE(store_->Close().ok());
    store_.reset();
    OpenStore();
    StartEngine(std::move(detectors));
  }

  // Lets time pass in steps of a second, judging as it goes.
  void Pass(absl::Duration length) {
    for (const absl::Time end = now_ + length; now_ < end;) {
      now_ += absl::Seconds(1);
      engine_->RunOnce();
    }
    SyncEvents();
  }

  void Append(const std::string& job, uint32_t task, int64_t step, double loss,
              uint32_t attempt = 0) {
    storage::LayoutDefinition definition;
    definition.source = {job, task, attempt, "host-" + std::to_string(task)};
    definition.has_steps = true;
    definition.series.push_back({{"loss", storage::MetricType::kGauge, "1", ""}, {}});
    auto registered = store_->RegisterLayout(definition);
    ASSERT_TRUE(registered.ok()) << registered.status();
    const std::vector<int64_t> times = {absl::ToUnixNanos(now_)};
    const std::vector<int64_t> steps = {step};
    const std::vector<double> values = {loss};
    absl::Notification durable;
    store_->AppendRows({}, registered->layout, {times, steps, values},
                       [&](const absl::Status&) { durable.Notify(); });
    durable.WaitForNotification();
  }
  void AppendEvent(const std::string& job, const std::string& kind, uint32_t attempt = 0) {
    storage::Event event;
    event.source.job = job;
    event.source.attempt = attempt;
    event.time_ns = absl::ToUnixNanos(now_);
    event.kind = kind;
    Append(event);
  }
  void Append(const storage::Event& event) {
    absl::Notification durable;
    store_->AppendEvent({}, event, [&](const absl::Status&) { durable.Notify(); });
    durable.WaitForNotification();
  }
  // The disk is full, or has room again and takes writes.
  void FillDisk() { env_->RefuseWrites(true); }
  void FreeDisk() {
    env_->RefuseWrites(false);
    absl::Status status;
    do {
      storage::Event event;
      event.time_ns = absl::ToUnixNanos(now_);
      event.kind = "nothing";
      absl::Notification done;
      store_->AppendEvent({}, event, [&](const absl::Status& s) {
        status = s;
        done.Notify();
      });
      done.WaitForNotification();
    } while (!status.ok());
  }
  // Returns when everything that was queued before is durable or refused.
  void SyncEvents() { AppendEvent("", "nothing"); }

  // "raised Bad", "cleared Bad", … of a job, in ascending time.
  std::vector<std::string> EventsOf(const std::string& job) {
    std::vector<std::string> texts;
    const auto events = store_->Events(job, INT64_MIN, INT64_MAX);
    EXPECT_TRUE(events.ok());
    for (const storage::Event& event : *events) {
      const std::string prefix = "condition_";
      if (event.kind.rfind(prefix, 0) != 0) continue;
      texts.push_back(event.kind.substr(prefix.size()) + " " + event.fields.at("condition"));
    }
    return texts;
  }

  JudgedConditionPtr Condition(const std::string& job, const std::string& name) {
    for (const auto& one : engine_->board().Of(job)) {
      if (one->name == name) return one;
    }
    return nullptr;
  }

  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  uint64_t buffer_bytes_ = 64u << 20;
  std::function<bool(const ProfileOrder&)> on_profile_;
  config::v1::Collector config_;
  const std::unique_ptr<storage::FaultyEnv> env_;
  std::unique_ptr<prometheus::Registry> registry_;
  std::unique_ptr<storage::Store> store_;
  ingest::AgentLedger agents_;
  std::unique_ptr<ConditionEngine> engine_;
};

}  // namespace tacho::server::conditions
