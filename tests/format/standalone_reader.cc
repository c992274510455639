#include "tests/format/standalone_reader.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/options.h"

namespace format_page {
namespace {

std::string Hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<uint8_t>(byte) >> 4];
    text += kDigits[static_cast<uint8_t>(byte) & 15];
  }
  return text;
}

// The day of a column family of that name; nothing if it has another.
std::optional<int64_t> DayOf(std::string_view family) {
  constexpr std::string_view kPrefix = "day.";
  if (!family.starts_with(kPrefix)) return std::nullopt;
  family.remove_prefix(kPrefix.size());
  int64_t day = 0;
  const auto end = std::from_chars(family.data(), family.data() + family.size(), day);
  if (end.ec != std::errc() || end.ptr != family.data() + family.size()) return std::nullopt;
  return day;
}

// The database's column families, opened for reading.
class Database {
 public:
  explicit Database(Findings* findings) : findings_(findings) {}
  ~Database() {
    for (const auto& [name, handle] : families_) db_->DestroyColumnFamilyHandle(handle);
  }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void Open(const std::string& path, rocksdb::Env* env) {
    rocksdb::Options options;
    options.env = env;
    std::vector<std::string> names;
    rocksdb::Status status = rocksdb::DB::ListColumnFamilies(options, path, &names);
    std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
    for (const std::string& name : names) descriptors.emplace_back(name, options);
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* db = nullptr;
    if (status.ok()) {
      status = rocksdb::DB::OpenForReadOnly(options, path, descriptors, &handles, &db);
    }
    db_.reset(db);
    if (!status.ok()) findings_->errors.push_back(status.ToString());
    for (size_t i = 0; i < handles.size(); ++i) families_[names[i]] = handles[i];
  }

  const std::map<std::string, rocksdb::ColumnFamilyHandle*>& families() const { return families_; }

  // Every record of a column family, in the order of the keys. A family that is not there has none.
  void Visit(const std::string& family, const std::function<void(Bytes key, Bytes value)>& visit) {
    const auto found = families_.find(family);
    if (found == families_.end()) return;
    const std::unique_ptr<rocksdb::Iterator> records(
        db_->NewIterator(rocksdb::ReadOptions(), found->second));
    for (records->SeekToFirst(); records->Valid(); records->Next()) {
      const std::string_view key = records->key().ToStringView();
      const std::string name = family + " " + Hex(key);
      visit(Bytes(name, key, findings_),
            Bytes(name + " value", records->value().ToStringView(), findings_));
    }
    if (!records->status().ok()) findings_->errors.push_back(records->status().ToString());
  }

 private:
  Findings* const findings_;
  std::unique_ptr<rocksdb::DB> db_;
  std::map<std::string, rocksdb::ColumnFamilyHandle*> families_;
};

void ReadFormat(Database* database, Findings* findings) {
  bool known = false;
  database->Visit("default", [&known](Bytes key, Bytes value) {
    if (key.Rest() == "format") known = value.Rest() == "2";
  });
  if (!known) findings->errors.emplace_back("not a store of format version 2");
}

void ReadIndex(Database* database, Contents* contents) {
  // In the order of the keys metrics come before series, which refer to them. Layouts come first,
  // so what they refer to is looked up at the end.
  database->Visit("index", [contents](Bytes key, Bytes value) {
    ReadIndexRecord(key, value, &contents->records);
  });
  for (const auto& [job_id, records] : contents->records.jobs) {
    const auto& job = records;  // clang 14 does not let a lambda capture a structured binding.
    for (const auto& [id, layout] : job.layouts) {
      const bool complete =
          !layout.series.empty() &&
          std::all_of(layout.series.begin(), layout.series.end(),
                      [&job](uint64_t series) { return job.series.contains(series); });
      if (!complete) {
        contents->findings.errors.push_back("layout " + std::to_string(id) + " lacks series");
      }
    }
  }
}

void ReadJournal(Database* database, Contents* contents) {
  OpenRows open;
  uint64_t expected = 1;
  database->Visit("journal", [&](Bytes key, Bytes value) {
    const uint64_t position = key.Big(8);
    key.ExpectEnd();
    const uint64_t checksum = value.Little(4);
    const std::string entry = value.Rest();
    if (checksum != Crc32c(entry)) return value.Fail("does not match its checksum");
    Bytes bytes("entry " + std::to_string(position), entry, &contents->findings);
    if (position == 0) {
      bytes.Met("journal: trim mark");
      expected = bytes.Little(8);
      return bytes.ExpectEnd();
    }
    if (position != expected) key.Fail("a gap in the journal");
    expected = position + 1;
    open.ReadEntry(position, bytes, &contents->records);
  });
  open.AddTo(&contents->samples);
}

}  // namespace

Contents ReadStore(const std::string& path, rocksdb::Env* env) {
  Contents contents;
  Database database(&contents.findings);
  database.Open(path, env);
  if (!contents.findings.errors.empty()) return contents;
  ReadFormat(&database, &contents.findings);
  if (!contents.findings.errors.empty()) return contents;

  Records* const records = &contents.records;
  ReadIndex(&database, &contents);
  if (!contents.findings.errors.empty()) return contents;
  database.Visit("state", [&](Bytes key, Bytes value) { ReadStateRecord(key, value, records); });
  database.Visit("events", [&](Bytes key, Bytes value) { ReadEventRecord(key, value, records); });
  for (const auto& [name, handle] : database.families()) {
    const std::optional<int64_t> number = DayOf(name);
    if (!number.has_value()) continue;
    Day day(*number, records);
    database.Visit(name,
                   [&](Bytes key, Bytes value) { day.ReadRecord(key, value, &contents.samples); });
    contents.findings.met["frames"] += day.frames();
  }
  ReadJournal(&database, &contents);
  return contents;
}

}  // namespace format_page
