// What the sender gives up when the collector refuses it, and what goes on all the same.
#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/agent/stream/sender_fixture.h"

namespace tacho::agent {
namespace {

TEST_F(SenderTest, RefusedMessageIsGivenUpWithAGapAndTheRestArrives) {
  collector_.judge = [](const v1::ClientMessage& message) {
    if (message.has_batch() && message.batch().values(0) == 42) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "batch.values: poison");
    }
    return grpc::Status::OK;
  };
  Append(1, 100);
  StartSender(collector_.address());
  ASSERT_TRUE(collector_.WaitForDurable(100)) << log();
  ASSERT_TRUE(WaitForEmptySpool());
  EXPECT_EQ(collector_.values().size(), 99u);
  const auto gaps = collector_.gaps();
  ASSERT_EQ(gaps.size(), 1u);
  EXPECT_EQ(gaps[0].lost().first(), 42u);
  EXPECT_EQ(gaps[0].lost().last(), 42u);
  EXPECT_EQ(gaps[0].rows(), 1u);
  EXPECT_EQ(gaps[0].sequence(), 42u) << "in its place";
  EXPECT_THAT(gaps[0].reason(), ::testing::HasSubstr("poison"));
  EXPECT_EQ(collector_.undefined_layouts(), 0);
}

TEST_F(SenderTest, GapThatIsRefusedInItsPlaceIsToldAtTheEnd) {
  collector_.judge = [](const v1::ClientMessage& message) {
    if (message.has_batch() && message.batch().values(0) == 42) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "batch.values: poison");
    }
    if (message.has_gap() && message.gap().lost().first() == message.gap().sequence()) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "gap.sequence: must lie outside");
    }
    return grpc::Status::OK;
  };
  Append(1, 100);
  StartSender(collector_.address());
  ASSERT_TRUE(collector_.WaitForDurable(101)) << log();
  ASSERT_TRUE(WaitForEmptySpool());
  EXPECT_EQ(collector_.values().size(), 99u);
  ASSERT_EQ(collector_.gaps().size(), 1u);
  EXPECT_THAT(collector_.gaps()[0].reason(), ::testing::HasSubstr("poison"));
}

// A collector keeps 1,024 ranges of an agent, and refuses what would make one more.
TEST_F(SenderTest, JobThatMayNotBeWrittenHoldsUpNoOtherAndLeavesNoHoles) {
  collector_.judge = [](const v1::ClientMessage& message) {
    if (message.has_batch() && message.batch().values(0) < 0) {
      return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "layout.source.job: not yours");
    }
    return grpc::Status::OK;
  };
  for (int i = 1; i <= 1500; ++i) {
    Append(i, i, "ours");
    Append(-i, -i, "theirs");
  }
  StartSender(collector_.address());
  ASSERT_TRUE(collector_.WaitForDurable(3000)) << log();
  ASSERT_TRUE(WaitForEmptySpool());
  EXPECT_EQ(collector_.values().size(), 1500u);
  EXPECT_EQ(collector_.gaps().size(), 1500u);
  EXPECT_LE(collector_.most_ranges(), 1);
  EXPECT_LE(collector_.hellos().size(), 3u) << "one refusal to learn of it, one to find the job";
  EXPECT_THAT(log(), ::testing::HasSubstr("auth.tokens_file")) << "what to do";
  EXPECT_LE(std::ranges::count(log(), '\n'), 10) << log();
}

TEST_F(SenderTest, AttributesAndEventsOfAJobThatMayNotBeWrittenAreGivenUpWithIt) {
  collector_.judge = [](const v1::ClientMessage& message) {
    if (message.event().source().job() == "theirs" || message.attributes().job() == "theirs") {
      return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "event.source.job: not yours");
    }
    return grpc::Status::OK;
  };
  v1::Event event;
  event.mutable_source()->set_job("theirs");
  v1::Attributes attributes;
  attributes.set_job("theirs");
  for (int i = 1; i <= 50; ++i) {
    Append(i, i, "ours");
    ASSERT_TRUE(spool_->AppendEvent(event, {}).ok());
    ASSERT_TRUE(spool_->AppendAttributes(attributes, {}).ok());
  }
  StartSender(collector_.address());
  ASSERT_TRUE(collector_.WaitForDurable(150)) << log();
  EXPECT_EQ(collector_.values().size(), 50u);
  EXPECT_LE(collector_.hellos().size(), 3u);
}

TEST_F(SenderTest, MessageTooLargeForTheCollectorIsGivenUp) {
  collector_.welcome.mutable_limits()->set_max_message_bytes(200);
  Append(1, 1);
  v1::Event event;
  event.set_kind("note");
  event.set_message(std::string(500, 'x'));
  ASSERT_TRUE(spool_->AppendEvent(event, {}).ok());
  StartSender(collector_.address());
  ASSERT_TRUE(collector_.WaitForDurable(2)) << log();
  EXPECT_THAT(collector_.gaps().at(0).reason(), ::testing::HasSubstr("max_message_bytes"));
}

// As an agent that was built before layouts were cut has left it in its spool.
TEST_F(SenderTest, LayoutTooLargeForTheCollectorIsNeverSentAndTheRestArrives) {
  v1::Layout layout;
  layout.mutable_source()->set_job("wide");
  for (int i = 0; i < 500; ++i) {
    layout.add_series()->mutable_metric()->set_name(absl::StrCat("metric_", i));
  }
  const auto id = spool_->DefineLayout(layout);
  ASSERT_TRUE(id.ok());
  const int64_t time = 1;
  const std::vector<double> values(500, 7);
  ASSERT_TRUE(spool_->AppendRows(*id, {&time, 1}, {}, values, {}).ok());
  Append(2, 5);
  collector_.welcome.mutable_limits()->set_max_message_bytes(6000);
  StartSender(collector_.address());
  ASSERT_TRUE(collector_.WaitForDurable(5)) << log();
  EXPECT_THAT(collector_.gaps().at(0).reason(), ::testing::HasSubstr("max_message_bytes"));
  EXPECT_EQ(collector_.values().size(), 4u);
  EXPECT_EQ(collector_.hellos().size(), 1u) << "one stream";
}

TEST_F(SenderTest, WideRowsArriveInPartsThatTheCollectorTakes) {
  collector_.welcome.mutable_limits()->set_max_message_bytes(64 << 10);
  collector_.welcome.mutable_limits()->set_max_series_per_layout(1000);
  StartSender(collector_.address());
  Append(1, 1, "first");
  ASSERT_TRUE(collector_.WaitForDurable(1)) << log();
  v1::Layout layout;
  layout.mutable_source()->set_job("wide");
  for (int i = 0; i < 20'000; ++i) {
    v1::Metric* metric = layout.add_series()->mutable_metric();
    metric->set_name(absl::StrCat("metric_", i));
    metric->set_help(std::string(200, 'h'));
  }
  const auto id = spool_->DefineLayout(layout);
  ASSERT_TRUE(id.ok());
  const int64_t time = 1;
  const std::vector<double> values(20'000, 7);
  ASSERT_TRUE(spool_->AppendRows(*id, {&time, 1}, {}, values, {}).ok());
  ASSERT_TRUE(WaitForEmptySpool()) << log();
  EXPECT_EQ(collector_.samples(), 20'001u);
  EXPECT_LE(collector_.most_bytes(), 64u << 10);
  EXPECT_LE(collector_.most_series(), 1000);
  EXPECT_TRUE(collector_.gaps().empty());
}

}  // namespace
}  // namespace tacho::agent
