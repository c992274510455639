#include "server/promread/entry_list.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tacho::server::promread {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(EntryListTest, TheFirstInTheirOrderStayWhateverComesWhen) {
  EntryList list(2);
  for (const char* key : {"c", "d", "a", "", "c", "b", "a"}) list.Add(key);
  EXPECT_THAT(list.entries(), ElementsAre(Pair("a", ""), Pair("b", "")));
  EXPECT_TRUE(list.more());
}

TEST(EntryListTest, AsManyAsThereMayBeLeaveNothingOut) {
  EntryList list(2);
  for (const char* key : {"a", "b", "a", "b"}) list.Add(key);
  EXPECT_EQ(list.entries().size(), 2u);
  EXPECT_FALSE(list.more());
  list.AddMore();
  EXPECT_TRUE(list.more());
}

TEST(EntryListTest, AKeyMayHaveSeveralTexts) {
  EntryList list;
  list.Add("loss", "2");
  list.Add("loss", "1");
  list.Add("loss", "2");
  EXPECT_THAT(list.entries(), ElementsAre(Pair("loss", "1"), Pair("loss", "2")));
  EXPECT_FALSE(list.more());
}

TEST(EntryListTest, NothingComesAfterTheBytesThatItMayHave) {
  EntryList list(SIZE_MAX, 4);
  list.Add("aa", "1");
  list.Add("bb", "1");
  EXPECT_FALSE(list.more());
  list.Add("cc", "1");
  list.Add("aa", "1");  // It is there.
  EXPECT_EQ(list.entries().size(), 2u);
  EXPECT_TRUE(list.more());
}

TEST(EntryListTest, NoneMayBeAskedFor) {
  EntryList list(0);
  list.Add("a");
  EXPECT_TRUE(list.entries().empty());
  EXPECT_TRUE(list.more());
}

}  // namespace
}  // namespace tacho::server::promread
