// An intake over a store in memory, with the limits and the clock of the tests of streams.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "prometheus/registry.h"
#include "proto/base/stale_marker.h"
#include "server/cluster/membership.h"
#include "server/interop/intake.h"
#include "tests/server/ingest/ingest_messages.h"
#include "tests/server/ingest/ingest_store.h"

namespace tacho::server::interop {

class IntakeTest : public testing::Test {
 protected:
  IntakeTest() { Restart(); }
  void SetUp() override { store_.CommitAtOnce(); }

  // Nothing is remembered any more.
  void Restart(config::v1::Interop config = {}) {
    config.set_max_series(10'000);
    IntakeOptions options;
    options.store = store_.get();
    options.admission =
        membership_ == nullptr ? &admission_ : &member_admission_.emplace(AsMember());
    options.metrics = &metrics_;
    options.limiting = &limiting_;
    options.quotas = &quotas_;
    options.registry = &registry_;
    options.now = now_;
    options.elsewhere = elsewhere_;
    auto intake = Intake::Create(config, std::move(options));
    EXPECT_TRUE(intake.ok()) << intake.status();
    intake_ = *std::move(intake);
  }

  // From now on this is the collector "c-0" of three, which keeps text, llm and run. The job vision
  // is that of c-1, and speech that of c-2.
  void JoinCluster() {
    config::v1::Collector config;
    for (const char* member : {"c-0:7411", "c-1:7411", "c-2:7411"}) {
      config.mutable_cluster()->add_members(member);
    }
    auto membership = cluster::Membership::Make(config, "c-0");
    ASSERT_TRUE(membership.ok()) << membership.status();
    membership_ = std::make_unique<cluster::Membership>(*std::move(membership));
    Restart();
  }
  ingest::AdmissionOptions AsMember() {
    return {&limits_, absl::Hours(24), now_, &metrics_, membership_.get()};
  }

  // Adds a series of metric `name` with one sample; `ms` is after kNowNs.
  static void Add(ForeignWrite* write, const std::string& name, double value, int64_t ms = 0,
                  const std::string& job = "vision", const std::string& instance = "h1:1") {
    std::string& key = write->texts.emplace_back();
    AppendLabel("__name__", name, &key);
    AppendLabel("instance", instance, &key);
    AppendLabel("job", job, &key);
    write->AddSeries(key);
    write->AddSample(ingest::kNowNs + ms * 1'000'000, value);
  }

  WriteOutcome Write(const ForeignWrite& write,
                     security::RightsPtr rights = security::Rights::Everything()) {
    WriteOutcome result;
    absl::Notification done;
    intake_->Write(write, {"remote_write", {.peer = "test"}, rights}, [&](WriteOutcome outcome) {
      result = std::move(outcome);
      done.Notify();
    });
    done.WaitForNotification();
    return result;
  }

  // The samples of a metric by time in ms after kNowNs, as a query would see them.
  std::map<int64_t, double> Stored(const std::string& name, const std::string& job = "vision") {
    std::map<int64_t, double> samples;
    for (const auto& entry : store_.stored()) {
      if (entry.kind != "rows" || entry.layout == nullptr) continue;  // Null: it has expired.
      for (size_t i = 0; i < entry.value_bits.size(); ++i) {
        const storage::Series& series = *entry.layout->series[i % entry.layout->series.size()];
        const double value = std::bit_cast<double>(entry.value_bits[i]);
        if (series.metric->name != name || series.source->job != job || IsStaleMarker(value)) {
          continue;
        }
        const int64_t time = entry.times[i / entry.layout->series.size()];
        samples[(time - ingest::kNowNs) / 1'000'000] = value;
      }
    }
    return samples;
  }
  size_t StoredRows() {
    size_t rows = 0;
    for (const auto& entry : store_.stored()) rows += entry.times.size();
    return rows;
  }

  const std::function<absl::Time()> now_ = [] { return absl::FromUnixNanos(ingest::kNowNs); };
  ingest::IngestStore store_{now_()};
  prometheus::Registry registry_;
  ingest::IngestMetrics metrics_{&registry_};
  ingest::IngestLimits limits_{[] {
    auto limits = ingest::SmallLimits();
    limits.set_max_series_per_layout(100);
    limits.set_max_columns_per_stream(100);
    return limits;
  }()};
  ingest::Admission admission_{{&limits_, absl::Hours(24), now_, &metrics_}};
  edge::Quotas quotas_{{.config = ingest::SmallQuotas(), .registry = &registry_}};
  limits::SeriesLimiting limiting_{store_.get(), &registry_, config::v1::Limits()};
  std::unique_ptr<cluster::Membership> membership_;  // Null: all jobs are kept here.
  std::optional<ingest::Admission> member_admission_;
  Elsewhere* elsewhere_ = nullptr;  // Null: nothing is passed on.
  std::unique_ptr<Intake> intake_;
};

}  // namespace tacho::server::interop
