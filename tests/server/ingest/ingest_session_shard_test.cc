// Streams of a cluster: who has another list, or sends to the wrong member, is turned away with the
// name of the right one, and nothing of it is stored.
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/cluster/membership.h"
#include "tests/server/ingest/ingest_session_fixture.h"

namespace tacho::server::ingest {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

// Of the members c-0, c-1 and c-2, the second keeps the job vision.
class SessionShardTest : public StreamSessionTest {
 protected:
  // This collector is that member from now on.
  void Be(const std::string& member) {
    config::v1::Collector config;
    for (const char* one : {"c-0:7411", "c-1:7411", "c-2:7411"}) {
      config.mutable_cluster()->add_members(one);
    }
    auto made = cluster::Membership::Make(config, member);
    ASSERT_TRUE(made.ok()) << made.status();
    membership_ = std::make_unique<cluster::Membership>(*std::move(made));
    admission_of_member_ = std::make_unique<Admission>(
        AdmissionOptions{&limits_, absl::Hours(24), now_, &metrics_, membership_.get()});
    context_.admission = admission_of_member_.get();
  }
  static v1::ClientMessage Hello(uint32_t shards, uint32_t shard) {
    v1::ClientMessage message = HelloMessage();
    message.mutable_hello()->set_shards(shards);
    message.mutable_hello()->set_shard(shard);
    return message;
  }
  // Why the last of the messages ends the stream.
  std::string Refused(const std::vector<v1::ClientMessage>& messages) {
    StreamSession session = NewSession();
    const absl::Status status = Send(&session, messages);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(store_.stored(), IsEmpty());
    return std::string(status.message());
  }

  std::unique_ptr<cluster::Membership> membership_;
  std::unique_ptr<Admission> admission_of_member_;
};

TEST_F(SessionShardTest, TheKeeperOfAJobTakesIt) {
  Be("c-1");
  StreamSession session = NewSession();
  EXPECT_TRUE(Send(&session, {Hello(3, 1), LayoutMessage(), BatchMessage(1), EventMessage(2),
                              AttributesMessage(3)})
                  .ok());
  EXPECT_EQ(store_->DurableSequences("agent-1", 7).watermark(), 3u);
}

TEST_F(SessionShardTest, WhoHasAnotherListIsTurnedAway) {
  Be("c-1");
  EXPECT_THAT(Refused({HelloMessage()}),
              AllOf(HasSubstr("this collector is c-1:7411 (shard 1 of 3)"),
                    HasSubstr("the sender knows no cluster"), HasSubstr("collector.members")));
  EXPECT_THAT(Refused({Hello(4, 1)}), HasSubstr("knows a cluster of 4 collectors"));
  EXPECT_THAT(Refused({Hello(3, 2)}),
              AllOf(HasSubstr("takes it for shard 2"), HasSubstr("in the same order")));
  EXPECT_EQ(Counter("tacho_ingest_messages_refused_total", "shard"), 3);
}

TEST_F(SessionShardTest, ACollectorAloneIsNoMember) {
  EXPECT_THAT(Refused({Hello(3, 0)}), HasSubstr("this collector is in none"));
  StreamSession session = NewSession();
  EXPECT_TRUE(Send(&session, {Hello(1, 0)}).ok());
}

TEST_F(SessionShardTest, AForeignJobEndsTheStreamWithItsKeepersName) {
  Be("c-0");
  const char* const why = "job vision belongs to c-1:7411 (shard 1 of 3): send it there";
  EXPECT_EQ(Refused({Hello(3, 0), LayoutMessage()}), absl::StrCat("layout.source.job: ", why));
  EXPECT_EQ(Refused({Hello(3, 0), EventMessage(1)}), absl::StrCat("event.source.job: ", why));
  EXPECT_EQ(Refused({Hello(3, 0), AttributesMessage(1)}), absl::StrCat("attributes.job: ", why));
  EXPECT_EQ(Counter("tacho_ingest_messages_refused_total", "shard"), 3);
}

}  // namespace
}  // namespace tacho::server::ingest
