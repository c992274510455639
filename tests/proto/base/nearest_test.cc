#include "proto/base/nearest.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tacho {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(HalfEditsTest, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(HalfEdits("", ""), 0u);
  EXPECT_EQ(HalfEdits("", "abc"), 6u);
  EXPECT_EQ(HalfEdits("kitten", "sitting"), 6u);
  EXPECT_EQ(HalfEdits("sitting", "kitten"), 6u);
  EXPECT_EQ(HalfEdits("ab", "ba"), 2u);
  EXPECT_EQ(HalfEdits("a", "A"), 1u);
}

TEST(NearestTest, FindsTypingMistakes) {
  const std::vector<std::string> jobs = {"bert-base", "bert-large", "resnet50", "gpt"};
  EXPECT_THAT(NearestNames("bert-bsae", jobs), ElementsAre("bert-base"));
  EXPECT_THAT(NearestNames("resnet", jobs), ElementsAre("resnet50"));
  EXPECT_THAT(NearestNames("GPT", jobs), ElementsAre("gpt"));
  EXPECT_THAT(NearestNames("llama", jobs), IsEmpty());
  EXPECT_EQ(DidYouMean("llama", jobs), "");
  EXPECT_EQ(DidYouMean("gtp", jobs), "; did you mean 'gpt'?");
}

TEST(NearestTest, PutsTheClosestFirstAndLeavesOutTheRest) {
  const std::vector<std::string> names = {"bert", "resnet", "resnet-50-a", "resnet-51-a", "llama"};
  EXPECT_THAT(NearestNames("resnet-50", names, 3),
              ElementsAre("resnet-50-a", "resnet", "resnet-51-a"));
  EXPECT_THAT(NearestNames("LLAMA", names, 3), ElementsAre("llama"));
  EXPECT_THAT(NearestNames("entirely-different", names, 3), IsEmpty());
  EXPECT_THAT(NearestNames("x", {}, 3), IsEmpty());
  EXPECT_THAT(NearestNames("resnet", names, 1), ElementsAre("resnet"));
}

}  // namespace
}  // namespace tacho
