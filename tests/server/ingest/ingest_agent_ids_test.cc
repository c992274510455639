// Who may speak for an agent.
#include "gmock/gmock.h"
#include "tests/server/ingest/ingest_session_fixture.h"

namespace tacho::server::ingest {
namespace {

using security::JobPattern;
using security::Rights;
using security::RightsPtr;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class AgentIdTest : public StreamSessionTest {
 protected:
  // As a token of this name without agent_ids of its own, or with those that match.
  static RightsPtr Token(const std::string& name, const char* agents = nullptr) {
    Rights::Options options;
    options.name = name;
    options.write = true;
    options.owner = security::TokenOwner(name);
    if (agents != nullptr) options.agents = std::make_shared<const RE2>(agents);
    return std::make_shared<const Rights>(std::move(options));
  }
  // Says Hello as agent-1 in its generation 7, and leaves again.
  absl::Status Hello(RightsPtr rights, const std::vector<v1::ClientMessage>& then = {}) {
    StreamSession session = NewSession(2, std::move(rights));
    absl::Status status = Send(&session, {HelloMessage()});
    if (status.ok()) status = Send(&session, then);
    agents_.Release(2);
    return status;
  }
  uint64_t Watermark() { return store_->DurableSequences("agent-1", 7).watermark(); }
};

TEST_F(AgentIdTest, NobodyElseClosesAnAgentsSequencesAlsoIfHeKnowsItsGeneration) {
  StreamSession session = NewSession(1, Token("a"));
  ASSERT_TRUE(Send(&session, {HelloMessage(), LayoutMessage(), BatchMessage(1)}).ok());
  const absl::Status refused = Hello(Token("b"), {GapMessage(101, 2, 100)});
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("hello.agent_id"), HasSubstr("\"b\" may not speak for \"agent-1\""),
                    HasSubstr("the token \"a\" used it first"), HasSubstr("auth.tokens_file")));
  EXPECT_EQ(Watermark(), 1u);
  EXPECT_THAT(evicted_, IsEmpty()) << "the agent's own stream goes on";
  EXPECT_EQ(Counter("tacho_ingest_messages_refused_total", "rights"), 1);
  ASSERT_TRUE(Send(&session, {BatchMessage(2)}).ok());
  EXPECT_EQ(Watermark(), 2u);
}

TEST_F(AgentIdTest, TheSameOwnerConnectsAgain) {
  EXPECT_TRUE(Hello(Token("a")).ok());
  EXPECT_TRUE(Hello(Token("a")).ok());
}

TEST_F(AgentIdTest, WhoIsGivenTheIdTakesItOverFromWhoUsedItFirst) {
  ASSERT_TRUE(Hello(Token("a")).ok());
  EXPECT_EQ(Hello(Token("b", "agent-2")).code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(Hello(Token("b", "agent-.*")).ok());
  EXPECT_EQ(Hello(Token("a")).code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(Hello(Token("b")).ok());
}

// Else an owner that stays connected could keep the id, although its spool is another.
TEST_F(AgentIdTest, TakingAnIdOverEndsTheStreamOfItsFormerOwnerWhateverItsGeneration) {
  StreamSession former = NewSession(1, Token("a"));
  ASSERT_TRUE(Send(&former, {HelloMessage("agent-1", 7)}).ok());
  StreamSession heir = NewSession(2, Token("b", "agent-.*"));
  ASSERT_TRUE(Send(&heir, {HelloMessage("agent-1", 8)}).ok());
  EXPECT_THAT(evicted_, ElementsAre(1));
  agents_.Release(1);  // As the evicted stream does; it must not free the id.
  StreamSession other_spool = NewSession(3, Token("b"));
  EXPECT_EQ(Send(&other_spool, {HelloMessage("agent-1", 9)}).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(evicted_, ElementsAre(1));
}

// As after a reload: the store and a stream that ends soon may know an owner.
TEST_F(AgentIdTest, WithoutAnOwnerNobodyTakesAnIdFromALiveStream) {
  StreamSession owned = NewSession(1, Token("a"));
  ASSERT_TRUE(Send(&owned, {HelloMessage("agent-1", 7)}).ok());
  StreamSession anyone = NewSession(2);
  EXPECT_EQ(Send(&anyone, {HelloMessage("agent-1", 8)}).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(evicted_, IsEmpty());
}

TEST_F(AgentIdTest, WithoutAuthenticationNobodyOwnsAnId) {
  EXPECT_TRUE(Hello(Rights::Everything()).ok());
  EXPECT_TRUE(Hello(Token("a")).ok());
  EXPECT_TRUE(Hello(Rights::Everything()).ok());
}

}  // namespace
}  // namespace tacho::server::ingest
