#include "server/interop/series_sheets.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tacho::server::interop {
namespace {

Place OnSheet(const SheetPtr& sheet, uint32_t column) {
  return {Place::Kind::kStored, column, sheet};
}

TEST(SeriesSheetsTest, APlaceIsRememberedUntilItsSheetIsForgotten) {
  SeriesSheets sheets(100);
  const auto sheet = std::make_shared<Sheet>();
  const auto other = std::make_shared<Sheet>();
  sheets.Put("a", OnSheet(sheet, 0), 0);
  sheets.Put("b", OnSheet(sheet, 1), 0);
  sheets.Put("c", OnSheet(other, 0), 0);
  EXPECT_EQ(sheets.Find("b").column, 1u);
  EXPECT_EQ(sheets.Find("d").kind, Place::Kind::kUnknown);
  sheets.Forget(sheet);
  EXPECT_EQ(sheets.Find("a").kind, Place::Kind::kUnknown);
  EXPECT_EQ(sheets.Find("c").kind, Place::Kind::kStored);
}

TEST(SeriesSheetsTest, AboveTheBoundTheLongestUnusedGoFirst) {
  SeriesSheets sheets(1000);
  const auto old = std::make_shared<Sheet>();
  const auto used = std::make_shared<Sheet>();
  used->used_s = 10;
  for (int i = 0; i < 500; ++i) {
    sheets.Put(absl::StrCat("used", i), OnSheet(used, 0), 0);
    sheets.Put(absl::StrCat("old", i), OnSheet(old, 0), 0);
  }
  for (int i = 0; i < 300; ++i) sheets.Put(absl::StrCat("new", i), OnSheet(used, 0), 0);
  EXPECT_LE(sheets.size(), 1000u);
  int left = 0;
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(sheets.Find(absl::StrCat("used", i)).kind, Place::Kind::kStored) << i;
    if (sheets.Find(absl::StrCat("old", i)).kind == Place::Kind::kStored) ++left;
  }
  EXPECT_GE(left, 100);
  EXPECT_LE(left, 300);
}

TEST(SeriesSheetsTest, APlaceByAnOldMappingIsNotRemembered) {
  SeriesSheets sheets(100);
  const uint64_t before = sheets.generation();
  sheets.ForgetAll();
  sheets.Put("a", OnSheet(std::make_shared<Sheet>(), 0), before);
  EXPECT_EQ(sheets.Find("a").kind, Place::Kind::kUnknown);
}

TEST(SeriesSheetsTest, LongKeysAreBoundedTogether) {
  SeriesSheets sheets(1000);
  const auto sheet = std::make_shared<Sheet>();
  for (int i = 0; i < 1000; ++i) {
    sheets.Put(absl::StrCat(i, std::string(64 << 10, 'x')), OnSheet(sheet, 0), 0);
  }
  EXPECT_LE(sheets.size(), 1000 * SeriesSheets::kKeyBytes / (64 << 10));
  sheets.Put(std::string(1000 * SeriesSheets::kKeyBytes + 1, 'x'), OnSheet(sheet, 0), 0);
  EXPECT_GT(sheets.size(), 0u) << "one that never fits moves nobody out";
}

// Against a map that does without order, blocks and guesses.
TEST(SeriesSheetsTest, AnyOrderFindsWhatWasPut) {
  SeriesSheets sheets(100'000);
  std::vector<SheetPtr> made;
  for (int i = 0; i < 10; ++i) made.push_back(std::make_shared<Sheet>());
  std::map<std::string, std::pair<SheetPtr, uint32_t>> known;
  std::map<std::string, PlaceMemo> memos;
  std::mt19937 random(22);
  for (int round = 0; round < 300; ++round) {
    const int first = static_cast<int>(random() % 300);
    for (int i = first; i < first + 20; ++i) {
      const std::string key = absl::StrCat("series ", i, std::string(random() % 3 * 40'000, 'k'));
      const SheetPtr& sheet = made[random() % made.size()];
      const uint32_t column = random() % 64;
      // Far from the bound, so that nothing is forgotten for room.
      if (known.size() < 300) {
        sheets.Put(key, OnSheet(sheet, column), 0);
        known[key] = {sheet, column};
      }
    }
    if (round % 7 == 0) {
      const SheetPtr& sheet = made[random() % made.size()];
      sheets.Forget(sheet);
      std::erase_if(known, [&](const auto& one) { return one.second.first == sheet; });
    }
    std::vector<absl::string_view> keys;
    for (const auto& [key, place] : known) keys.push_back(key);
    keys.push_back("never put");
    if (round % 2 == 0) std::shuffle(keys.begin(), keys.end(), random);
    std::vector<ForeignSeries> series;
    for (const absl::string_view key : keys) {
      // Every third key has no memo.
      const bool noted = !key.empty() && key.back() % 3 != 0;
      series.push_back({.key = key, .memo = noted ? &memos[std::string(key)] : nullptr});
    }
    std::vector<Place> places;
    sheets.FindAll(series, &places);
    ASSERT_EQ(places.size(), keys.size());
    ASSERT_EQ(sheets.size(), known.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto wanted = known.find(std::string(keys[i]));
      if (wanted == known.end()) {
        EXPECT_EQ(places[i].kind, Place::Kind::kUnknown);
      } else {
        EXPECT_EQ(places[i].sheet, wanted->second.first);
        EXPECT_EQ(places[i].column, wanted->second.second);
      }
    }
  }
}

}  // namespace
}  // namespace tacho::server::interop
