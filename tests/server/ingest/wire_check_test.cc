#include "server/ingest/wire_check.h"

#include <string>

#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "gtest/gtest.h"
#include "tests/server/ingest/ingest_messages.h"

namespace tacho::server::ingest {
namespace {

bool IsSane(const std::string& bytes, uint64_t max_series = 65'536) {
  google::protobuf::io::ArrayInputStream in(bytes.data(), static_cast<int>(bytes.size()));
  return HasSaneParts(&in, bytes.size(), max_series);
}

// A field of bytes: tag, length, payload.
std::string Field(int number, const std::string& payload) {
  std::string field(1, static_cast<char>((number << 3) | 2));
  size_t size = payload.size();
  for (; size > 127; size >>= 7) field += static_cast<char>((size & 127) | 128);
  return field + static_cast<char>(size) + payload;
}

std::string Repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(WireCheckTest, WhatAnAgentSendsIsSane) {
  EXPECT_TRUE(IsSane(LayoutMessage(20'000).SerializeAsString()));
  EXPECT_TRUE(IsSane(BatchMessage(1, std::vector<double>(100'000), 1000).SerializeAsString()));
  EXPECT_TRUE(IsSane(EventMessage(1).SerializeAsString()));
  EXPECT_TRUE(IsSane(AttributesMessage(1).SerializeAsString()));
  EXPECT_TRUE(IsSane(HelloMessage().SerializeAsString()));
  EXPECT_TRUE(IsSane(""));
}

TEST(WireCheckTest, SeriesAreCountedToTheLimit) {
  const std::string layout = LayoutMessage(100).SerializeAsString();
  EXPECT_TRUE(IsSane(layout, 100));
  EXPECT_FALSE(IsSane(layout, 99));
  EXPECT_FALSE(IsSane(Field(3, Repeated(Field(4, ""), 100)), 99));
}

TEST(WireCheckTest, EmptyLabelsAndEntriesAreTooMany) {
  EXPECT_FALSE(IsSane(Field(3, Field(4, Repeated(Field(2, ""), 10'000)))));
  EXPECT_FALSE(IsSane(Field(1, Repeated(Field(4, ""), 10'000))));
  EXPECT_FALSE(IsSane(Field(2, Repeated(Field(4, ""), 10'000))));
  EXPECT_FALSE(IsSane(Field(5, Repeated(Field(7, ""), 10'000))));
}

TEST(WireCheckTest, SomeUnknownFieldsPassAndManyDoNot) {
  const std::string unknown = "\xf8\x06\x01";
  EXPECT_TRUE(IsSane(Repeated(unknown, 1000)));
  EXPECT_FALSE(IsSane(Repeated(unknown, 10'000)));
  EXPECT_FALSE(IsSane(Field(3, Field(4, Repeated(unknown, 10'000)))));
}

TEST(WireCheckTest, GarbageIsLeftToTheParser) {
  EXPECT_TRUE(IsSane("\xff\xff\xff\xff garbage"));
  EXPECT_TRUE(IsSane(std::string(10'000, '\x0b')));
  EXPECT_TRUE(IsSane(Field(3, "\x22\x7f")));
}

}  // namespace
}  // namespace tacho::server::ingest
