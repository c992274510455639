#include "server/edge/refusal_answers.h"

#include "gmock/gmock.h"
#include "tests/server/edge/connection_fixture.h"

namespace tacho::server::edge {
namespace {

class RefusedConnectionTest : public ConnectionTableTest {
 protected:
  RefusedConnectionTest() {
    table_.SetLimits({.max_connections = 9, .max_per_address = 1});
    EXPECT_TRUE(Admit(first_));
  }
  // As gRPC's clients begin: preface, SETTINGS, and a request on stream 1 (its headers do not
  // matter here).
  static std::string Request() {
    using std::string_literals::operator""s;
    return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0\0\0\1\1\5\0\0\0\1\x83"s;
  }

  Pair first_;
};

TEST_F(RefusedConnectionTest, ClientIsToldTheReasonInWords) {
  Pair refused;
  ASSERT_FALSE(Admit(refused));
  refused.CloseServer();  // As the listener does.
  EXPECT_THAT(refused.Received(), testing::SizeIs(9)) << "SETTINGS";
  const std::string request = Request();
  refused.SendBytes(request.substr(0, 30));
  Pass(absl::Milliseconds(5));
  refused.SendBytes(request.substr(30));
  Pass(absl::Milliseconds(5));
  const std::string answer = refused.Received();
  EXPECT_THAT(answer, testing::HasSubstr("grpc-status"));
  EXPECT_THAT(answer, testing::HasSubstr("quotas.max_connections_per_address"));
  EXPECT_FALSE(refused.IsShutDown());
  Pass(absl::Seconds(2));
  EXPECT_TRUE(refused.IsShutDown()) << "the end comes in order";
}

TEST_F(RefusedConnectionTest, PenaltySaysWhatBroughtItAndHowLongItLasts) {
  table_.SetLimits({.max_connections = 99, .max_per_address = 99, .starts_per_second = 10});
  for (int i = 0; i < 11; ++i) table_.CountStart(first_.grpc_name(), kWriter, now_);
  ASSERT_TRUE(first_.IsShutDown());
  now_ += absl::Seconds(3);
  std::vector<Pair> more(10);
  std::string told;
  for (Pair& pair : more) {
    if (Admit(pair)) continue;
    pair.SendBytes(Request());
    Pass(absl::Milliseconds(5));
    told = pair.Received();
  }
  EXPECT_THAT(told, testing::HasSubstr("for another 7s"));
  EXPECT_THAT(told, testing::HasSubstr("quotas.stream_starts_per_second"));
}

TEST_F(RefusedConnectionTest, FewAreToldAndNoneKeepsItsPlace) {
  std::vector<Pair> many(RefusalAnswers::kMost + 1);
  for (Pair& pair : many) {
    ASSERT_FALSE(Admit(pair));
    pair.CloseServer();
  }
  EXPECT_TRUE(many.back().IsShutDown()) << "closed without a word";
  EXPECT_FALSE(many.front().IsShutDown());
  many[1].SendBytes(std::string(RefusalAnswers::kMaxBytes + 1, 'x'));
  for (int i = 0; i < 10; ++i) Pass(absl::Milliseconds(5));
  Pair next;
  EXPECT_FALSE(Admit(next));
  next.CloseServer();
  EXPECT_THAT(next.Received(), testing::SizeIs(9)) << "in the place of the one that sent too much";
}

}  // namespace
}  // namespace tacho::server::edge
