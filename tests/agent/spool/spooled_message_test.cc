#include "agent/spool/spooled_message.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"

namespace tacho::agent {
namespace {

using google::protobuf::util::MessageDifferencer;

v1::ClientMessage BatchOf(uint32_t layout, int rows, bool steps) {
  v1::ClientMessage message;
  v1::Batch* const batch = message.mutable_batch();
  batch->set_sequence(1'000'000);
  batch->set_layout(layout);
  for (int row = 0; row < rows; ++row) {
    batch->add_times_unix_ns(1'700'000'000'000'000'000 + row);
    if (steps) batch->add_steps(row);
    batch->add_values(row / 3.0);
    batch->add_values(-row);
  }
  return message;
}

std::string Bytes(const SpooledMessage::Parts& parts) {
  return absl::StrCat(parts.head, parts.tail);
}

// What the collector gets is what it would get from a message that was parsed and written anew.
TEST(SpooledMessageTest, GivesABatchAnotherLayoutAsProtobufWould) {
  for (const bool steps : {false, true}) {
    for (const int rows : {0, 1, 7, 4096}) {
      for (const uint32_t from : {1u, 127u, 128u, 70'000u}) {
        v1::ClientMessage message = BatchOf(from, rows, steps);
        const auto spooled = SpooledMessage::Of(message.SerializeAsString());
        ASSERT_TRUE(spooled.has_value());
        EXPECT_TRUE(spooled->is_batch());
        EXPECT_EQ(spooled->layout(), from);
        EXPECT_EQ(spooled->rows(), static_cast<uint64_t>(rows));
        EXPECT_TRUE(MessageDifferencer::Equals(spooled->Parsed(), message));
        for (const uint32_t to : {1u, 127u, 128u, 16'384u, UINT32_MAX}) {
          message.mutable_batch()->set_layout(to);
          EXPECT_EQ(Bytes(spooled->WithLayout(to)), message.SerializeAsString());
        }
        message.mutable_batch()->set_layout(0);
        v1::ClientMessage zero;
        ASSERT_TRUE(zero.ParseFromString(Bytes(spooled->WithLayout(0))));
        EXPECT_TRUE(MessageDifferencer::Equals(zero, message));
      }
    }
  }
}

TEST(SpooledMessageTest, LeavesWhatIsNoBatchAlone) {
  v1::ClientMessage message;
  message.mutable_event()->set_sequence(3);
  message.mutable_event()->mutable_source()->set_job("j");
  const auto spooled = SpooledMessage::Of(message.SerializeAsString());
  ASSERT_TRUE(spooled.has_value());
  EXPECT_EQ(spooled->kind(), v1::ClientMessage::kEvent);
  EXPECT_EQ(spooled->layout(), 0u);
  EXPECT_EQ(spooled->rows(), 0u);
  EXPECT_EQ(spooled->bytes(), message.SerializeAsString());
}

// A spool may have been written by another version, or by another protobuf.
TEST(SpooledMessageTest, TakesABatchThatProtobufUnderstandsHoweverItIsWritten) {
  v1::ClientMessage message = BatchOf(5, 2, true);
  const std::string fields = message.batch().SerializeAsString();
  const std::string later = "\xfa\x01\x02hi";  // Field 31.
  const auto in_batch = [](const std::string& bytes) {
    return absl::StrCat("\x22", std::string(1, static_cast<char>(bytes.size())), bytes);
  };
  for (const std::string& bytes :
       {in_batch(fields + later), in_batch(later + fields), in_batch(fields) + in_batch("\x10\x05"),
        in_batch("\x10\x09" + fields)}) {
    const auto spooled = SpooledMessage::Of(bytes);
    ASSERT_TRUE(spooled.has_value());
    EXPECT_EQ(spooled->layout(), 5u);
    EXPECT_EQ(spooled->rows(), 2u);
    v1::ClientMessage sent;
    ASSERT_TRUE(sent.ParseFromString(Bytes(spooled->WithLayout(9))));
    EXPECT_EQ(sent.batch().layout(), 9u);
    EXPECT_EQ(sent.batch().values(3), message.batch().values(3));
  }
}

TEST(SpooledMessageTest, RefusesWhatIsNoMessage) {
  const std::string whole = BatchOf(5, 2, true).SerializeAsString();
  for (size_t size = 1; size < whole.size(); ++size) {
    EXPECT_FALSE(SpooledMessage::Of(whole.substr(0, size)).has_value()) << size;
  }
  EXPECT_FALSE(SpooledMessage::Of("damaged").has_value());
}

}  // namespace
}  // namespace tacho::agent
