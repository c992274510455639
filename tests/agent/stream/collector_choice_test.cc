// Which collector comes next, which addresses are taken, and the pace of a backlog.
#include "agent/stream/collector_choice.h"

#include "agent/stream/collector_config.h"
#include "agent/stream/pace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/config/yaml_config.h"

namespace tacho::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CollectorChoiceTest : public ::testing::Test {
 protected:
  static CollectorChoice Make(size_t collectors, double random = 0) {
    return CollectorChoice({.collectors = collectors,
                            .backoff_min = absl::Seconds(1),
                            .backoff_max = absl::Seconds(8),
                            .return_after = absl::Minutes(10),
                            .random = [random] { return random; }});
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
};

TEST_F(CollectorChoiceTest, OneCollectorIsTriedWithRisingPauses) {
  CollectorChoice choice = Make(1);
  EXPECT_LE(choice.begin_at(), now_);
  for (const double pause : {0.5, 1.0, 2.0, 4.0, 4.0}) {
    choice.Ended(now_, {});
    EXPECT_EQ(choice.collector(), 0u);
    EXPECT_EQ(choice.begin_at(), now_ + absl::Seconds(pause));
  }
  choice.Progressed();
  choice.Ended(now_, {});
  EXPECT_EQ(choice.begin_at(), now_ + absl::Milliseconds(500));
}

TEST_F(CollectorChoiceTest, OneThatDoesNotAnswerIsLeftForTheNextAtOnce) {
  CollectorChoice choice = Make(3);
  choice.Ended(now_, {});
  EXPECT_EQ(choice.collector(), 1u);
  EXPECT_LE(choice.begin_at(), now_);
  choice.Ended(now_, {});
  EXPECT_EQ(choice.collector(), 2u);
  choice.Ended(now_, {});
  EXPECT_EQ(choice.collector(), 0u) << "round again";
  EXPECT_EQ(choice.begin_at(), now_ + absl::Milliseconds(500)) << "but not without a pause";
}

TEST_F(CollectorChoiceTest, OneThatWorkedIsTriedOnceMoreBeforeAnother) {
  CollectorChoice choice = Make(2);
  choice.Welcomed(now_);
  choice.Progressed();
  choice.Ended(now_, {});
  EXPECT_EQ(choice.collector(), 0u);
  choice.Ended(now_ + absl::Seconds(1), {});
  EXPECT_EQ(choice.collector(), 1u);
}

TEST_F(CollectorChoiceTest, OneThatWelcomesButStoresNothingIsLeftAfterSomeTries) {
  CollectorChoice choice = Make(2);
  for (int i = 1; i < CollectorChoice::kMaxFruitless; ++i) {
    choice.Welcomed(now_);
    choice.Ended(now_, {});
    EXPECT_EQ(choice.collector(), 0u);
  }
  choice.Welcomed(now_);
  choice.Ended(now_, {});
  EXPECT_EQ(choice.collector(), 1u);
}

TEST_F(CollectorChoiceTest, OneThatWantsALongRestIsLeftAndNotDisturbed) {
  CollectorChoice choice = Make(2);
  choice.Welcomed(now_);
  choice.Progressed();
  choice.Ended(now_, absl::Minutes(2));
  EXPECT_EQ(choice.collector(), 1u);
  choice.Ended(now_, {});
  EXPECT_EQ(choice.collector(), 1u) << "its pause is the shorter one";
}

TEST_F(CollectorChoiceTest, EarlierOneIsTriedAgainAfterATimeAndTheLaterKeptInReserve) {
  CollectorChoice choice = Make(2, 0.5);
  choice.Ended(now_, {});
  choice.Welcomed(now_);
  EXPECT_EQ(choice.return_at(), now_ + absl::Minutes(12.5)) << "jittered";
  now_ = choice.return_at();
  choice.Returned(now_);
  EXPECT_EQ(choice.collector(), 0u);
  EXPECT_LE(choice.begin_at(), now_);
  EXPECT_TRUE(choice.hurried());
  choice.Ended(now_, {});
  EXPECT_EQ(choice.collector(), 1u);
  EXPECT_LE(choice.begin_at(), now_) << "it works: no pause";
  EXPECT_FALSE(choice.hurried());
  choice.Welcomed(now_);
  EXPECT_GT(choice.return_at(), now_);
}

TEST_F(CollectorChoiceTest, PreferredOneIsNeverLeftForItsTime) {
  CollectorChoice choice = Make(2);
  choice.Welcomed(now_);
  EXPECT_EQ(choice.return_at(), absl::InfiniteFuture());
}

config::v1::Agent::Collector Parse(absl::string_view yaml) {
  config::v1::Agent config;
  const absl::Status status = config::ParseYaml(yaml, "test", &config);
  EXPECT_TRUE(status.ok()) << status;
  return config.collector();
}

TEST(CollectorAddressesTest, AddressesOrTheOneAddress) {
  EXPECT_THAT(*CollectorAddresses(Parse("")), ElementsAre("127.0.0.1:7411"));
  EXPECT_THAT(*CollectorAddresses(Parse("collector: {address: 'a:1'}")), ElementsAre("a:1"));
  EXPECT_THAT(*CollectorAddresses(Parse("collector: {addresses: ['b:2', 'a:1']}")),
              ElementsAre("b:2", "a:1"));
}

TEST(CollectorAddressesTest, WhatIsContradictoryIsRefusedByName) {
  const auto refusal = [](absl::string_view yaml) {
    return std::string(CollectorAddresses(Parse(yaml)).status().message());
  };
  EXPECT_THAT(refusal("collector: {address: 'a:1', addresses: ['b:2']}"), HasSubstr("both given"));
  EXPECT_THAT(refusal("collector: {addresses: []}"), HasSubstr("is empty"));
  EXPECT_THAT(refusal("collector: {addresses: ['']}"), HasSubstr("empty element"));
  EXPECT_THAT(refusal("collector: {addresses: ['a:1', 'a:1']}"), HasSubstr("a:1 twice"));
}

TEST(CollectorAddressesTest, MembersAreTakenInTheirOrder) {
  const auto config = Parse("collector: {members: ['b:2', 'a:1']}");
  EXPECT_TRUE(IsCluster(config));
  EXPECT_FALSE(IsCluster(Parse("collector: {addresses: ['b:2', 'a:1']}")));
  EXPECT_THAT(*CollectorAddresses(config), ElementsAre("b:2", "a:1"));
}

TEST(CollectorAddressesTest, OneMemberMayHaveSpares) {
  const auto config = Parse("collector: {members: ['a:1'], spares: ['b:1', 'c:1']}");
  EXPECT_FALSE(IsCluster(config));
  EXPECT_THAT(*CollectorAddresses(config), ElementsAre("a:1"));
  EXPECT_THAT(SpareAddresses(config), ElementsAre("b:1", "c:1"));
}

TEST(CollectorAddressesTest, MembersThatMakeNoClusterAreRefusedByName) {
  const auto refusal = [](absl::string_view yaml) {
    return std::string(CollectorAddresses(Parse(yaml)).status().message());
  };
  EXPECT_THAT(refusal("collector: {address: 'a:1', members: ['a:1', 'b:2']}"),
              HasSubstr("collector.members and collector.address are both given"));
  EXPECT_THAT(refusal("collector: {addresses: ['a:1'], members: ['a:1', 'b:2']}"),
              HasSubstr("collector.members and collector.addresses are both given"));
  EXPECT_THAT(refusal("collector: {members: ['a:1']}"), HasSubstr("has one address (a:1)"));
  EXPECT_THAT(refusal("collector: {members: ['a:1', '']}"), HasSubstr("empty element"));
  EXPECT_THAT(refusal("collector: {members: ['a:1', 'b:2', 'a:1']}"), HasSubstr("a:1 twice"));
  EXPECT_THAT(refusal("collector: {members: ['a:1', 'b:2'], spares: ['b:2']}"),
              HasSubstr("b:2 twice"));
  EXPECT_THAT(refusal("collector: {spares: ['b:2']}"), HasSubstr("needs collector.members"));
}

TEST(BacklogPaceTest, KeepsToItsRateAndSavesALittle) {
  BacklogPace pace(1000);
  absl::Time now = absl::FromUnixSeconds(1000);
  uint64_t sent = 0;
  for (int ms = 0; ms < 10'000; ++ms, now += absl::Milliseconds(1)) {
    for (; pace.Ready(now); sent += 7) pace.Sent(7, now);
  }
  EXPECT_GE(sent, 10'000u);
  EXPECT_LE(sent, 10'000u + 1000 * absl::ToDoubleSeconds(BacklogPace::kBurst) + 7);
  pace.Sent(5000, now);
  EXPECT_FALSE(pace.Ready(now + absl::Seconds(4.8)));
  EXPECT_TRUE(pace.Ready(now + absl::Seconds(5.1)));
}

TEST(BacklogPaceTest, MessageWithoutRowsCostsOneAndNoRateIsNoBound) {
  const absl::Time now = absl::FromUnixSeconds(1000);
  BacklogPace slow(1);
  slow.Sent(0, now);
  EXPECT_FALSE(slow.Ready(now + absl::Milliseconds(800)));
  BacklogPace free(0);
  free.Sent(1'000'000, now);
  EXPECT_TRUE(free.Ready(now));
}

}  // namespace
}  // namespace tacho::agent
