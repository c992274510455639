// Columns that stand in another day's partition. Their checksums are right, so only their times
// show it.
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "rocksdb/db.h"
#include "storage/codec/keys.h"
#include "storage/db/database.h"
#include "tests/storage/store_fixture.h"

namespace tacho::storage {
namespace {

constexpr int64_t kStart = 1'700'000'000'000'000'000;

class MisplacedColumnsTest : public StoreFixture {
 protected:
  MisplacedColumnsTest() {
    options_.seal_rows = 32;
    Reopen();
    const LayoutPtr layout = Register(Definition("job", {"loss"}));
    for (int i = 0; i < 4; ++i) Frame(layout, i);
    Frame(layout, kDayNs);
  }

  // One row, sealed at once: a frame of its own.
  void Frame(const LayoutPtr& layout, int64_t offset) {
    ASSERT_TRUE(Append(layout, {kStart + offset}, {0}, {1}).ok());
    ASSERT_TRUE(store_->Seal().ok());
  }

  // Writes the second day's first column whose key begins with `prefix` into the first day, in
  // place of the first such column there or beside it, and opens the store again.
  void Misplace(const std::string& prefix, bool replace) {
    ASSERT_TRUE(store_->Close().ok());
    store_.reset();
    {
      const auto database = Database::Open({.path = options_.path, .env = options_.env});
      ASSERT_TRUE(database.ok()) << database.status();
      rocksdb::DB* const db = (*database)->db.get();
      const auto days = (*database)->partitions->Between(INT64_MIN, INT64_MAX);
      ASSERT_EQ(days.size(), 2u);
      const auto first = [&](const PartitionPtr& day) {
        std::unique_ptr<rocksdb::Iterator> it(
            db->NewIterator(rocksdb::ReadOptions(), day->handle()));
        it->Seek(prefix);
        EXPECT_TRUE(it->Valid() && it->key().starts_with(prefix));
        return it;
      };
      const auto other = first(days[1]);
      const std::string key = first(days[replace ? 0 : 1])->key().ToString();
      ASSERT_TRUE(db->Put(rocksdb::WriteOptions(), days[0]->handle(), key, other->value()).ok());
    }
    Reopen();
  }
};

TEST_F(MisplacedColumnsTest, ValuesAreReportedAsDamage) {
  Misplace("V", /*replace=*/false);
  const SeriesPtr loss = Find("job", "loss");
  EXPECT_EQ(store_->Read(loss, {})->FindEnds().status().code(), absl::StatusCode::kDataLoss);
  SampleBlock block;
  EXPECT_EQ(NextBlock(store_->Read(loss, {}).get(), &block).status().code(),
            absl::StatusCode::kDataLoss);
}

// Merged, they would make frames of two days.
TEST_F(MisplacedColumnsTest, TimesAreReportedAndNotMerged) {
  Misplace("T", /*replace=*/true);
  // So that the journal's positions are known to be past the frames.
  Frame(Register(Definition("job", {"loss"})), kDayNs);
  now_ += absl::Hours(48);
  EXPECT_TRUE(store_->MergeFrames().ok()) << "frames that are found count as new";
  now_ += absl::Hours(48);
  EXPECT_EQ(store_->MergeFrames().code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(store_->MergeFrames().ok()) << "they are left alone";
}

}  // namespace
}  // namespace tacho::storage
