// A session over a store in memory, with small limits and a clock that stands still.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "prometheus/registry.h"
#include "server/ingest/stream_session.h"
#include "tests/server/ingest/ingest_malformed.h"
#include "tests/server/ingest/ingest_messages.h"
#include "tests/server/ingest/ingest_store.h"

namespace tacho::server::ingest {

class StreamSessionTest : public testing::Test {
 protected:
  StreamSessionTest() { store_.CommitAtOnce(); }

  std::shared_ptr<AckCoalescer> NewAcks() {
    return std::make_shared<AckCoalescer>(
        AckCoalescer::Options{store_.get(), &total_pending_, now_, [this] { ++wakes_; }});
  }
  StreamSession NewSession(uint64_t stream = 1,
                           security::RightsPtr rights = security::Rights::Everything()) {
    acks_ = NewAcks();
    return {&context_, acks_, stream, [this, stream] { evicted_.push_back(stream); },
            std::move(rights)};
  }
  // Sends all; the status of the first that fails.
  absl::Status Send(StreamSession* session, const std::vector<v1::ClientMessage>& messages) {
    for (const auto& message : messages) {
      if (auto answer = session->Handle(message); !answer.ok()) return answer.status();
    }
    store_.AwaitSettled();
    return absl::OkStatus();
  }
  v1::Welcome Greet(StreamSession* session, const v1::ClientMessage& hello = HelloMessage()) {
    auto answer = session->Handle(hello);
    EXPECT_TRUE(answer.ok()) << answer.status();
    store_.AwaitSettled();
    return answer.ok() && answer->has_value() ? **answer : v1::Welcome();
  }
  double Counter(const std::string& name, const std::string& label_value = "") {
    for (const auto& family : registry_.Collect()) {
      if (family.name != name) continue;
      for (const auto& metric : family.metric) {
        if (label_value.empty() || metric.label[0].value == label_value) {
          return metric.counter.value;
        }
      }
    }
    return -1;
  }

  double LimitCounter(const std::string& limit, const std::string& action) {
    for (const auto& family : registry_.Collect()) {
      if (family.name != "tacho_limit_series_total") continue;
      for (const auto& metric : family.metric) {
        std::map<std::string, std::string> labels;
        for (const auto& label : metric.label) labels[label.name] = label.value;
        if (labels["limit"] == limit && labels["action"] == action) return metric.counter.value;
      }
    }
    return -1;
  }

  const std::function<absl::Time()> now_ = [] { return absl::FromUnixNanos(kNowNs); };
  IngestStore store_{now_()};
  prometheus::Registry registry_;
  IngestMetrics metrics_{&registry_};
  IngestLimits limits_{SmallLimits()};
  Admission admission_{{&limits_, absl::Hours(24), now_, &metrics_}};
  AgentRegistry agents_;
  PendingBytes total_pending_;
  edge::Quotas quotas_{{.config = SmallQuotas(), .registry = &registry_}};
  static config::v1::Limits SmallSeriesLimits() {
    config::v1::Limits limits;
    limits.set_definitions_per_second(10);
    limits.set_definitions_burst(absl::ToInt64Nanoseconds(absl::Seconds(1)));
    return limits;
  }
  limits::SeriesLimiting limiting_{store_.get(), &registry_, SmallSeriesLimits()};
  SessionContext context_{store_.get(), &admission_, &agents_, &metrics_,
                          now_,         "9.9",       &quotas_, &limiting_};
  std::shared_ptr<AckCoalescer> acks_;
  std::vector<uint64_t> evicted_;
  std::atomic<int> wakes_ = 0;
};

}  // namespace tacho::server::ingest
