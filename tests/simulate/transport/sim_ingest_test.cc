// A real sender and a real ingest service over a simulated network.
#include <grpc/grpc.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "agent/spool/spool.h"
#include "agent/stream/sender.h"
#include "gtest/gtest.h"
#include "prometheus/registry.h"
#include "server/ingest/ingest_service.h"
#include "tests/server/ingest/ingest_messages.h"
#include "tests/server/ingest/ingest_store.h"
#include "tests/simulate/transport/sim_network.h"
#include "tests/support/faulty_env.h"

namespace tacho::simulate {
namespace {

using server::ingest::IngestService;
using server::ingest::IngestStore;
using server::ingest::kNowNs;

constexpr char kAddress[] = "collector:4717";

// What a collector's process has but its store, which outlives it.
class Collector {
 public:
  explicit Collector(storage::Store* store)
      : limiting_(store, &registry_, config::v1::Limits()),
        quotas_({.config = server::ingest::SmallQuotas(), .registry = &registry_, .resident = [] {
                   return uint64_t{0};
                 }}) {
    server::ingest::IngestServiceOptions options;
    options.store = store;
    options.registry = &registry_;
    options.quotas = &quotas_;
    options.limiting = &limiting_;
    options.limits = server::ingest::SmallLimits();
    options.ack_tick = absl::Milliseconds(1);
    options.now = [] { return absl::FromUnixNanos(kNowNs); };
    service_ = std::make_unique<IngestService>(std::move(options));
  }

  Acceptor acceptor() {
    return [this](const std::string& peer) {
      return service_->Begin(peer, server::security::Caller::Anyone());
    };
  }
  uint64_t open_streams() const { return service_->open_streams(); }

 private:
  prometheus::Registry registry_;
  server::limits::SeriesLimiting limiting_;
  server::edge::Quotas quotas_;
  std::unique_ptr<IngestService> service_;
};

class SimIngestTest : public testing::Test {
 protected:
  SimIngestTest() {
    store_.CommitAtOnce();
    auto spool = agent::Spool::Open(
        {.path = "/spool", .now = [] { return absl::FromUnixNanos(kNowNs); }, .env = &spool_env_});
    EXPECT_TRUE(spool.ok()) << spool.status();
    spool_ = *std::move(spool);
  }
  ~SimIngestTest() override {
    sender_.reset();
    if (network_ != nullptr) network_->Stop();
    store_.AwaitSettled();
    EXPECT_EQ(grpc_is_initialized(), 0) << "something here has started gRPC";
  }

  void Start(const SimNetworkOptions& options) {
    network_ = std::make_unique<SimNetwork>(options);
    StartCollector();
    StartSender();
  }
  void StartCollector() {
    collector_ = std::make_unique<Collector>(store_.get());
    network_->Listen(kAddress, collector_->acceptor());
  }
  void StartSender() {
    agent::StreamOptions options;
    options.addresses = {kAddress};
    options.agent_id = "agent-7";
    options.version = "test";
    options.backoff_min = absl::Milliseconds(1);
    options.backoff_max = absl::Milliseconds(5);
    options.sync_interval = absl::Milliseconds(1);
    options.random = [] { return 0.5; };
    options.transport = [this] { return network_->MakeTransport("host-1"); };
    sender_ = std::make_unique<agent::Sender>(options, spool_.get());
    sender_->Start();
  }

  // Spools rows with the next values.
  void Append(int rows) {
    v1::Layout layout;
    layout.mutable_source()->set_job("vision");
    layout.mutable_source()->set_host("host-1");
    layout.add_series()->mutable_metric()->set_name("m");
    const auto id = spool_->DefineLayout(layout);
    ASSERT_TRUE(id.ok()) << id.status();
    for (int i = 0; i < rows; ++i) {
      const double value = ++appended_;
      const int64_t time = kNowNs + appended_;
      ASSERT_TRUE(spool_->AppendRows(*id, {&time, 1}, {}, {&value, 1}, {}).ok());
    }
  }
  bool IsDelivered() const { return spool_->begin() == spool_->end(); }
  bool AwaitDelivery() const {
    for (int i = 0; i < 20'000 && !IsDelivered(); ++i) absl::SleepFor(absl::Milliseconds(1));
    return IsDelivered();
  }
  void ExpectEachRowOnce() {
    store_.AwaitSettled();
    std::vector<double> stored;
    for (const IngestStore::Entry& entry : store_.stored()) {
      for (const uint64_t bits : entry.value_bits) stored.push_back(std::bit_cast<double>(bits));
    }
    std::sort(stored.begin(), stored.end());
    ASSERT_EQ(stored.size(), static_cast<size_t>(appended_));
    for (int i = 0; i < appended_; ++i) EXPECT_EQ(stored[i], i + 1);
  }

  IngestStore store_{absl::FromUnixNanos(kNowNs)};
  storage::FaultyEnv spool_env_;
  std::unique_ptr<SimNetwork> network_;
  std::unique_ptr<Collector> collector_;
  std::unique_ptr<agent::Spool> spool_;
  std::unique_ptr<agent::Sender> sender_;
  int appended_ = 0;
};

TEST_F(SimIngestTest, EverythingArrivesOnceAndGrpcIsNeverStarted) {
  Start({.latency_min = absl::Microseconds(10), .latency_max = absl::Microseconds(200)});
  Append(1000);
  EXPECT_TRUE(AwaitDelivery());
  ExpectEachRowOnce();
  EXPECT_EQ(collector_->open_streams(), 1);
  EXPECT_EQ(grpc_is_initialized(), 0);
}

TEST_F(SimIngestTest, EverythingArrivesOnceOverStreamsThatAreCutAtRandomBytes) {
  constexpr uint64_t kSeed = 7;
  Start({.seed = kSeed,
         .latency_min = absl::Microseconds(10),
         .latency_max = absl::Microseconds(500),
         .bytes_per_second = 4 << 20});
  std::mt19937_64 random(kSeed);
  for (int round = 0; network_->cuts() < 30; ++round) {
    network_->CutAfterBytes(round % 2 == 0 ? "host-1" : kAddress, random() % 3000);
    Append(static_cast<int>(random() % 40));
    absl::SleepFor(absl::Milliseconds(static_cast<int64_t>(random() % 5)));
  }
  EXPECT_TRUE(AwaitDelivery());
  ExpectEachRowOnce();
}

TEST_F(SimIngestTest, EverythingArrivesOnceThoughTheCollectorIsKilledAgainAndAgain) {
  Start({.latency_max = absl::Microseconds(300)});
  for (int round = 0; round < 10; ++round) {
    Append(50);
    absl::SleepFor(absl::Milliseconds(3));
    network_->Unlisten(kAddress);
    EXPECT_EQ(collector_->open_streams(), 0);
    store_.AwaitSettled();
    StartCollector();
  }
  EXPECT_TRUE(AwaitDelivery());
  ExpectEachRowOnce();
}

TEST_F(SimIngestTest, KilledAgentStopsAtOnceAndTheNextOneDeliversTheRest) {
  Start({.latency_max = absl::Microseconds(300)});
  for (int round = 0; round < 10; ++round) {
    Append(50);
    absl::SleepFor(absl::Milliseconds(3));
    network_->Kill("host-1");
    sender_.reset();
    StartSender();
  }
  EXPECT_TRUE(AwaitDelivery());
  ExpectEachRowOnce();
}

TEST_F(SimIngestTest, HalfOpenStreamIsFoundDeadByItsSilenceAndAnotherDelivers) {
  Start({.latency_max = absl::Microseconds(300),
         .agent = {absl::Milliseconds(30), absl::Milliseconds(40), absl::Milliseconds(10)},
         .server = {absl::Milliseconds(10), absl::Milliseconds(20), absl::Milliseconds(20)}});
  for (int round = 0; round < 5; ++round) {
    Append(20);
    absl::SleepFor(absl::Milliseconds(3));
    network_->HalfOpen("host-1", kAddress);
  }
  Append(20);
  EXPECT_TRUE(AwaitDelivery());
  ExpectEachRowOnce();
}

TEST_F(SimIngestTest, PartedEndpointsGoOnWhereTheyWere) {
  Start({.latency_max = absl::Microseconds(300)});
  Append(20);
  EXPECT_TRUE(AwaitDelivery());
  network_->Partition(kAddress, "host-1", true);
  Append(20);
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_FALSE(IsDelivered());
  network_->Partition("host-1", kAddress, false);
  EXPECT_TRUE(AwaitDelivery());
  ExpectEachRowOnce();
  EXPECT_EQ(network_->cuts(), 0u);
}

}  // namespace
}  // namespace tacho::simulate
