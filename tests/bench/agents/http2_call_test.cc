#include "tests/bench/agents/http2_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tacho::bench {
namespace {

using ::testing::ElementsAre;

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  std::string frame;
  for (int shift : {16, 8, 0}) frame += static_cast<char>(payload.size() >> shift);
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  for (int shift : {24, 16, 8, 0}) frame += static_cast<char>(stream >> shift);
  return frame + payload;
}

std::string Number(uint32_t number) {
  std::string bytes;
  for (int shift : {24, 16, 8, 0}) bytes += static_cast<char>(number >> shift);
  return bytes;
}

std::string Message(const std::string& body) {
  return std::string(1, '\0') + Number(static_cast<uint32_t>(body.size())) + body;
}

std::string Settings(uint16_t id, uint32_t value) {
  return std::string(1, '\0') + static_cast<char>(id) + Number(value);
}

// A header that enters no table (RFC 7541, 6.2.2).
std::string Header(const std::string& name, const std::string& value) {
  return std::string(1, '\0') + static_cast<char>(name.size()) + name +
         static_cast<char>(value.size()) + value;
}

class Http2CallTest : public testing::Test {
 protected:
  Http2CallTest() {
    handler_.on_message = [this](absl::string_view message) { messages_.emplace_back(message); };
    handler_.on_end = [this](const CallEnd& end) { ends_.push_back(end); };
  }

  absl::Status Receive(const std::string& bytes) { return call_.Receive(bytes, handler_, &out_); }

  Http2Call call_;
  Http2Call::Handler handler_;
  std::string out_;
  std::vector<std::string> messages_;
  std::vector<CallEnd> ends_;
};

TEST_F(Http2CallTest, MessagesComeWholeHoweverTheirBytesAreCut) {
  const std::string body = Message("first") + Message("") + Message("third");
  const std::string bytes = Frame(4, 0, 0, "") + Frame(0, 0, 1, body.substr(0, 7)) +
                            Frame(6, 0, 0, "12345678") + Frame(0, 0, 1, body.substr(7));
  for (size_t size = 1; size <= bytes.size(); ++size) {
    call_ = Http2Call();
    messages_.clear();
    for (size_t at = 0; at < bytes.size(); at += size) {
      ASSERT_TRUE(Receive(bytes.substr(at, size)).ok());
    }
    EXPECT_THAT(messages_, ElementsAre("first", "", "third")) << "in pieces of " << size;
  }
}

TEST_F(Http2CallTest, AnswersSettingsAndPings) {
  ASSERT_TRUE(Receive(Frame(4, 0, 0, Settings(3, 100)) + Frame(6, 0, 0, "12345678")).ok());
  EXPECT_EQ(out_, Frame(4, 1, 0, "") + Frame(6, 1, 0, "12345678"));
}

TEST_F(Http2CallTest, SendsNoMoreThanBothWindowsAllow) {
  ASSERT_TRUE(Receive(Frame(4, 0, 0, Settings(4, 20))).ok());
  out_.clear();
  const std::string message = Message(std::string(95, 'x'));
  call_.Send(std::string(95, 'x'), &out_);
  EXPECT_EQ(out_, Frame(0, 0, 1, message.substr(0, 20)));
  EXPECT_EQ(call_.unsent(), 80u);

  out_.clear();
  ASSERT_TRUE(Receive(Frame(8, 0, 1, Number(50))).ok());
  EXPECT_EQ(out_, Frame(0, 0, 1, message.substr(20, 50)));
  out_.clear();
  ASSERT_TRUE(Receive(Frame(4, 0, 0, Settings(4, 60))).ok());  // 40 more than before.
  EXPECT_EQ(out_, Frame(4, 1, 0, "") + Frame(0, 0, 1, message.substr(70)));
  EXPECT_EQ(call_.unsent(), 0u);
}

TEST_F(Http2CallTest, TheConnectionsWindowHoldsBackWhatTheStreamsAllows) {
  ASSERT_TRUE(Receive(Frame(8, 0, 1, Number(1 << 20))).ok());
  call_.Send(std::string(100'000, 'x'), &out_);
  EXPECT_EQ(call_.unsent(), 100'005u - 65'535u);
}

TEST_F(Http2CallTest, GivesTheWindowBackThatWasUsed) {
  const std::string body = Message(std::string(16'000, 'x'));
  ASSERT_TRUE(Receive(Frame(0, 0, 1, body)).ok());
  EXPECT_EQ(out_, "");
  ASSERT_TRUE(Receive(Frame(0, 0, 1, body)).ok());
  EXPECT_EQ(out_, Frame(8, 0, 0, Number(32'010)) + Frame(8, 0, 1, Number(32'010)));
}

TEST_F(Http2CallTest, TrailersTellHowTheCallEnded) {
  // google.rpc.Status{details: RetryInfo{retry_delay: 3 s}}
  const std::string details = "GjAKKHR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5SZXRyeUluZm8SBAoCCAM";
  const std::string block = Header("grpc-status", "14") + Header("grpc-message", "busy") +
                            Header("grpc-status-details-bin", details);
  ASSERT_TRUE(Receive(Frame(1, 4, 1, Header(":status", "200"))).ok());
  EXPECT_TRUE(ends_.empty());
  ASSERT_TRUE(Receive(Frame(1, 1, 1, block.substr(0, 9)) + Frame(9, 4, 1, block.substr(9))).ok());
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_EQ(ends_[0].code, 14);
  EXPECT_EQ(ends_[0].message, "busy");
  EXPECT_EQ(ends_[0].retry_after, absl::Seconds(3));
}

TEST_F(Http2CallTest, AGoAwayWithAnErrorAndAResetEndTheConnection) {
  EXPECT_TRUE(Receive(Frame(7, 0, 0, Number(1) + Number(0))).ok());
  EXPECT_FALSE(Receive(Frame(7, 0, 0, Number(1) + Number(11) + "too_many_pings")).ok());
  EXPECT_FALSE(Receive(Frame(3, 0, 1, Number(8))).ok());
}

TEST_F(Http2CallTest, RefusesWhatBreaksTheProtocol) {
  EXPECT_FALSE(Receive(std::string("\x01\x00\x00\x00\x00\x00\x00\x00\x00", 9)).ok()) << "64 KiB";
  call_ = Http2Call();
  EXPECT_FALSE(Receive(Frame(0, 8, 1, "\xff")).ok()) << "padding";
  call_ = Http2Call();
  EXPECT_FALSE(Receive(Frame(1, 4, 1, "\xff\xff\xff\xff\xff\xff")).ok()) << "header block";
}

}  // namespace
}  // namespace tacho::bench
