// The lanes over a spool in memory; a set of sequences stands for the collector.
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/stream/lanes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/journal/sequence_set.h"
#include "tests/support/faulty_env.h"

namespace tacho::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Sequences = std::vector<uint64_t>;

v1::Welcome WelcomeOf(const storage::SequenceSet& durable) {
  v1::Welcome welcome;
  welcome.set_durable_sequence(durable.watermark());
  for (const storage::SequenceRange& range : durable.ahead()) {
    v1::SequenceRange* ahead = welcome.add_durable_ahead();
    ahead->set_first(range.first);
    ahead->set_last(range.last);
  }
  return welcome;
}

class LanesTest : public ::testing::Test {
 protected:
  LanesTest() {
    auto spool = Spool::Open({.path = "/spool", .max_bytes = 1u << 20, .env = &env_});
    EXPECT_TRUE(spool.ok()) << spool.status();
    spool_ = *std::move(spool);
  }

  void Append(int messages) {
    v1::Layout layout;
    layout.add_series()->mutable_metric()->set_name("m");
    const uint32_t id = *spool_->DefineLayout(layout);
    for (int i = 0; i < messages; ++i) {
      const int64_t time = 1;
      const double value = 1;
      ASSERT_TRUE(spool_->AppendRows(id, {&time, 1}, {}, {&value, 1}, {}).ok());
    }
    ASSERT_TRUE(spool_->Sync().ok());
  }
  void AppendAttributes(int messages) {
    for (int i = 0; i < messages; ++i) {
      v1::Attributes attributes;
      (*attributes.mutable_values())["n"] = absl::StrCat(i);
      attributes_.insert(spool_->end());
      ASSERT_TRUE(spool_->AppendAttributes(attributes, {}).ok());
    }
    ASSERT_TRUE(spool_->Sync().ok());
  }

  void Connect() {
    v1::Welcome welcome = WelcomeOf(durable_);
    welcome.mutable_limits()->set_max_backlog_messages(max_backlog_messages_);
    lanes_ =
        std::make_unique<Lanes>(LaneOptions{.short_backlog = 10}, spool_.get(), &pace_, welcome);
  }

  // Sends what can be sent, at most `max`.
  Sequences Send(size_t max = SIZE_MAX) {
    Sequences sent;
    while (sent.size() < max) {
      EXPECT_TRUE(lanes_->Choose(now_).ok());
      if (lanes_->front() == nullptr) break;
      sent.push_back(lanes_->front()->sequence);
      lanes_->Sent(1, now_);
    }
    return sent;
  }
  // The collector takes them, and says so.
  void Take(const Sequences& sequences) {
    for (const uint64_t sequence : sequences) {
      if (attributes_.contains(sequence) && !durable_.Contains(sequence)) {
        EXPECT_GT(sequence, newest_attributes_);
        newest_attributes_ = sequence;
      }
      durable_.Add(sequence);
    }
    const v1::Welcome told = WelcomeOf(durable_);
    ASSERT_TRUE(lanes_->Durable(told.durable_sequence(), told.durable_ahead()));
    ASSERT_TRUE(spool_->Trim(told.durable_sequence() + 1).ok());
  }

  storage::FaultyEnv env_;
  std::unique_ptr<Spool> spool_;
  BacklogPace pace_;
  std::set<uint64_t> attributes_;  // Their sequences.
  uint64_t newest_attributes_ = 0;
  storage::SequenceSet durable_;
  uint32_t max_backlog_messages_ = 0;  // Of Welcome.
  std::unique_ptr<Lanes> lanes_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
};

TEST_F(LanesTest, ShortBacklogIsSentInOrder) {
  Append(8);
  Connect();
  Append(2);
  EXPECT_THAT(Send(), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
  EXPECT_TRUE(lanes_->backlog_sent());
}

TEST_F(LanesTest, FreshRowsGoFirstAndTheBacklogFollowsInOrder) {
  Append(20);
  Connect();
  Append(2);
  EXPECT_THAT(Send(5), ElementsAre(21, 22, 1, 2, 3));
  Append(1);
  EXPECT_THAT(Send(3), ElementsAre(23, 4, 5));
  EXPECT_FALSE(lanes_->backlog_sent());
}

TEST_F(LanesTest, BacklogHoldsAShareOfTheWayAndTheRestIsForFreshRows) {
  Append(100);
  Connect();
  const Sequences backlog = Send();
  EXPECT_THAT(backlog, SizeIs(Lanes::kMaxBacklogMessages)) << "nothing is acknowledged yet";
  Append(50);
  EXPECT_THAT(Send(), SizeIs(50));
  Take({backlog[0], backlog[1]});
  EXPECT_THAT(Send(), ElementsAre(33, 34));
}

TEST_F(LanesTest, ACollectorThatAcknowledgesLateMayAskForMoreOfTheBacklog) {
  Append(2000);
  for (const auto& [asked, sent] : std::vector<std::pair<uint32_t, size_t>>{
           {200, 200}, {1, 32}, {4'000'000'000, Lanes::kMostBacklogMessages}}) {
    max_backlog_messages_ = asked;
    Connect();
    EXPECT_THAT(Send(3000), SizeIs(sent)) << asked;
  }
}

TEST_F(LanesTest, BacklogKeepsToItsPaceAndFreshRowsDoNot) {
  pace_ = BacklogPace(10);
  Append(100);
  Connect();
  EXPECT_THAT(Send(), SizeIs(2)) << "one, and what the burst saved";
  EXPECT_GT(lanes_->next_choice(), now_);
  Append(40);
  EXPECT_THAT(Send(), SizeIs(40));
  now_ += absl::Seconds(1);
  EXPECT_THAT(Send(), SizeIs(2)) << "no more is saved than a burst";
}

TEST_F(LanesTest, WhatIsDurableAheadIsNotSentAgain) {
  Append(50);
  durable_.Add({1, 10});
  durable_.Add({21, 35});
  Connect();
  Append(1);
  Sequences expected = {51};
  for (uint64_t s = 11; s <= 20; ++s) expected.push_back(s);
  for (uint64_t s = 36; s <= 50; ++s) expected.push_back(s);
  EXPECT_EQ(Send(), expected);
}

TEST_F(LanesTest, CollectorWithManyRangesGetsNoMore) {
  Append(200);
  for (uint64_t i = 0; i < Lanes::kMaxAhead; ++i) durable_.Add(3 + 2 * i);
  const uint64_t newest = durable_.ahead().back().last;
  Connect();
  EXPECT_EQ(lanes_->split(), newest + 1) << "on where the newest range ends";
  EXPECT_EQ(Send(1), Sequences{newest + 1});
}

TEST_F(LanesTest, AttributesOfTheFreshLaneComeAfterTheBacklog) {
  Append(15);
  Connect();
  AppendAttributes(1);
  Append(1);
  Sequences expected = {17};
  for (uint64_t s = 1; s <= 16; ++s) expected.push_back(s);
  EXPECT_EQ(Send(), expected);
  AppendAttributes(1);
  EXPECT_THAT(Send(), ElementsAre(18)) << "no backlog any more";
}

TEST_F(LanesTest, FreshLaneWaitsAtAttributesThatMayNotBeLeftBehind) {
  Append(20);
  Connect();
  AppendAttributes(int{Lanes::kMaxDeferred});
  Append(1);  // 37
  AppendAttributes(1);
  Append(1);  // 39
  EXPECT_THAT(Send(1), ElementsAre(37));
  const Sequences rest = Send();
  EXPECT_THAT(rest, SizeIs(Lanes::kMaxBacklogMessages));
  Take({37});
  Take(rest);
  EXPECT_THAT(Send(), ElementsAre(33, 34, 35, 36, 38, 39));
}

TEST_F(LanesTest, AcknowledgementOfWhatWasNotSentIsRefused) {
  Append(20);
  Connect();
  Append(2);
  ASSERT_THAT(Send(4), ElementsAre(21, 22, 1, 2));
  EXPECT_FALSE(lanes_->Durable(22, {})) << "3 to 20 were not";
  EXPECT_FALSE(lanes_->Durable(3, {}));
  EXPECT_FALSE(lanes_->Durable(99, {}));
  EXPECT_TRUE(lanes_->Durable(2, {}));
}

TEST_F(LanesTest, WhatTheSpoolHadDroppedMayBeAcknowledgedBeforeAnythingIsSent) {
  Append(20);
  ASSERT_TRUE(spool_->Trim(10).ok()) << "as when it needs room";
  Connect();
  EXPECT_TRUE(lanes_->Durable(9, {})) << "the hole before Hello's first sequence is closed";
  EXPECT_FALSE(lanes_->Durable(10, {}));
}

TEST_F(LanesTest, WhatTheSpoolDroppedMeanwhileNeedNotBeSent) {
  Append(20);
  Connect();
  ASSERT_THAT(Send(1), ElementsAre(1));
  ASSERT_TRUE(spool_->Trim(10).ok()) << "as when it needs room";
  Sequences expected;
  for (uint64_t s = 10; s <= 20; ++s) expected.push_back(s);
  EXPECT_EQ(Send(), expected);
  EXPECT_TRUE(lanes_->Durable(20, {}));
}

// Outages and cuts at random: every message is taken, attributes in order, and the collector's set
// stays small all the time.
TEST_F(LanesTest, AnyHistoryOfCutsLeavesFewRangesAndLosesNothing) {
  std::mt19937_64 random(7);
  size_t most = 0;
  for (int round = 0; round < 400; ++round) {
    Append(static_cast<int>(random() % 40));
    AppendAttributes(random() % 3 == 0 ? static_cast<int>(random() % 8) : 0);
    Connect();
    for (uint64_t turns = random() % 6; turns > 0; --turns) {
      Append(static_cast<int>(random() % 5));
      AppendAttributes(static_cast<int>(random() % 2));
      Sequences sent = Send(random() % 40);
      const bool cut = turns == 1;
      if (cut && !sent.empty()) sent.resize(random() % sent.size());
      Take(sent);
      most = std::max(most, durable_.ahead().size());
    }
  }
  EXPECT_LE(most, Lanes::kMaxAhead + Lanes::kMaxDeferred);
  EXPECT_GT(most, 2u) << "the test tests nothing";
  Connect();
  for (Sequences sent = Send(); !sent.empty(); sent = Send()) Take(sent);
  EXPECT_EQ(durable_.watermark() + 1, spool_->end());
  EXPECT_EQ(spool_->begin(), spool_->end());
}

}  // namespace
}  // namespace tacho::agent
