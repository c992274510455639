#include "server/interop/series_sheets.h"

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

}  // namespace
}  // namespace tacho::server::interop
