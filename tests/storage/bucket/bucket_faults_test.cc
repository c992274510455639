// What the client makes of a service that is slow, busy, broken, or refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/clock.h"
#include "storage/bucket/bucket.h"
#include "storage/bucket/bucket_options.h"
#include "tests/storage/bucket/bucket_under_test.h"
#include "tests/support/fake_object_store.h"

namespace tacho::storage {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::FakeObjectStore;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Fault = FakeObjectStore::Fault;
using Manner = FakeObjectStore::Manner;

class BucketFaults : public ::testing::Test {
 protected:
  void SetUp() override { Open(absl::Seconds(20), absl::Milliseconds(300)); }

  void Open(absl::Duration timeout, absl::Duration slow_after) {
    BucketOptions options = OptionsFor(store_, "s3://tests/p");
    options.timeout = timeout;
    options.slow_after = slow_after;
    options.on_request = [this](const FinishedRequest& request) {
      retries_.emplace_back(request.retry);
      finished_.push_back(absl::StrCat(request.operation, " ", request.code));
      sent_ += request.bytes_sent;
      received_ += request.bytes_received;
    };
    bucket_ = MustOpen(std::move(options));
  }
  // The first `count` requests meet the fault.
  void Break(Fault fault, int count = 1000) {
    auto left = std::make_shared<std::atomic<int>>(count);
    store_.OnRequest(
        [=](const FakeObjectStore::Request&) { return (*left)-- > 0 ? fault : Fault::kNone; });
  }
  std::string Text(const absl::Status& status) { return std::string(status.message()); }

  FakeObjectStore store_{Manner::kAws};
  std::vector<std::string> retries_;
  std::vector<std::string> finished_;
  uint64_t sent_ = 0;
  uint64_t received_ = 0;
  std::unique_ptr<Bucket> bucket_;
};

TEST_F(BucketFaults, ReportsEachRequest) {
  ASSERT_TRUE(bucket_->PutNew("a", "12345").ok());
  EXPECT_EQ(bucket_->Get("a")->body, "12345");
  EXPECT_FALSE(bucket_->PutNew("a", "12345").ok());
  ASSERT_TRUE(bucket_->Delete("a").ok());
  EXPECT_THAT(finished_, ElementsAre("put_new 200", "get 200", "put_new 412", "delete 204"));
  EXPECT_THAT(retries_, Each(IsEmpty()));
  EXPECT_EQ(sent_, 10u);
  EXPECT_GE(received_, 5u);
}

TEST_F(BucketFaults, KeepsItsConnection) {
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(bucket_->Put("a", "x").ok());
  EXPECT_EQ(store_.connections(), 1);
}

TEST_F(BucketFaults, SlowReadIsSentAgainOnAnotherConnection) {
  ASSERT_TRUE(bucket_->Put("a", "x").ok());
  Break(Fault::kStall, 1);
  const absl::Time began = MonotonicNow();
  const auto body = bucket_->GetRange("a", 0, 10);
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(*body, "x");
  EXPECT_LT(MonotonicNow() - began, absl::Seconds(5)) << "the timeout is 20 s";
  EXPECT_THAT(retries_, ElementsAre("", "slow", ""));
  EXPECT_EQ(store_.connections(), 2);
}

TEST_F(BucketFaults, SecondTryWaitsTwiceAsLong) {
  ASSERT_TRUE(bucket_->Put("a", "x").ok());
  Break(Fault::kStall, 2);
  const absl::Time began = MonotonicNow();
  EXPECT_TRUE(bucket_->GetRange("a", 0, 10).ok());
  EXPECT_GE(MonotonicNow() - began, absl::Milliseconds(880)) << "0.3 s and 0.6 s";
  EXPECT_THAT(retries_, ElementsAre("", "slow", "slow", ""));
}

TEST_F(BucketFaults, SilentServiceIsUnavailableInTime) {
  Open(absl::Seconds(1), absl::Milliseconds(200));
  Break(Fault::kStall);
  const absl::Time began = MonotonicNow();
  for (const absl::Status& status :
       {bucket_->GetRange("a", 0, 1).status(), bucket_->PutNew("a", "x").status(),
        bucket_->List("", "").status(), bucket_->Delete("a")}) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(Text(status), HasSubstr("no answer within"));
  }
  EXPECT_LT(MonotonicNow() - began, absl::Seconds(8));
}

TEST_F(BucketFaults, NobodyListensIsUnavailable) {
  BucketOptions options = OptionsFor(store_, "s3://tests/p");
  options.endpoint = "http://127.0.0.1:9";
  options.timeout = absl::Seconds(1);
  const absl::Status status = MustOpen(options)->PutNew("a", "x").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Text(status), HasSubstr("127.0.0.1"));
}

TEST_F(BucketFaults, LostAnswerOfACreationIsFoundOut) {
  Break(Fault::kDropAnswer, 1);
  const absl::Status status = bucket_->PutNew("a", "mine").status();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_EQ(bucket_->Get("a")->body, "mine") << "the caller compares";
}

TEST_F(BucketFaults, LostAnswerOfAReplacementIsFoundOut) {
  const auto tag = bucket_->Put("a", "1");
  Break(Fault::kDropAnswer, 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(bucket_->PutIf("a", *tag, "2").status()));
  EXPECT_EQ(bucket_->Get("a")->body, "2");
}

TEST_F(BucketFaults, StalledAnswerOfACreationIsFoundOut) {
  Break(Fault::kStallAnswer, 1);
  EXPECT_TRUE(absl::IsAlreadyExists(bucket_->PutNew("a", "mine").status()));
}

TEST_F(BucketFaults, LostAnswerOfAnyPutIsRepeated) {
  Break(Fault::kDropAnswer, 1);
  const auto tag = bucket_->Put("a", "x");
  EXPECT_TRUE(tag.ok()) << tag.status();
}

// Somebody else may have created it again meanwhile.
TEST_F(BucketFaults, LostAnswerOfADeletionIsNotRepeated) {
  ASSERT_TRUE(bucket_->Put("a", "x").ok());
  Break(Fault::kStallAnswer, 1);
  EXPECT_TRUE(absl::IsUnavailable(bucket_->Delete("a")));
  EXPECT_THAT(retries_, ElementsAre("", ""));
}

TEST_F(BucketFaults, BusyServiceIsAskedAgain) {
  for (const Fault fault : {Fault::kBusy, Fault::kConflict}) {
    Break(fault, 2);
    retries_.clear();
    const auto tag = bucket_->PutNew(absl::StrCat("k", static_cast<int>(fault)), "x");
    EXPECT_TRUE(tag.ok()) << tag.status();
    EXPECT_THAT(retries_, ElementsAre("busy", "busy", ""));
  }
}

TEST_F(BucketFaults, ServiceThatStaysBusyIsUnavailable) {
  Break(Fault::kBusy);
  const absl::Status status = bucket_->Get("a").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Text(status), HasSubstr("503 SlowDown"));
  EXPECT_THAT(retries_, SizeIs(5));
}

TEST_F(BucketFaults, ConflictIsNoAnswerToACreation) {
  Break(Fault::kConflict);
  EXPECT_TRUE(absl::IsUnavailable(bucket_->PutNew("a", "x").status()));
}

// Ceph 16 says so to some who lost a race, and services that did write say it too.
TEST_F(BucketFaults, ErrorOfAConditionalWriteIsLeftToTheCaller) {
  const auto tag = bucket_->Put("b", "1");
  for (const Fault fault : {Fault::kError, Fault::kErrorButDone}) {
    Break(fault, 1);
    EXPECT_TRUE(absl::IsUnavailable(bucket_->PutNew("a", "x").status()));
    Break(fault, 1);
    EXPECT_TRUE(absl::IsUnavailable(bucket_->PutIf("b", *tag, "2").status()));
  }
  EXPECT_THAT(retries_, Each(IsEmpty()));
  EXPECT_EQ(bucket_->Get("a")->body, "x") << "the second was done";
  EXPECT_EQ(bucket_->Get("b")->body, "2");
}

TEST_F(BucketFaults, ErrorOfAReadIsRepeated) {
  ASSERT_TRUE(bucket_->Put("a", "x").ok());
  for (const Fault fault : {Fault::kError, Fault::kPage, Fault::kDrop, Fault::kHalf}) {
    Break(fault, 1);
    const auto object = bucket_->Get("a");
    ASSERT_TRUE(object.ok()) << object.status();
    EXPECT_EQ(object->body, "x");
  }
}

TEST_F(BucketFaults, HalfAnAnswerIsNeverTakenForOne) {
  ASSERT_TRUE(bucket_->Put("a", std::string(100'000, 'x')).ok());
  Break(Fault::kHalf);
  EXPECT_TRUE(absl::IsUnavailable(bucket_->Get("a").status()));
  EXPECT_TRUE(absl::IsUnavailable(bucket_->GetRange("a", 0, 50'000).status()));
}

TEST_F(BucketFaults, OtherBytesThanAskedForAreRefused) {
  ASSERT_TRUE(bucket_->Put("a", "0123456789").ok());
  Break(Fault::kWrongRange);
  const absl::Status status = bucket_->GetRange("a", 5, 2).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

TEST_F(BucketFaults, ForbiddenNamesTheSourceOfCredentials) {
  Break(Fault::kForbidden);
  const absl::Status status = bucket_->Put("a", "x").status();
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(Text(status), HasSubstr("AccessDenied"));
  EXPECT_THAT(Text(status), HasSubstr("the environment (AWS_ACCESS_KEY_ID)"));
}

TEST_F(BucketFaults, WrongSecretIsForbidden) {
  BucketOptions options = OptionsFor(store_, "s3://tests/p");
  options.environment = [](const char* name) {
    return absl::string_view(name) == "AWS_SECRET_ACCESS_KEY" ? "wrong" : "GOOGTESTKEY";
  };
  const absl::Status status = MustOpen(options)->Put("a", "x").status();
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(Text(status), HasSubstr("SignatureDoesNotMatch"));
}

TEST_F(BucketFaults, WrongClockSaysSo) {
  Break(Fault::kSkewed);
  const absl::Status status = bucket_->Put("a", "x").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(Text(status), HasSubstr("set the clock of this machine"));
}

TEST_F(BucketFaults, WrongRegionNamesTheRightOne) {
  Break(Fault::kElsewhere);
  const absl::Status status = bucket_->Get("a").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(Text(status), HasSubstr("set region to eu-west-1"));
}

TEST_F(BucketFaults, MissingBucketIsNoMissingObject) {
  const auto bucket = MustOpen(OptionsFor(store_, "s3://another"));
  for (const absl::Status& status : {bucket->Get("a").status(), bucket->PutNew("a", "x").status(),
                                     bucket->PutIf("a", "tag", "x").status(),
                                     bucket->List("", "").status(), bucket->Delete("a")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(Text(status), HasSubstr("create the bucket"));
  }
}

TEST_F(BucketFaults, ObjectsOfOthersAreNotListed) {
  store_.Plant("p/good", "x");
  store_.Plant("p/with space", "x");
  store_.Plant("p/a&b<c", "x");
  store_.Plant("p/\xff", "x");
  const auto page = bucket_->List("", "");
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_THAT(page->objects, SizeIs(1));
  EXPECT_EQ(page->objects[0].key, "good");
}

TEST_F(BucketFaults, QuotesTagsIfAsked) {
  std::vector<std::string> tags;
  store_.OnRequest([&](const FakeObjectStore::Request& request) {
    const auto found = request.headers.find("if-match");
    if (found != request.headers.end()) tags.push_back(found->second);
    return Fault::kNone;
  });
  const auto tag = bucket_->Put("a", "1");
  BucketOptions options = OptionsFor(store_, "s3://tests/p");
  options.quote_tags = true;
  const auto next = MustOpen(options)->PutIf("a", *tag, "2");
  ASSERT_TRUE(next.ok()) << next.status();
  ASSERT_TRUE(bucket_->PutIf("a", *next, "3").ok());
  EXPECT_THAT(tags, ElementsAre(absl::StrCat("\"", *tag, "\""), *next));
}

TEST(OpenBucketTest, NamesTheWrongOption) {
  const auto fault = [](BucketOptions options) {
    const auto bucket = OpenBucket(std::move(options));
    EXPECT_TRUE(absl::IsInvalidArgument(bucket.status())) << bucket.status();
    return std::string(bucket.status().message());
  };
  EXPECT_THAT(fault({.url = "http://bucket"}), HasSubstr("expected s3://BUCKET/PREFIX"));
  EXPECT_THAT(fault({.url = "s3://"}), HasSubstr("expected s3://BUCKET/PREFIX"));
  EXPECT_THAT(fault({.url = "s3://bucket/a b"}), HasSubstr("prefix"));
  EXPECT_THAT(fault({.url = "s3://bucket/../other"}), HasSubstr("prefix"));
  EXPECT_THAT(fault({.url = "s3://bucket", .endpoint = "127.0.0.1:80"}), HasSubstr("endpoint"));
  EXPECT_THAT(fault({.url = "s3://bucket", .endpoint = "http://h/path"}), HasSubstr("endpoint"));
  EXPECT_THAT(fault({.url = "s3://bucket", .credentials = "guess"}), HasSubstr("credentials"));
  EXPECT_THAT(fault({.url = "gs://bucket", .credentials = "container"}), HasSubstr("credentials"));
  EXPECT_THAT(fault({.url = "s3://bucket", .timeout = absl::ZeroDuration()}), HasSubstr("timeout"));
}

}  // namespace
}  // namespace tacho::storage
