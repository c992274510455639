#include "proto/base/flags.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tacho {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<FlagSpec>& TestFlags() {
  static const auto* const flags = new std::vector<FlagSpec>{
      {.name = "output", .letter = 'o', .placeholder = "FORMAT", .choices = {"table", "json"}},
      {.name = "match", .letter = 'm', .placeholder = "L=V", .repeated = true},
      {.name = "steps", .placeholder = "A:B"},
      {.name = "utc"}};
  return *flags;
}

TEST(FlagsTest, ReadsEveryForm) {
  const auto args = ParseArgs(
      {"a", "-ojson", "--match=x=1", "-m", "y=2", "--steps", "-5:7", "--utc", "--", "--b"},
      TestFlags());
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_EQ(args->Get("output"), "json");
  EXPECT_THAT(args->GetAll("match"), ElementsAre("x=1", "y=2"));
  EXPECT_EQ(args->Get("steps"), "-5:7");
  EXPECT_TRUE(args->Has("utc"));
  EXPECT_THAT(args->positionals(), ElementsAre("a", "--b"));
}

TEST(FlagsTest, SaysWhatIsWrong) {
  const auto error = [](const std::vector<std::string>& args) {
    return std::string(ParseArgs(args, TestFlags()).status().message());
  };
  EXPECT_THAT(error({"--ouput", "json"}), HasSubstr("did you mean '--output'"));
  EXPECT_THAT(error({"-x"}), HasSubstr("unknown flag '-x'"));
  EXPECT_THAT(error({"--steps"}), HasSubstr("--steps A:B"));
  EXPECT_THAT(error({"--utc=1"}), HasSubstr("takes no value"));
  EXPECT_THAT(error({"-o", "jsom"}), HasSubstr("did you mean 'json'"));
  EXPECT_THAT(error({"--steps", "1", "--steps", "2"}), HasSubstr("given twice"));
}

}  // namespace
}  // namespace tacho
