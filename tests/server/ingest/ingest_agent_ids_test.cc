// Who may speak for an agent.
#include "gmock/gmock.h"
#include "tests/server/ingest/ingest_session_fixture.h"

namespace tacho::server::ingest {
namespace {

using security::JobPattern;
using security::Rights;
using security::RightsPtr;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class AgentIdTest : public StreamSessionTest {
 protected:
  // As a token of this name without agent_ids of its own, or with those that match.
  static RightsPtr Token(const std::string& name, const char* agents = nullptr) {
    Rights::Options options;
    options.name = name;
    options.write = true;
    options.principal = "the token \"" + name + "\"";
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

TEST_F(AgentIdTest, TheSameHolderConnectsAgain) {
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

TEST_F(AgentIdTest, WithoutAuthenticationNobodyHoldsAnId) {
  EXPECT_TRUE(Hello(Rights::Everything()).ok());
  EXPECT_TRUE(Hello(Token("a")).ok());
  EXPECT_TRUE(Hello(Rights::Everything()).ok());
}

}  // namespace
}  // namespace tacho::server::ingest
