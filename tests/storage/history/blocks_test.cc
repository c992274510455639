// What is written into blocks is read back from the bucket, with few requests, and with the errors
// that the bucket has.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/crc32c.h"
#include "rocksdb/env.h"
#include "rocksdb/iterator.h"
#include "storage/db/rocksdb_status.h"
#include "storage/history/block_writer.h"
#include "storage/history/bucket_days.h"
#include "storage/shard/bucket_keys.h"
#include "tests/storage/history/counted_bucket.h"

namespace tacho::storage {
namespace {

using Content = std::map<std::string, std::string>;

// Bytes that do not compress.
std::string Noise(size_t size, uint64_t seed) {
  std::string out(size, 0);
  uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
  for (size_t at = 0; at + sizeof(state) <= size; at += sizeof(state)) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::memcpy(&out[at], &state, sizeof(state));
  }
  return out;
}

class BlocksTest : public testing::Test {
 protected:
  BlocksTest() : env_(rocksdb::NewMemEnv(rocksdb::Env::Default())) { OpenCold(); }

  // As a process that has nothing of the bucket on its disk.
  void OpenCold(size_t max_open = 1000) {
    ++generation_;
    days_ = nullptr;
    auto pieces = PieceCache::Open({.path = absl::StrCat("/cache", generation_),
                                    .max_bytes = uint64_t{1} << 30,
                                    .env = env_.get()});
    ASSERT_TRUE(pieces.ok()) << pieces.status();
    pieces_ = *std::move(pieces);
    days_ = std::make_unique<BucketDays>(
        BucketDays::Options{.bucket = &bucket_, .pieces = pieces_.get(), .max_open = max_open});
    days_->Set(closed_, INT64_MAX);
  }

  absl::StatusOr<std::vector<Block>> Write(const Content& content, uint64_t max_bytes = 64u << 20) {
    BlockWriter writer({.bucket = &bucket_,
                        .next_key = [this] { return BlockKey(0, kDay, 1, ++number_); },
                        .before_retry = [this](int) { return give_up_; },
                        .max_bytes = max_bytes});
    for (const auto& [key, value] : content) {
      if (absl::Status added = writer.Add(key, value); !added.ok()) return added;
    }
    return writer.Finish();
  }
  void Close(const std::vector<Block>& blocks) {
    const std::string body = EncodeBlockList(blocks);
    const std::string key = BlockListKey(0, kDay, 1, ++number_);
    bucket_.Change(key, body);
    closed_[kDay] = {key, body.size(), ExtendCrc32c(0, body.data(), body.size())};
    days_->Set(closed_, INT64_MAX);
  }
  void WriteDay(const Content& content, uint64_t max_bytes = 64u << 20) {
    const auto blocks = Write(content, max_bytes);
    ASSERT_TRUE(blocks.ok()) << blocks.status();
    Close(*blocks);
  }

  std::unique_ptr<rocksdb::Iterator> NewIterator(ReadAmount amount = ReadAmount::kLittle) {
    auto it = days_->NewIterator(*days_->picture()->days.front(), nullptr, amount);
    EXPECT_TRUE(it.ok()) << it.status();
    return it.ok() ? *std::move(it) : nullptr;
  }
  absl::Status Read(absl::string_view prefix, Content* content) {
    content->clear();
    const auto it = days_->NewIterator(*days_->picture()->days.front(), nullptr);
    if (!it.ok()) return it.status();
    for ((*it)->Seek({prefix.data(), prefix.size()}); (*it)->Valid(); (*it)->Next()) {
      const bool is_new =
          content->emplace((*it)->key().ToString(), (*it)->value().ToString()).second;
      EXPECT_TRUE(is_new) << "a key came twice";
    }
    return FromRocksDb((*it)->status(), "read");
  }
  // So many series, each a frame every so often, as keys go in a day.
  static Content Series(int series, int frames, size_t bytes) {
    Content content;
    for (int s = 0; s < series; ++s) {
      for (int f = 0; f < frames; ++f) {
        content[absl::StrFormat("V%04d.%04d", s, f)] =
            Noise(bytes, static_cast<uint64_t>(s) * 1000 + static_cast<uint64_t>(f));
      }
    }
    return content;
  }
  static Content Only(const Content& all, absl::string_view prefix) {
    Content some;
    for (const auto& [key, value] : all) {
      if (absl::StartsWith(key, prefix)) some[key] = value;
    }
    return some;
  }

  static constexpr int64_t kDay = 20'000;
  std::unique_ptr<rocksdb::Env> env_;
  CountedBucket bucket_;
  std::unique_ptr<PieceCache> pieces_;
  std::unique_ptr<BucketDays> days_;
  std::map<int64_t, StoredFile> closed_;
  absl::Status give_up_ = absl::UnavailableError("gave up");
  uint64_t number_ = 0;
  int generation_ = 0;
};

TEST_F(BlocksTest, WhatWasWrittenIsReadAgain) {
  const Content content = Series(30, 20, 700);
  WriteDay(content, 100'000);
  EXPECT_GT(bucket_.Objects().size(), 4u) << "several blocks and the list";
  for (const auto& [key, body] : bucket_.Objects()) EXPECT_LE(body.size(), 100'000u) << key;
  Content read;
  ASSERT_TRUE(Read("", &read).ok());
  EXPECT_EQ(read, content);
  for (const char* prefix : {"V0000.", "V0017.", "V0029.", "V0030.", "A", "W", "V00"}) {
    ASSERT_TRUE(Read(prefix, &read).ok());
    EXPECT_EQ(read, Only(content, prefix)) << prefix;
  }
}

TEST_F(BlocksTest, BlocksThatOverlapAreOneMap) {
  Content first = Series(20, 10, 300);
  auto blocks = Write(first, 30'000);
  ASSERT_TRUE(blocks.ok());
  Content late = {{"V0003.0003x", "late"}, {"V0010.0001", first["V0010.0001"]}, {"Z", "last"}};
  const auto more = Write(late);
  ASSERT_TRUE(more.ok());
  blocks->insert(blocks->end(), more->begin(), more->end());
  Close(*blocks);
  Content both = first;
  both.merge(late);
  Content read;
  ASSERT_TRUE(Read("", &read).ok());
  EXPECT_EQ(read, both);
  ASSERT_TRUE(Read("V0003.", &read).ok());
  EXPECT_EQ(read, Only(both, "V0003."));
}

TEST_F(BlocksTest, ABlockIsOpenedWithOneRequestAndASeriesReadWithAnother) {
  WriteDay(Series(200, 60, 1500));
  ASSERT_EQ(bucket_.Objects().size(), 2u);
  OpenCold();
  const int before = bucket_.gets();
  Content read;
  ASSERT_TRUE(Read("V0005.", &read).ok());
  EXPECT_EQ(read.size(), 60u);
  EXPECT_EQ(bucket_.gets() - before, 3) << "the list, the end of the block, the series";
  ASSERT_TRUE(Read("V0005.", &read).ok());
  EXPECT_EQ(bucket_.gets() - before, 3);
}

TEST_F(BlocksTest, AColdDayOf200SeriesTakesAtMost12Requests) {
  // A metric of 200 tasks between others: 27 MB of a block of 40.
  Content content = Series(200, 86, 1600);
  ASSERT_GT(content.size() * 1600, 27'000'000u);
  for (const auto& [key, value] : Series(200, 20, 1600)) {
    content["U" + key] = value;
    content["W" + key] = value;
  }
  // The times of 25 tasks: each has 8 series.
  for (const auto& [key, value] : Series(25, 86, 4000)) content["T" + key.substr(1)] = value;
  WriteDay(content);
  ASSERT_EQ(bucket_.Objects().size(), 2u) << "a block and the list";
  OpenCold();
  const int before = bucket_.gets();
  const uint64_t bytes_before = bucket_.bytes_got();
  // As a query reads it: one thread at a series and the times of its task, another ahead of it.
  const auto it = NewIterator(ReadAmount::kMuch);
  const auto ahead = NewIterator(ReadAmount::kMuch);
  size_t seen = 0;
  size_t bytes = 0;
  const auto read = [&](rocksdb::Iterator* with, char kind, int number) {
    for (with->Seek(absl::StrFormat("%c%04d.", kind, number)); with->Valid(); with->Next()) {
      if (with != it.get()) continue;
      ++seen;
      bytes += with->value().size();
    }
    ASSERT_TRUE(with->status().ok()) << with->status().ToString();
  };
  for (int series = 0; series < 200; ++series) {
    read(it.get(), 'V', series);
    if (series % 8 == 0) read(it.get(), 'T', series / 8);
    if (series + 24 < 200) read(ahead.get(), 'V', series + 24);
  }
  EXPECT_EQ(seen, (200u + 25) * 86);
  EXPECT_LE(bucket_.gets() - before, 12);
  EXPECT_LE(bucket_.bytes_got() - bytes_before, bytes * 3 / 2);
  // The next reader takes it from the disk.
  const int cold = bucket_.gets();
  Content again;
  ASSERT_TRUE(Read("V0100.", &again).ok());
  EXPECT_EQ(bucket_.gets(), cold);
}

TEST_F(BlocksTest, OneSeriesFetchesOnePieceEvenBesideAReaderOfMuch) {
  WriteDay(Series(200, 60, 1500));
  OpenCold();
  Content read;
  ASSERT_TRUE(Read("V0000.", &read).ok());
  const uint64_t before = bucket_.bytes_got();
  ASSERT_TRUE(Read("V0100.", &read).ok());
  EXPECT_EQ(bucket_.bytes_got() - before, PieceCache::kPieceBytes);
  const auto it = NewIterator(ReadAmount::kMuch);
  it->Seek("V0150.");
  ASSERT_TRUE(it->Valid());
  EXPECT_EQ(bucket_.bytes_got() - before, 5 * PieceCache::kPieceBytes);
}

TEST_F(BlocksTest, WithoutADiskRunsAreAFourthOfTheMemory) {
  WriteDay(Series(200, 86, 1600));
  auto pieces = PieceCache::Open(
      {.path = "/none", .max_bytes = 0, .memory_bytes = 8u << 20, .env = env_.get()});
  ASSERT_TRUE(pieces.ok()) << pieces.status();
  RemoteFiles files(&bucket_, pieces->get());
  const auto objects = bucket_.Objects();
  const auto& [key, body] = *std::max_element(
      objects.begin(), objects.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  ASSERT_TRUE(files
                  .NewRandomAccessFile(RemoteFiles::NameOf(key, body.size(), ReadAmount::kMuch), {},
                                       &file, nullptr)
                  .ok());
  const int before = bucket_.gets();
  std::string scratch(1, 0);
  rocksdb::Slice byte;
  for (uint64_t piece = 0; piece < 20; ++piece) {
    ASSERT_TRUE(
        file->Read(piece * PieceCache::kPieceBytes, 1, {}, &byte, scratch.data(), nullptr).ok());
  }
  EXPECT_EQ(bucket_.gets() - before, 10);
}

TEST_F(BlocksTest, ABlockWithoutTheSeriesIsNotRead) {
  WriteDay(Series(30, 20, 700), 100'000);
  OpenCold();
  Content read;
  const int before = bucket_.gets();
  ASSERT_TRUE(Read("V0030.", &read).ok());
  ASSERT_TRUE(Read("A", &read).ok());
  EXPECT_EQ(bucket_.gets() - before, 1) << "the list";
}

TEST_F(BlocksTest, ABucketThatIsAwayIsUnavailableAndComesBack) {
  const Content content = Series(5, 5, 100);
  WriteDay(content);
  OpenCold();
  Content read;
  bucket_.SetBefore([](absl::string_view, absl::string_view) {
    return absl::UnavailableError("no route to the bucket");
  });
  absl::Status status = Read("V", &read);  // The list.
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("no route to the bucket"));
  bucket_.SetBefore([](absl::string_view call, absl::string_view) {
    return call == "range" ? absl::PermissionDeniedError("no key") : absl::OkStatus();
  });
  status = Read("V", &read);  // The block.
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("no key"));
  bucket_.SetBefore(nullptr);
  ASSERT_TRUE(Read("V", &read).ok());
  EXPECT_EQ(read, content);
}

TEST_F(BlocksTest, ADeletedObjectIsDataLossWithItsKey) {
  WriteDay(Series(5, 5, 100));
  for (const auto& [key, body] : bucket_.Objects()) {
    OpenCold();
    ASSERT_TRUE(bucket_.Delete(key).ok());
    Content read;
    const absl::Status status = Read("V", &read);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(key));
    bucket_.Change(key, body);
  }
}

TEST_F(BlocksTest, EveryDamagedByteOfAnObjectIsDataLossOrDoesNotMatter) {
  const Content content = Series(5, 5, 100);
  WriteDay(content);
  int found = 0;
  for (const auto& [key, body] : bucket_.Objects()) {
    for (size_t at = 0; at < body.size(); at += 7) {
      std::string damaged = body;
      damaged[at] ^= 0x10;
      bucket_.Change(key, damaged);
      OpenCold();
      Content read;
      const absl::Status status = Read("", &read);
      if (status.ok()) {
        EXPECT_EQ(read, content) << key << " byte " << at;
      } else {
        EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
        ++found;
      }
    }
    bucket_.Change(key, body);
  }
  EXPECT_GT(found, 100);
}

TEST_F(BlocksTest, FewBlocksStayOpenAndAllAreRead) {
  const Content content = Series(30, 20, 700);
  WriteDay(content, 40'000);
  ASSERT_GT(bucket_.Objects().size(), 8u);
  OpenCold(2);
  Content read;
  ASSERT_TRUE(Read("", &read).ok());
  EXPECT_EQ(read, content);
  EXPECT_LE(days_->open_blocks(), 2u);
}

TEST_F(BlocksTest, AnUploadIsTriedAgainUntilTheCallerGivesUp) {
  int refusals = 2;
  bucket_.SetBefore([&](absl::string_view call, absl::string_view) {
    return call == "put" && refusals-- > 0 ? absl::UnavailableError("slow") : absl::OkStatus();
  });
  EXPECT_EQ(Write({{"a", "b"}}).status(), give_up_);
  refusals = 2;
  give_up_ = absl::OkStatus();
  EXPECT_TRUE(Write({{"a", "b"}}).ok());
}

TEST_F(BlocksTest, KeysThatDoNotAscendAreRefused) {
  BlockWriter writer({.bucket = &bucket_,
                      .next_key = [] { return std::string("k"); },
                      .before_retry = [](int) { return absl::OkStatus(); }});
  ASSERT_TRUE(writer.Add("b", "1").ok());
  EXPECT_EQ(writer.Add("b", "1").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(writer.Add("a", "1").code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tacho::storage
