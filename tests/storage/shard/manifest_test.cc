#include "storage/shard/manifest.h"

#include <string>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/shard/bucket_keys.h"

namespace tacho::storage {
namespace {

using testing::HasSubstr;

Block MakeBlock(int64_t day, uint64_t number) {
  return {.file = {.key = BlockKey(3, day, 2, number), .bytes = 1234, .crc32c = 0xfedcba98},
          .first_key = std::string("\0\xff\x01", 3),
          .last_key = std::string("\0\xff\x02", 3)};
}

Manifest Full() {
  Manifest manifest{.shard = 3, .epoch = 9, .owner = "collector-3 \"ü\"", .version = 77};
  manifest.nonce = 0x00ab'cdef'0123'4567;
  manifest.logs = {{.epoch = 4, .first = 12}, {.epoch = 9, .first = 1}};
  manifest.state = {{.file = {.key = StateFileKey(3, 2, "000012"), .bytes = 5, .crc32c = 6},
                     .metadata = std::string("\0meta\x80", 6)}};
  manifest.open_days = {{-1, {MakeBlock(-1, 1)}},
                        {20782, {MakeBlock(20782, 2), MakeBlock(20782, 3)}}};
  manifest.closed_days = {
      {20781, {.key = BlockListKey(3, 20781, 9, 4), .bytes = 99, .crc32c = 0xffffffff}}};
  manifest.positions = std::string("\0\x01", 2);
  manifest.kept_from_day = -5;
  return manifest;
}

std::string Reason(const std::string& text) {
  return std::string(DecodeManifest(text).status().message());
}

// Replaces the one place where `from` is.
std::string With(absl::string_view from, absl::string_view to) {
  const std::string text = EncodeManifest(Full());
  EXPECT_THAT(text, HasSubstr(std::string(from)));
  return absl::StrReplaceAll(text, {{from, to}});
}

TEST(ManifestTest, IsReadAsItWasWritten) {
  const auto decoded = DecodeManifest(EncodeManifest(Full()));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, Full());
  const auto empty = DecodeManifest(EncodeManifest({}));
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ(*empty, Manifest{});
}

TEST(ManifestTest, AnOwnersNameThatIsNoTextCannotMakeItUnreadable) {
  const auto decoded = DecodeManifest(EncodeManifest({.owner = "a\xff"}));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->owner, "a\xEF\xBF\xBD");
}

TEST(ManifestTest, AnotherFormatIsNamedAndNotCalledDamage) {
  const auto decoded = DecodeManifest(R"({"kind":"manifest","format":2,"shards":[]})");
  EXPECT_EQ(decoded.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(decoded.status().message()), HasSubstr("format 2"));
  EXPECT_THAT(std::string(decoded.status().message()), HasSubstr("or a later one"));
}

TEST(ManifestTest, WhatItDoesNotKnowIsRefused) {
  // Who writes it back would drop it.
  EXPECT_THAT(Reason(With("\"epoch\":9,\"owner\"", "\"new\":1,\"epoch\":9,\"owner\"")),
              HasSubstr("a member that this format does not have"));
  EXPECT_THAT(Reason(With("\"version\":77", "\"version\":77,\"version\":77")), HasSubstr("twice"));
  EXPECT_THAT(Reason(With("\"version\":77,", "")),
              HasSubstr("'version' of the manifest is missing"));
}

TEST(ManifestTest, ImpossibleContentIsRefusedWithItsPlace) {
  EXPECT_THAT(Reason(With("\"epoch\":4", "\"epoch\":9")), HasSubstr("do not rise"));
  EXPECT_THAT(Reason(With("\"epoch\":4", "\"epoch\":0")), HasSubstr("do not rise"));
  EXPECT_THAT(Reason(With("\"epoch\":4", "\"epoch\":10")), HasSubstr("'epoch' of a log"));
  EXPECT_THAT(Reason(With("\"first\":12", "\"first\":0")), HasSubstr("count from 1"));
  EXPECT_THAT(Reason(With("\"first\":12", "\"first\":-1")), HasSubstr("'first' of a log"));
  EXPECT_THAT(Reason(With("\"shard\":3", "\"shard\":10000")), HasSubstr("'shard' of the manifest"));
  EXPECT_THAT(Reason(With("\"20781\":", "\"20782\":")), HasSubstr("day 20782 is there twice"));
  EXPECT_THAT(Reason(With("\"20781\":", "\"020781\":")), HasSubstr("020781"));
  EXPECT_THAT(Reason(With("state/", "log/")), HasSubstr("'key' of a state file"));
  EXPECT_THAT(Reason(With("\"nonce\":\"00", "\"nonce\":\"")), HasSubstr("sixteen"));
  EXPECT_THAT(Reason(With("\"AP8C\"", "\"AP8A\"")), HasSubstr("ends before it begins"));
  EXPECT_THAT(Reason(With("\"AP8C\"", "\"AP8C=\"")), HasSubstr("base64"));
}

TEST(ManifestTest, ForeignBytesAreRefused) {
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[1]"), std::string("null"),
        std::string("{\"kind\":\"block list\",\"format\":1,\"blocks\":[]}"),
        EncodeManifest(Full()).substr(0, 100), std::string(100'000, '['), std::string(8, '\0')}) {
    EXPECT_EQ(DecodeManifest(text).status().code(), absl::StatusCode::kDataLoss)
        << text.substr(0, 60);
  }
  const std::string huge(kMaxManifestBytes + 1, ' ');
  EXPECT_THAT(Reason(huge), HasSubstr("at most"));
}

TEST(ManifestTest, AListOfBlocksIsReadAsItWasWritten) {
  const std::vector<Block> blocks = {MakeBlock(5, 1), MakeBlock(5, 2)};
  const auto decoded = DecodeBlockList(EncodeBlockList(blocks));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, blocks);
  EXPECT_FALSE(DecodeBlockList(EncodeManifest(Full())).ok());
}

}  // namespace
}  // namespace tacho::storage
