// A real table of RocksDB in memory, with each of its bytes damaged.
#include "storage/db/table_check.h"

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "storage/db/directory_check.h"

namespace tacho::storage {
namespace {

class TableCheckTest : public testing::Test {
 protected:
  TableCheckTest() : env_(rocksdb::NewMemEnv(rocksdb::Env::Default())) {
    rocksdb::Options options;
    options.env = env_.get();
    options.create_if_missing = true;
    rocksdb::DB* db = nullptr;
    EXPECT_TRUE(rocksdb::DB::Open(options, "/db", &db).ok());
    EXPECT_TRUE(db->Put({}, "key", "value").ok());
    EXPECT_TRUE(db->Flush({}).ok());
    delete db;
    std::vector<std::string> names;
    EXPECT_TRUE(env_->GetChildren("/db", &names).ok());
    for (const std::string& name : names) {
      if (name.ends_with(".sst")) path_ = "/db/" + name;
    }
    EXPECT_TRUE(rocksdb::ReadFileToString(env_.get(), path_, &table_).ok());
  }

  void Write(const std::string& bytes) {
    ASSERT_TRUE(rocksdb::WriteStringToFile(env_.get(), bytes, path_).ok());
  }

  const std::unique_ptr<rocksdb::Env> env_;
  std::string path_;
  std::string table_;
};

TEST_F(TableCheckTest, RefusesTheOneBitThatRocksDbTrustsAndNoOther) {
  EXPECT_TRUE(CheckTable(env_.get(), path_).ok());
  int refused = 0;
  for (size_t at = 0; at < table_.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = table_;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      Write(damaged);
      const absl::Status status = CheckTable(env_.get(), path_);
      if (status.ok()) continue;
      // A damaged position of the properties can lead to another byte with the bit set.
      if (at < table_.size() - 53 && bit == 7 && damaged[at] == '\x80') ++refused;
      EXPECT_TRUE(absl::IsDataLoss(status)) << status;
      EXPECT_EQ(CheckDirectory(env_.get(), "/db", {}), status) << "named before it is opened";
    }
  }
  EXPECT_EQ(refused, 1);
}

TEST_F(TableCheckTest, LeavesWhatIsNoTableToRocksDb) {
  for (size_t size = 0; size < table_.size(); ++size) {
    Write(table_.substr(0, size));
    const absl::Status checked = CheckTable(env_.get(), path_);  // And does not end the process.
    EXPECT_TRUE(checked.ok() || absl::StrContains(checked.message(), path_)) << checked;
  }
  EXPECT_TRUE(CheckTable(env_.get(), "/db/none.sst").ok());
}

}  // namespace
}  // namespace tacho::storage
