// Holds the store to the worked example of docs/storage_format.md, which is read from that page:
// the page cannot be wrong while this test passes.
//
// The example stands in the blocks ```bytes NAME of the page. A line is
//
//   [column family] key|value BYTES # what they mean        or, going on,        BYTES # ...
//
// with bytes as two hexadecimal digits, "00×8" for repeated ones, and ".." for any byte.
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/stale_marker.h"
#include "rocksdb/db.h"
#include "tests/storage/store_fixture.h"

namespace tacho::storage {
namespace {

// "journal key 00..01 value ..": one a record, ordered as they lie in the database.
using Records = std::vector<std::string>;

// The records of the page's block of this name.
Records ReadExample(const std::string& name) {
  std::ifstream page(TACHO_STORAGE_FORMAT_PAGE);
  EXPECT_TRUE(page.good()) << TACHO_STORAGE_FORMAT_PAGE;
  Records records;
  std::string family;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (!inside) {
      inside = line == "```bytes " + name;
      continue;
    }
    if (line == "```") return records;
    const std::string bytes = line.substr(0, line.find('#'));
    for (const absl::string_view word : absl::StrSplit(bytes, ' ', absl::SkipWhitespace())) {
      const std::vector<absl::string_view> parts = absl::StrSplit(word, "×");
      if (word == "key") {
        records.push_back(family + " key ");
      } else if (word == "value") {
        absl::StrAppend(&records.back(), " value ");
      } else if (parts[0].size() > 2) {
        family = std::string(word);
      } else {
        int times = 1;
        EXPECT_TRUE(parts.size() == 1 || absl::SimpleAtoi(parts[1], &times)) << line;
        for (; times > 0; --times) absl::StrAppend(&records.back(), parts[0]);
      }
    }
  }
  ADD_FAILURE() << "no block of bytes named " << name;
  return records;
}

// `record` with ".." wherever `pattern` has it, so that equal means matching.
std::string Masked(std::string record, const std::string& pattern) {
  for (size_t at = 0; at + 1 < std::min(record.size(), pattern.size()); ++at) {
    if (pattern[at] == '.') record[at] = '.';
    if (pattern[at + 1] == '.') record[at + 1] = '.';
  }
  return record;
}

class StorageFormatTest : public StoreFixture {
 protected:
  // The example, up to the moment before anything is sealed.
  void Record() {
    LayoutDefinition definition;
    definition.source = {.job = "demo", .task = 1, .attempt = 0, .host = "h1"};
    definition.has_steps = true;
    definition.series = {
        {{"loss", MetricType::kGauge, "1", "Training loss."}, {}},
        {{"lr", MetricType::kGauge, "1", ""}, {{"group", "a"}}},
    };
    const LayoutPtr layout = Register(definition);
    ASSERT_TRUE(Wait([&](AppendDone done) {
                  store_->AppendAttributes({"a1", 0x0102030405060708, 1},
                                           {.job = "demo", .values = {{"model", "mlp"}}},
                                           std::move(done));
                }).ok());
    constexpr int64_t kStart = 1'700'000'000'000'000'000;
    constexpr int64_t kSecond = 1'000'000'000;
    const double none = StaleMarker();
    ASSERT_TRUE(Append(layout, {kStart, kStart + kSecond, kStart + 2 * kSecond}, {7, 8, 9},
                       {2.31, 0.001, 1.87, none, 1.52, none}, {"a1", 0x0102030405060708, 2})
                    .ok());
    ASSERT_TRUE(Wait([&](AppendDone done) {
                  Event event;
                  event.source = definition.source;
                  event.time_ns = kStart + 2 * kSecond;
                  event.step = 9;
                  event.kind = "ended";
                  event.message = "Done.";
                  event.fields = {{"why", "steps"}};
                  store_->AppendEvent({"a1", 0x0102030405060708, 4}, event, std::move(done));
                }).ok());
  }

  // What the database holds at this moment; empty column families do not show.
  Records Dump() const {
    rocksdb::DBOptions options;
    options.env = env_.get();
    std::vector<std::string> names;
    EXPECT_TRUE(rocksdb::DB::ListColumnFamilies(options, options_.path, &names).ok());
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    families.reserve(names.size());
    for (const std::string& name : names)
      families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* opened = nullptr;
    const rocksdb::Status status =
        rocksdb::DB::OpenForReadOnly(options, options_.path, families, &handles, &opened);
    EXPECT_TRUE(status.ok()) << status.ToString();
    const std::unique_ptr<rocksdb::DB> db(opened);
    Records records;
    for (size_t i = 0; i < handles.size(); ++i) {
      const std::unique_ptr<rocksdb::Iterator> it(
          db->NewIterator(rocksdb::ReadOptions(), handles[i]));
      for (it->SeekToFirst(); it->Valid(); it->Next()) {
        records.push_back(absl::StrCat(names[i], " key ", it->key().ToString(true), " value ",
                                       it->value().ToString(true)));
        for (char& c : records.back()) c = absl::ascii_tolower(static_cast<unsigned char>(c));
      }
    }
    for (auto* handle : handles) db->DestroyColumnFamilyHandle(handle);
    return records;
  }

  // Expects that the database holds exactly the records of the page's block.
  void ExpectExample(const std::string& name) const {
    const Records expected = ReadExample(name);
    Records found = Dump();
    for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
      found[i] = Masked(found[i], expected[i]);
    }
    EXPECT_EQ(absl::StrJoin(found, "\n"), absl::StrJoin(expected, "\n"));
  }
};

TEST_F(StorageFormatTest, TheDocumentedExampleIsWhatIsWrittenBeforeSealing) {
  Record();
  ExpectExample("before-sealing");
}

TEST_F(StorageFormatTest, TheDocumentedExampleIsWhatIsWrittenBySealing) {
  Record();
  ASSERT_TRUE(store_->Seal().ok());
  ExpectExample("after-sealing");
}

}  // namespace
}  // namespace tacho::storage
