// A spool on a file system in memory that can be made to refuse, with a clock of the test's.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/spool/spool.h"
#include "gtest/gtest.h"
#include "rocksdb/db.h"
#include "storage/codec/keys.h"
#include "storage/journal/journal.h"
#include "tests/agent/recording_sink.h"
#include "tests/support/faulty_env.h"

namespace tacho::agent {

inline v1::Layout MakeLayout(const std::string& job, int width = 1, bool has_steps = false) {
  v1::Layout layout;
  layout.mutable_source()->set_job(job);
  layout.mutable_source()->set_host("h");
  layout.set_has_steps(has_steps);
  for (int i = 0; i < width; ++i) {
    layout.add_series()->mutable_metric()->set_name(absl::StrCat("metric_", i));
  }
  return layout;
}

class SpoolTest : public ::testing::Test {
 protected:
  SpoolTest() { Reopen(); }

  void Reopen() {
    spool_.reset();
    auto spool = Spool::Open({.path = "/spool",
                              .max_bytes = max_bytes_,
                              .max_age = max_age_,
                              .patient_sources = {"files"},
                              .now = [this] { return now_; },
                              .log = testing::LogTo(&log_),
                              .env = &env_,
                              .reopen_interval = absl::ZeroDuration()});
    ASSERT_TRUE(spool.ok()) << spool.status();
    spool_ = *std::move(spool);
  }

  // As a flipped bit on the disk does.
  void Damage(char position) { Put(1, std::string(7, '\0') + position, "damaged"); }

  // Writes past the spool into the database: family 0 has the notes, 1 the journal.
  void Put(size_t family, const std::string& key, const std::string& value) {
    spool_.reset();
    std::vector<rocksdb::ColumnFamilyDescriptor> families = {
        {rocksdb::kDefaultColumnFamilyName, {}}, {storage::kJournalFamily, {}}};
    rocksdb::Options options;
    options.env = &env_;
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* db = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(options, "/spool", families, &handles, &db).ok());
    EXPECT_TRUE(db->Put({}, handles[family], key, value).ok());
    for (rocksdb::ColumnFamilyHandle* handle : handles) {
      EXPECT_TRUE(db->DestroyColumnFamilyHandle(handle).ok());
    }
    delete db;
    Reopen();
  }

  uint32_t Define(const v1::Layout& layout) { return *spool_->DefineLayout(layout); }

  absl::Status AppendRow(uint32_t layout, double value, const RowSink::Checkpoint& at = {}) {
    const int64_t time = 1'700'000'000'000'000'000;
    return spool_->AppendRows(layout, {&time, 1}, {}, {&value, 1}, at);
  }

  struct Entry {
    uint64_t sequence = 0;
    v1::ClientMessage message;
  };
  std::vector<Entry> ReadAll(uint64_t sequence = 1) {
    EXPECT_TRUE(spool_->Sync().ok());
    std::vector<Entry> all;
    for (;;) {  // What lies before a damaged entry is read by itself.
      auto entries = spool_->Read(all.empty() ? sequence : all.back().sequence + 1, UINT64_MAX);
      EXPECT_TRUE(entries.ok()) << entries.status();
      if (!entries.ok() || entries->empty()) return all;
      for (const Spool::Entry& one : *entries) all.push_back({one.sequence, one.message.Parsed()});
    }
  }

  std::vector<double> FirstValues() {
    std::vector<double> values;
    for (const auto& entry : ReadAll()) {
      if (entry.message.has_batch()) values.push_back(entry.message.batch().values(0));
    }
    return values;
  }

  struct Count {
    uint64_t kept = 0;  // Batches in the spool.
    uint64_t lost = 0;  // Rows that its Gaps name.
  };
  Count CountBatches() {
    Count count;
    for (const auto& entry : ReadAll()) {
      if (entry.message.has_batch()) ++count.kept;
      count.lost += entry.message.gap().rows();
    }
    return count;
  }

  storage::FaultyEnv env_;
  uint64_t max_bytes_ = 1u << 30;
  absl::Duration max_age_ = absl::ZeroDuration();
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  std::vector<std::string> log_;
  std::unique_ptr<Spool> spool_;
};

}  // namespace tacho::agent
