#include "proto/base/line.h"

#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"

namespace tacho::log {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

const absl::Time kTime = absl::FromUnixMillis(1'763'740'022'123);

std::string Line(Format format, absl::string_view message, std::vector<Field> fields) {
  return FormatLine(format, kTime, Level::kInfo, message, fields);
}
// The value as it stands in the line.
std::string Logfmt(absl::string_view value) {
  const std::string line = Line(Format::kLogfmt, "m", {{"key", value}});
  const std::string before = "msg=\"m\" key=";
  const size_t at = line.find(before);
  EXPECT_NE(at, std::string::npos) << line;
  return line.substr(at + before.size(), line.size() - at - before.size() - 1);
}
// The value as a JSON reader sees it.
google::protobuf::Value Json(const Field& field) {
  google::protobuf::Struct read;
  const std::string line = Line(Format::kJson, "m", {field});
  const auto status = google::protobuf::util::JsonStringToMessage(line, &read);
  EXPECT_TRUE(status.ok()) << status.ToString() << "\n" << line;
  return read.fields().at("key");
}

TEST(LineTest, HasTimeLevelMessageAndFieldsInTheirOrder) {
  EXPECT_EQ(Line(Format::kLogfmt, "stream refused",
                 {{"agent", "a-1"}, {"streams", 7u}, {"offset", -2}, {"late", true}, {"s", 0.5}}),
            "time=2025-11-21T15:47:02.123Z level=info msg=\"stream refused\" agent=a-1 streams=7 "
            "offset=-2 late=true s=0.5\n");
  EXPECT_EQ(Line(Format::kJson, "stream refused",
                 {{"agent", "a-1"}, {"streams", 7u}, {"offset", -2}, {"late", true}, {"s", 0.5}}),
            "{\"time\":\"2025-11-21T15:47:02.123Z\",\"level\":\"info\",\"msg\":\"stream refused\","
            "\"agent\":\"a-1\",\"streams\":7,\"offset\":-2,\"late\":true,\"s\":0.5}\n");
}

TEST(LineTest, WholeRangeOfIntegers) {
  const std::string line = Line(
      Format::kLogfmt, "m",
      {{"a", std::numeric_limits<uint64_t>::max()}, {"b", std::numeric_limits<int64_t>::min()}});
  EXPECT_THAT(line, EndsWith(" a=18446744073709551615 b=-9223372036854775808\n"));
}

TEST(LineTest, ValueThatCouldBeMistakenIsQuoted) {
  EXPECT_EQ(Logfmt("/var/lib/tacho"), "/var/lib/tacho");
  EXPECT_EQ(Logfmt(""), "\"\"");
  EXPECT_EQ(Logfmt("two words"), "\"two words\"");
  EXPECT_EQ(Logfmt("a=b"), "\"a=b\"");
  EXPECT_EQ(Logfmt("say \"hi\" \\"), "\"say \\\"hi\\\" \\\\\"");
  EXPECT_EQ(Logfmt("größe 大"), "\"größe 大\"") << "text stays text";
}

// Bytes with which somebody would forge a line, or play with the terminal that shows it.
const std::vector<std::string> kHostile = {
    "x\ntime=2026-01-01T00:00:00Z level=error msg=\"forged\"",
    "x\r\nforged",
    std::string("nul\0nul", 7),
    "\x1b[2J\x1b]0;title\a",
    "\xc2\x9b"
    "31m",  // CSI as one C1 character.
    "\xe2\x80\xae"
    "gpj.exe",  // Right-to-left override.
    "\xe2\x80\xa8line separator",
    "\xef\xbb\xbf",      // Byte order mark.
    "\xf3\xa0\x81\x81",  // A tag.
    "\xff\xfe",
    "\xc0\xaf",
    "\xed\xa0\x80",
    "\xf4\x90\x80\x80",
    "\xe2\x82",
    "\x80",
    "\x7f",
    "\" level=error msg=\"forged",
};

TEST(LineTest, WhateverTheBytesThereIsOneLineOfShownCharacters) {
  for (const std::string& value : kHostile) {
    for (const Format format : {Format::kLogfmt, Format::kJson}) {
      const std::string line = Line(format, value, {{"key", value}});
      EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
      for (const char c : line.substr(0, line.size() - 1)) {
        EXPECT_TRUE(static_cast<uint8_t>(c) >= 0x20 && c != 0x7f) << line;
      }
      for (const char* hidden : {"\xc2\x9b", "\xe2\x80\xae", "\xe2\x80\xa8", "\xef\xbb\xbf", "\xff",
                                 "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90", "\xf3\xa0"}) {
        EXPECT_FALSE(absl::StrContains(line, hidden)) << line;
      }
    }
  }
}

TEST(LineTest, NoValueLooksLikeAnotherField) {
  // Without its quoted parts, a line in logfmt has only our own fields.
  for (const std::string& value : kHostile) {
    const std::string line = Line(Format::kLogfmt, value, {{"key", value}});
    std::string outside;
    bool quoted = false;
    for (size_t i = 0; i < line.size(); ++i) {
      if (quoted && line[i] == '\\') {
        ++i;
      } else if (line[i] == '"') {
        quoted = !quoted;
      } else if (!quoted) {
        outside.push_back(line[i]);
      }
    }
    EXPECT_EQ(outside, "time=2025-11-21T15:47:02.123Z level=info msg= key=\n") << line;
  }
}

TEST(LineTest, JsonGivesTextBackThatIsText) {
  for (const std::string value :
       {"a\nb\t\"c\" \\ größe", "\x1b[0m", "\xe2\x80\xae", "\xf3\xa0\x81\x81"}) {
    EXPECT_EQ(Json({"key", value}).string_value(), value);
  }
  EXPECT_EQ(Json({"key", "a\xff"}).string_value(), "a\xef\xbf\xbd");
  EXPECT_EQ(Json({"key", 2.5}).number_value(), 2.5);
  EXPECT_EQ(Json({"key", std::nan("")}).string_value(), "nan");
}

TEST(LineTest, LongTextIsCutBetweenCharactersAndSaysSo) {
  EXPECT_EQ(Logfmt(std::string(kMaxValueBytes, 'a')).size(), kMaxValueBytes);
  EXPECT_THAT(Logfmt(std::string(kMaxValueBytes + 9, 'a')), EndsWith("aa… (+9 bytes)\""));
  std::string umlauts;
  for (size_t i = 0; i < kMaxValueBytes; ++i) umlauts += "ä";
  for (const char* shift : {"", "x"}) {
    const std::string value = Logfmt(absl::StrCat(shift, umlauts));
    EXPECT_THAT(value, Not(HasSubstr("\\x"))) << "a torn character";
    EXPECT_THAT(value, HasSubstr("ä… (+"));
  }
  // Continuation bytes alone are no character to keep whole.
  EXPECT_LT(Logfmt(std::string(1 << 20, '\x80')).size(), 5 * kMaxValueBytes);
  EXPECT_LT(Line(Format::kLogfmt, std::string(1 << 20, 'a'), {}).size(), 2 * kMaxMessageBytes);
}

TEST(LineTest, LevelsHaveTheirNames) {
  for (const Level level : {Level::kDebug, Level::kInfo, Level::kWarn, Level::kError}) {
    EXPECT_EQ(LevelNamed(NameOf(level)), level);
  }
  EXPECT_EQ(LevelNamed("loud"), std::nullopt);
}

}  // namespace
}  // namespace tacho::log
