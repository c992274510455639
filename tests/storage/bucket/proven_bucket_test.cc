// The probe comes with the first write, once, and a bucket that fails it is not written.
#include "storage/bucket/proven_bucket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/storage/bucket/bucket_under_test.h"
#include "tests/support/fake_object_store.h"

namespace tacho::storage {
namespace {

using testing::FakeObjectStore;
using ::testing::HasSubstr;
using Fault = FakeObjectStore::Fault;
using Manner = FakeObjectStore::Manner;

class ProvenBucketTest : public ::testing::Test {
 protected:
  std::unique_ptr<ProvenBucket> Open(const FakeObjectStore& store) {
    ProvenBucket::Options options;
    options.bucket = OptionsFor(store, "s3://tests");
    options.on_report = [this](const ProbeReport&) { ++reports_; };
    options.monotonic = [this] { return now_; };
    auto bucket = ProvenBucket::Open(std::move(options));
    EXPECT_TRUE(bucket.ok()) << bucket.status();
    return *std::move(bucket);
  }

  int reports_ = 0;
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(ProvenBucketTest, ReadsDoNotProbeAndWritesProbeOnce) {
  FakeObjectStore store(Manner::kAws);
  store.Plant("there", "before");
  const auto bucket = Open(store);
  EXPECT_EQ(bucket->Get("there")->body, "before");
  EXPECT_EQ(bucket->GetRange("there", 1, 3).value_or(""), "efo");
  EXPECT_EQ(bucket->List("", "")->objects.size(), 1u);
  EXPECT_EQ(store.requests(), 3);
  EXPECT_EQ(reports_, 0);

  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back(
        [&, i] { EXPECT_TRUE(bucket->PutNew("new" + std::to_string(i), "x").ok()); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(reports_, 1);
  const int requests = store.requests();
  const auto tag = bucket->Put("there", "after");
  ASSERT_TRUE(tag.ok()) << tag.status();
  EXPECT_TRUE(bucket->PutIf("there", *tag, "again").ok());
  EXPECT_TRUE(bucket->Delete("there").ok());
  EXPECT_EQ(store.requests(), requests + 3);
}

TEST_F(ProvenBucketTest, ABucketThatCannotReplaceIsNotWritten) {
  const FakeObjectStore store(Manner::kCeph16Versioned);
  const auto bucket = Open(store);
  const absl::Status refused = bucket->PutNew("new", "x").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("Ceph bucket with versions"));
  EXPECT_TRUE(absl::IsNotFound(bucket->Get("new").status()));
  // It is not asked again at once, but later.
  const int requests = store.requests();
  EXPECT_FALSE(bucket->Delete("new").ok());
  EXPECT_EQ(store.requests(), requests);
  now_ += ProvenBucket::kPause;
  EXPECT_FALSE(bucket->Delete("new").ok());
  EXPECT_EQ(reports_, 2);
}

TEST_F(ProvenBucketTest, TagsAreQuotedWhereTheProbeFoundThatOut) {
  FakeObjectStore store(Manner::kAws);
  store.OnRequest([](const FakeObjectStore::Request& request) {
    const auto tag = request.headers.find("if-match");
    return tag != request.headers.end() && tag->second[0] != '"' ? Fault::kForbidden : Fault::kNone;
  });
  const auto bucket = Open(store);
  const auto tag = bucket->Put("one", "1");
  ASSERT_TRUE(tag.ok()) << tag.status();
  EXPECT_TRUE(bucket->PutIf("one", *tag, "2").ok());
}

TEST_F(ProvenBucketTest, ABucketThatIsAwayIsProbedByTheNextWrite) {
  FakeObjectStore store(Manner::kAws);
  const auto bucket = Open(store);
  store.OnRequest([](const auto&) { return Fault::kForbidden; });
  EXPECT_TRUE(absl::IsPermissionDenied(bucket->Put("new", "x").status()));
  store.OnRequest(nullptr);
  EXPECT_TRUE(bucket->Put("new", "x").ok());
  EXPECT_EQ(reports_, 1);
}

// A service in trouble is no unfit one: a takeover must not wait for ten minutes because of it.
TEST_F(ProvenBucketTest, AnswersThatAreNotClearAreAskedForAgainAtOnce) {
  FakeObjectStore store(Manner::kAws);
  std::atomic<bool> busy = true;
  store.OnRequest([&busy](const FakeObjectStore::Request& request) {
    return busy && request.headers.count("if-none-match") > 0 ? Fault::kError : Fault::kNone;
  });
  ProvenBucket::Options options;
  options.bucket = OptionsFor(store, "s3://tests");
  options.to_share = true;
  options.monotonic = [this] { return now_; };
  const auto bucket = *ProvenBucket::Open(std::move(options));
  const absl::Status unclear = bucket->Prove();
  EXPECT_TRUE(absl::IsUnavailable(unclear)) << unclear;
  busy = false;
  EXPECT_TRUE(bucket->PutNew("new", "x").ok());
}

}  // namespace
}  // namespace tacho::storage
