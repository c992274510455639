// Who may use an agent's id.
#include "gmock/gmock.h"
#include "tests/storage/store_fixture.h"

namespace tacho::storage {
namespace {

class AgentOwnersTest : public StoreFixture {
 protected:
  static constexpr bool kTakeOver = true;

  std::string Claim(const std::string& agent, const std::string& owner, bool take_over = false) {
    std::string claimed = store_->ClaimAgent(agent, owner, take_over);
    // Everything that was queued before is done with then.
    EXPECT_TRUE(Wait([&](AppendDone done) {
                  store_->AppendGap({}, {0, 0}, 0, "", std::move(done));
                }).ok());
    return claimed;
  }
  // Opens what the disk holds at this moment, as after a loss of power.
  void ReopenFromACopy(const std::string& path) {
    ASSERT_TRUE(store_->Checkpoint(path).ok());
    ASSERT_TRUE(store_->Close().ok());
    store_.reset();
    options_.path = path;
    Reopen();
  }
};

TEST_F(AgentOwnersTest, TheFirstOneKeepsTheIdAlsoAfterARestart) {
  EXPECT_EQ(Claim("agent", "a"), "a");
  EXPECT_EQ(Claim("agent", "b"), "a");
  EXPECT_EQ(Claim("agent-2", "b"), "b");
  ReopenFromACopy("/copy");
  EXPECT_EQ(Claim("agent", "b"), "a");
  EXPECT_EQ(Claim("agent", "a"), "a");
  EXPECT_EQ(Claim("agent-2", "a"), "b");
}

TEST_F(AgentOwnersTest, WhoTakesItOverKeepsItAlsoAfterARestart) {
  Claim("agent", "a");
  EXPECT_EQ(Claim("agent", "b", kTakeOver), "b");
  EXPECT_EQ(Claim("agent", "a"), "b");
  ReopenFromACopy("/copy");
  EXPECT_EQ(Claim("agent", "a"), "b");
}

// Else a restart right after an agent's first row would give its id to whoever comes next.
TEST_F(AgentOwnersTest, AClaimIsDurableWithTheFirstMessageBehindIt) {
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  store_->ClaimAgent("agent", "a", false);
  ASSERT_TRUE(Append(layout, {absl::ToUnixNanos(now_)}, {1}, {1}, {"agent", 1, 1}).ok());
  ReopenFromACopy("/copy");
  EXPECT_EQ(store_->DurableSequences("agent", 1).watermark(), 1u);
  EXPECT_EQ(Claim("agent", "b"), "a");
}

TEST_F(AgentOwnersTest, TheIdIsFreeAgainOnceTheAgentIsForgotten) {
  options_.retention = absl::Hours(24);
  Reopen();
  const auto later = [this](int days) {
    now_ += absl::Hours(24 * days);
    ASSERT_TRUE(store_->EnforceRetention().ok());
    ASSERT_TRUE(store_->EnforceRetention().ok()) << "the sequences go first";
  };
  const auto send = [&](uint64_t sequence) {
    const LayoutPtr layout =
        Register(Definition("job", {"loss"}));  // The job expires with its rows.
    ASSERT_TRUE(
        Append(layout, {absl::ToUnixNanos(now_)}, {1}, {1}, {"connected", 1, sequence}).ok());
  };
  Claim("silent", "a");
  Claim("sile", "a");
  Claim("connected", "a");
  send(1);
  later(20);
  send(2);
  Claim("sile", "a");
  later(20);
  EXPECT_EQ(Claim("silent", "b"), "b");
  EXPECT_EQ(Claim("sile", "b"), "a") << "claimed 20 days ago";
  EXPECT_EQ(Claim("connected", "b"), "a") << "its stream has been open for 40 days";
  Reopen();
  EXPECT_EQ(Claim("silent", "a"), "b");
  EXPECT_EQ(Claim("connected", "b"), "a");
  later(60);
  EXPECT_EQ(Claim("connected", "b"), "b");
}

}  // namespace
}  // namespace tacho::storage
