// The contract of bucket.h, at each service.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "storage/bucket/bucket.h"
#include "tests/storage/bucket/bucket_under_test.h"

namespace tacho::storage {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kWriters = 8;

std::string Letters(size_t bytes, unsigned seed) {
  std::string text(bytes, '\0');
  for (char& c : text) {
    seed = seed * 1'664'525 + 1'013'904'223;
    c = static_cast<char>(seed >> 24);
  }
  return text;
}

class BucketConformance : public ::testing::TestWithParam<ServiceKind> {
 protected:
  void SetUp() override {
    service_ = GetParam().make();
    static std::atomic<int> number = 0;
    prefix_ = absl::StrCat("t", absl::ToUnixMicros(absl::Now()), ".", ++number);
    bucket_ = service_->Open(prefix_);
  }

  std::string Read(absl::string_view key) {
    const auto object = bucket_->Get(key);
    return object.ok() ? object->body : object.status().ToString();
  }
  std::vector<std::string> Keys(absl::string_view prefix) {
    std::vector<std::string> keys;
    std::string from;
    for (;;) {
      const auto page = bucket_->List(prefix, from);
      if (!page.ok()) return {page.status().ToString()};
      for (const ListedObject& object : page->objects) keys.push_back(object.key);
      if (!page->next) return keys;
      from = *page->next;
    }
  }
  // What `write` returns in each of kWriters threads that begin together.
  std::vector<absl::StatusOr<std::string>> Race(
      const std::function<absl::StatusOr<std::string>(int writer)>& write) {
    std::vector<absl::StatusOr<std::string>> results(kWriters);
    std::vector<std::thread> threads;
    std::atomic<int> ready = 0;
    for (int i = 0; i < kWriters; ++i) {
      threads.emplace_back([&, i] {
        ++ready;
        while (ready < kWriters) std::this_thread::yield();
        results[i] = write(i);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return results;
  }
  // The one that succeeded, -1 if not exactly one did. The others must have a code of `losers`, or
  // not know.
  int OnlyWinner(const std::vector<absl::StatusOr<std::string>>& results, absl::StatusCode losers) {
    int winner = -1;
    for (int i = 0; i < kWriters; ++i) {
      if (results[i].ok()) {
        if (winner >= 0) return -1;
        winner = i;
      } else {
        EXPECT_THAT(results[i].status().code(), AnyOf(losers, absl::StatusCode::kUnavailable))
            << results[i].status();
      }
    }
    return winner;
  }
  void RaceCreations(int rounds, size_t bytes) {
    for (int round = 0; round < rounds; ++round) {
      const std::string key = absl::StrCat("race/", round);
      const auto results =
          Race([&](int i) { return bucket_->PutNew(key, Letters(bytes, 100 * round + i)); });
      const int winner = OnlyWinner(results, absl::StatusCode::kAlreadyExists);
      ASSERT_GE(winner, 0) << "round " << round;
      EXPECT_EQ(Read(key), Letters(bytes, 100 * round + winner));
      EXPECT_EQ(bucket_->Get(key)->tag, *results[winner]);
    }
  }
  void RaceReplacements(int rounds, size_t bytes) {
    auto tag = bucket_->PutNew("race", "begin");
    ASSERT_TRUE(tag.ok()) << tag.status();
    for (int round = 0; round < rounds; ++round) {
      const auto results = Race(
          [&](int i) { return bucket_->PutIf("race", *tag, Letters(bytes, 100 * round + i)); });
      const int winner = OnlyWinner(results, absl::StatusCode::kFailedPrecondition);
      ASSERT_GE(winner, 0) << "round " << round;
      EXPECT_EQ(Read("race"), Letters(bytes, 100 * round + winner));
      tag = results[winner];
    }
  }

  std::unique_ptr<BucketService> service_;
  std::string prefix_;
  std::unique_ptr<Bucket> bucket_;
};

// What needs no condition holds at every service.
class BucketBasics : public BucketConformance {};
class BucketPromises : public BucketConformance {};
class BucketWithoutPromises : public BucketConformance {};

// --- Reading and writing ------------------------------------------------------------------------

TEST_P(BucketBasics, ReadsWhatWasPut) {
  const auto tag = bucket_->Put("a", "hello");
  ASSERT_TRUE(tag.ok()) << tag.status();
  const auto object = bucket_->Get("a");
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ(object->body, "hello");
  EXPECT_EQ(object->tag, *tag);
  EXPECT_FALSE(object->tag.empty());
}

TEST_P(BucketBasics, PutReplaces) {
  const auto first = bucket_->Put("a", "one");
  const auto second = bucket_->Put("a", "two");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(*first, *second);
  EXPECT_EQ(Read("a"), "two");
}

TEST_P(BucketBasics, MissingObjectIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(bucket_->Get("nothing").status()));
  EXPECT_TRUE(absl::IsNotFound(bucket_->GetRange("nothing", 0, 10).status()));
  EXPECT_TRUE(absl::IsNotFound(bucket_->GetRange("nothing", 0, 0).status()));
  EXPECT_TRUE(absl::IsNotFound(bucket_->GetIfChanged("nothing", "abc").status()));
}

TEST_P(BucketBasics, ErrorNamesTheObject) {
  EXPECT_THAT(std::string(bucket_->Get("some/key").status().message()), HasSubstr("some/key"));
}

TEST_P(BucketBasics, KeepsAnEmptyObject) {
  ASSERT_TRUE(bucket_->PutNew("empty", "").ok());
  EXPECT_EQ(Read("empty"), "");
  const auto range = bucket_->GetRange("empty", 0, 10);
  ASSERT_TRUE(range.ok()) << range.status();
  EXPECT_EQ(*range, "");
}

TEST_P(BucketBasics, KeepsEveryByte) {
  std::string all;
  for (int i = 0; i < 1024; ++i) all += static_cast<char>(i);
  ASSERT_TRUE(bucket_->Put("bytes", all).ok());
  EXPECT_EQ(Read("bytes"), all);
}

TEST_P(BucketBasics, KeepsALargeObject) {
  const std::string body = Letters(9 << 20, 7);
  ASSERT_TRUE(bucket_->PutNew("large", body).ok());
  EXPECT_TRUE(Read("large") == body);
  EXPECT_TRUE(*bucket_->GetRange("large", 5'000'000, 100'000) == body.substr(5'000'000, 100'000));
}

TEST_P(BucketBasics, TakesEveryCharacterOfKeys) {
  for (const char* key :
       {"a-b", "a.b", "a_b", "a/b", "A/Z", "0/9", "deep/er/and/deeper/00000000.sst"}) {
    ASSERT_TRUE(bucket_->PutNew(key, key).ok()) << key;
    EXPECT_EQ(Read(key), key);
  }
}

TEST_P(BucketBasics, TakesALongKey) {
  const std::string key = absl::StrCat(std::string(400, 'k'), "/", std::string(400, 'l'));
  const auto tag = bucket_->PutNew(key, "x");
  ASSERT_TRUE(tag.ok()) << tag.status();
  EXPECT_THAT(Keys("kkk"), ElementsAre(key));
}

TEST_P(BucketBasics, KeysAreApartThatOneBeginsWithAnother) {
  ASSERT_TRUE(bucket_->PutNew("a", "1").ok());
  ASSERT_TRUE(bucket_->PutNew("a/b", "2").ok());
  ASSERT_TRUE(bucket_->PutNew("ab", "3").ok());
  EXPECT_EQ(Read("a"), "1");
  EXPECT_EQ(Read("a/b"), "2");
  EXPECT_EQ(Read("ab"), "3");
}

TEST_P(BucketBasics, OneBucketsPrefixHidesAnothers) {
  const auto other = service_->Open(prefix_ + "x");
  ASSERT_TRUE(other->Put("a", "theirs").ok());
  EXPECT_TRUE(absl::IsNotFound(bucket_->Get("a").status()));
  EXPECT_THAT(Keys(""), ElementsAre());
}

TEST_P(BucketBasics, AnotherClientSeesItAtOnce) {
  const auto other = service_->Open(prefix_);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(bucket_->Put("a", absl::StrCat(i)).ok());
    EXPECT_EQ(other->Get("a")->body, absl::StrCat(i));
  }
}

// --- Ranges --------------------------------------------------------------------------------------

TEST_P(BucketBasics, ReadsARangeInTheMiddle) {
  ASSERT_TRUE(bucket_->Put("r", "0123456789").ok());
  EXPECT_EQ(*bucket_->GetRange("r", 3, 4), "3456");
}

TEST_P(BucketBasics, ReadsFirstAndLastByte) {
  ASSERT_TRUE(bucket_->Put("r", "0123456789").ok());
  EXPECT_EQ(*bucket_->GetRange("r", 0, 1), "0");
  EXPECT_EQ(*bucket_->GetRange("r", 9, 1), "9");
  EXPECT_EQ(*bucket_->GetRange("r", 0, 10), "0123456789");
}

TEST_P(BucketBasics, RangeEndsWhereTheObjectDoes) {
  ASSERT_TRUE(bucket_->Put("r", "0123456789").ok());
  EXPECT_EQ(*bucket_->GetRange("r", 8, 100), "89");
  EXPECT_EQ(*bucket_->GetRange("r", 0, uint64_t{1} << 60), "0123456789");
}

TEST_P(BucketBasics, RangeBehindTheEndIsEmpty) {
  ASSERT_TRUE(bucket_->Put("r", "0123456789").ok());
  EXPECT_EQ(*bucket_->GetRange("r", 10, 5), "");
  EXPECT_EQ(*bucket_->GetRange("r", 1'000'000'000, 5), "");
}

TEST_P(BucketBasics, RangeOfNoByteIsEmpty) {
  ASSERT_TRUE(bucket_->Put("r", "0123456789").ok());
  EXPECT_EQ(*bucket_->GetRange("r", 3, 0), "");
}

// --- Create only ---------------------------------------------------------------------------------

TEST_P(BucketPromises, CreatesOnce) {
  ASSERT_TRUE(bucket_->PutNew("new", "first").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(bucket_->PutNew("new", "second").status()));
  EXPECT_TRUE(absl::IsAlreadyExists(bucket_->PutNew("new", "first").status())) << "the same bytes";
  EXPECT_EQ(Read("new"), "first");
}

TEST_P(BucketPromises, CreatesNothingOverWhatWasPut) {
  ASSERT_TRUE(bucket_->Put("new", "put").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(bucket_->PutNew("new", "created").status()));
  EXPECT_EQ(Read("new"), "put");
}

TEST_P(BucketPromises, EmptyObjectIsOneToo) {
  ASSERT_TRUE(bucket_->PutNew("new", "").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(bucket_->PutNew("new", "second").status()));
}

TEST_P(BucketBasics, CreatesAgainAfterDeletion) {
  ASSERT_TRUE(bucket_->PutNew("new", "first").ok());
  ASSERT_TRUE(bucket_->Delete("new").ok());
  ASSERT_TRUE(bucket_->PutNew("new", "second").ok());
  EXPECT_EQ(Read("new"), "second");
}

TEST_P(BucketPromises, CreatesALargeObjectOnce) {
  ASSERT_TRUE(bucket_->PutNew("new", Letters(3 << 20, 1)).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(bucket_->PutNew("new", Letters(3 << 20, 2)).status()));
  EXPECT_TRUE(Read("new") == Letters(3 << 20, 1));
}

TEST_P(BucketPromises, CreatedObjectsTagReplacesIt) {
  const auto tag = bucket_->PutNew("new", "first");
  ASSERT_TRUE(tag.ok());
  const auto replaced = bucket_->PutIf("new", *tag, "second");
  EXPECT_TRUE(replaced.ok()) << replaced.status();
  EXPECT_EQ(Read("new"), "second");
}

// --- Replace only if unchanged -------------------------------------------------------------------

TEST_P(BucketPromises, ReplacesTheVersionThatWasRead) {
  ASSERT_TRUE(bucket_->Put("cas", "1").ok());
  const auto read = bucket_->Get("cas");
  const auto tag = bucket_->PutIf("cas", read->tag, "2");
  ASSERT_TRUE(tag.ok()) << tag.status();
  EXPECT_EQ(Read("cas"), "2");
  EXPECT_EQ(bucket_->Get("cas")->tag, *tag);
}

TEST_P(BucketPromises, ReplacesAgainAndAgain) {
  auto tag = bucket_->PutNew("cas", "begin");
  for (int i = 0; i < 10; ++i) {
    tag = bucket_->PutIf("cas", *tag, absl::StrCat("version ", i));
    ASSERT_TRUE(tag.ok()) << tag.status();
  }
  EXPECT_EQ(Read("cas"), "version 9");
}

TEST_P(BucketPromises, StaleTagIsRefused) {
  const auto first = bucket_->Put("cas", "1");
  ASSERT_TRUE(bucket_->PutIf("cas", *first, "2").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(bucket_->PutIf("cas", *first, "3").status()));
  EXPECT_EQ(Read("cas"), "2");
}

TEST_P(BucketPromises, TagOfAnotherObjectIsRefused) {
  ASSERT_TRUE(bucket_->Put("cas", "1").ok());
  const auto other = bucket_->Put("other", "2");
  EXPECT_TRUE(absl::IsFailedPrecondition(bucket_->PutIf("cas", *other, "3").status()));
  EXPECT_EQ(Read("cas"), "1");
}

TEST_P(BucketPromises, ReplacingWhatIsMissingIsRefused) {
  const auto tag = bucket_->Put("gone", "1");
  ASSERT_TRUE(bucket_->Delete("gone").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(bucket_->PutIf("gone", *tag, "2").status()));
  EXPECT_TRUE(absl::IsNotFound(bucket_->Get("gone").status()));
}

TEST_P(BucketPromises, ReplacesALargeObject) {
  const auto tag = bucket_->PutNew("cas", Letters(3 << 20, 1));
  ASSERT_TRUE(bucket_->PutIf("cas", *tag, Letters(3 << 20, 2)).ok());
  EXPECT_TRUE(
      absl::IsFailedPrecondition(bucket_->PutIf("cas", *tag, Letters(3 << 20, 3)).status()));
  EXPECT_TRUE(Read("cas") == Letters(3 << 20, 2));
}

// --- Unchanged
// ------------------------------------------------------------------------------------

TEST_P(BucketBasics, UnchangedObjectIsNotRead) {
  const auto tag = bucket_->Put("m", "1");
  const auto answer = bucket_->GetIfChanged("m", *tag);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_FALSE(answer->has_value());
}

TEST_P(BucketBasics, ChangedObjectIsRead) {
  const auto tag = bucket_->Put("m", "1");
  const auto newer = bucket_->Put("m", "2");
  const auto answer = bucket_->GetIfChanged("m", *tag);
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ((*answer)->body, "2");
  EXPECT_EQ((*answer)->tag, *newer);
  EXPECT_FALSE(bucket_->GetIfChanged("m", *newer)->has_value());
}

// --- Lists
// -----------------------------------------------------------------------------------------

TEST_P(BucketBasics, ListsInOrderWithSizes) {
  for (const char* key : {"l/b", "l/a", "l/c/d", "m"}) ASSERT_TRUE(bucket_->Put(key, key).ok());
  const auto page = bucket_->List("l/", "");
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->objects.size(), 3u);
  EXPECT_EQ(page->objects[0].key, "l/a");
  EXPECT_EQ(page->objects[1].key, "l/b");
  EXPECT_EQ(page->objects[2].key, "l/c/d");
  EXPECT_EQ(page->objects[2].bytes, 5u);
  EXPECT_FALSE(page->next.has_value());
}

TEST_P(BucketBasics, ListsNothing) { EXPECT_THAT(Keys("nothing/"), ElementsAre()); }

TEST_P(BucketBasics, ListsAPrefixThatEndsAnywhere) {
  for (const char* key : {"abc", "abd", "ac"}) ASSERT_TRUE(bucket_->Put(key, "x").ok());
  EXPECT_THAT(Keys("ab"), ElementsAre("abc", "abd"));
  EXPECT_THAT(Keys(""), ElementsAre("abc", "abd", "ac"));
}

TEST_P(BucketBasics, DeletedObjectsAreNotListed) {
  for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(bucket_->Put(key, "x").ok());
  ASSERT_TRUE(bucket_->Delete("b").ok());
  EXPECT_THAT(Keys(""), ElementsAre("a", "c"));
}

// A page of real services has 1,000 objects.
TEST_P(BucketBasics, ListsPageByPage) {
  const int objects = service_->SetPage(3) ? 10 : 1010;
  std::vector<std::string> expected;
  for (int i = 0; i < objects; ++i) expected.push_back(absl::StrFormat("p/%04d", i));
  std::atomic<size_t> next = 0;
  Race([&](int) -> absl::StatusOr<std::string> {
    for (size_t i; (i = next++) < expected.size();)
      EXPECT_TRUE(bucket_->Put(expected[i], "x").ok());
    return std::string();
  });
  EXPECT_TRUE(bucket_->List("p/", "")->next.has_value());
  EXPECT_EQ(Keys("p/"), expected);
}

// --- Deletion
// --------------------------------------------------------------------------------------

TEST_P(BucketBasics, Deletes) {
  ASSERT_TRUE(bucket_->Put("d", "x").ok());
  ASSERT_TRUE(bucket_->Delete("d").ok());
  EXPECT_TRUE(absl::IsNotFound(bucket_->Get("d").status()));
}

TEST_P(BucketBasics, DeletesWhatIsMissing) {
  const absl::Status status = bucket_->Delete("never");
  EXPECT_TRUE(status.ok()) << status;
}

// --- What is refused before it is sent
// ---------------------------------------------------------------

TEST_P(BucketBasics, RefusesOtherCharacters) {
  for (const char* key : {"", "/a", "a b", "a=b", "a:b", "a%20b", "ü", "a\nb", "../a", "a/./b"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(bucket_->Put(key, "x").status())) << key;
    EXPECT_TRUE(absl::IsInvalidArgument(bucket_->PutNew(key, "x").status())) << key;
    EXPECT_TRUE(absl::IsInvalidArgument(bucket_->Get(key).status())) << key;
    EXPECT_TRUE(absl::IsInvalidArgument(bucket_->Delete(key))) << key;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(bucket_->List("a b", "").status()));
}

TEST_P(BucketBasics, RefusesATagThatIsNone) {
  ASSERT_TRUE(bucket_->Put("a", "x").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(bucket_->PutIf("a", "", "y").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(bucket_->PutIf("a", "a\r\nX: y", "y").status()));
  EXPECT_EQ(Read("a"), "x");
}

// --- Races
// ------------------------------------------------------------------------------------------

TEST_P(BucketPromises, OneOfEightCreatesASmallObject) { RaceCreations(15, 40); }

TEST_P(BucketPromises, OneOfEightCreatesALargeObject) { RaceCreations(2, 2 << 20); }

TEST_P(BucketPromises, OneOfEightReplacesASmallObject) { RaceReplacements(15, 40); }

TEST_P(BucketPromises, OneOfEightReplacesALargeObject) { RaceReplacements(2, 2 << 20); }

// A counter that eight increment under conditions loses no increment that was acknowledged.
TEST_P(BucketPromises, CounterCountsEachAcknowledgedIncrement) {
  ASSERT_TRUE(bucket_->PutNew("counter", "0 none").ok());
  std::atomic<int> acknowledged = 0;
  std::atomic<int> unknown = 0;
  Race([&](int writer) -> absl::StatusOr<std::string> {
    for (int i = 0; i < 10; ++i) {
      const auto read = bucket_->Get("counter");
      if (!read.ok()) continue;
      const int value = std::atoi(read->body.c_str()) + 1;
      const auto tag =
          bucket_->PutIf("counter", read->tag, absl::StrCat(value, " ", writer, ".", i));
      acknowledged += tag.ok();
      unknown += absl::IsUnavailable(tag.status());
    }
    return std::string();
  });
  const int value = std::atoi(Read("counter").c_str());
  EXPECT_GE(value, acknowledged);
  EXPECT_LE(value, acknowledged + unknown);
  EXPECT_GT(acknowledged, 0);
}

// What the probe has to notice: eight creators that all win.
TEST_P(BucketWithoutPromises, ManyCreateOneKey) {
  const auto results = Race([&](int i) { return bucket_->PutNew("one", absl::StrCat(i)); });
  EXPECT_GT(std::count_if(results.begin(), results.end(), [](const auto& one) { return one.ok(); }),
            1);
}

std::string NameOfService(const ::testing::TestParamInfo<ServiceKind>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(At, BucketBasics, ::testing::ValuesIn(ServicesThat(std::nullopt)),
                         NameOfService);
INSTANTIATE_TEST_SUITE_P(At, BucketPromises, ::testing::ValuesIn(ServicesThat(true)),
                         NameOfService);
INSTANTIATE_TEST_SUITE_P(At, BucketWithoutPromises, ::testing::ValuesIn(ServicesThat(false)),
                         NameOfService);

}  // namespace
}  // namespace tacho::storage
