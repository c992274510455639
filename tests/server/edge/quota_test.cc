#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "prometheus/registry.h"
#include "server/edge/memory_budget.h"
#include "server/edge/quotas.h"
#include "server/edge/token_bucket.h"

namespace tacho::server::edge {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kNow = 1000 * kSecond;
constexpr Rate kRate = {.per_second = 100, .burst_ns = 2 * kSecond};

TEST(TokenBucketTest, BurstIsFreeAndTheRestIsPaidForWithTime) {
  TokenBucket bucket;
  EXPECT_EQ(bucket.Take(200, kRate, kNow), 0);
  EXPECT_EQ(bucket.Take(50, kRate, kNow), kSecond / 2);
  EXPECT_EQ(bucket.Take(50, kRate, kNow), kSecond) << "who comes meanwhile waits longer";
  EXPECT_EQ(bucket.Take(0, kRate, kNow + kSecond), 0) << "paid";
  EXPECT_EQ(bucket.Take(200, kRate, kNow + 100 * kSecond), 0) << "full again, and no fuller";
  EXPECT_GT(bucket.Take(1, kRate, kNow + 100 * kSecond), 0);
}

TEST(TokenBucketTest, NumbersFromOutsideDoNotOverflow) {
  TokenBucket bucket;
  EXPECT_EQ(bucket.Take(UINT64_MAX, {.per_second = 0}, kNow), 0);
  EXPECT_LE(bucket.Take(UINT64_MAX, {.per_second = 1}, kNow), TokenBucket::kMaxCostNs);
  for (int i = 0; i < 1000; ++i) EXPECT_GT(bucket.Take(UINT64_MAX, {.per_second = 1}, kNow), 0);
}

TEST(TokenBucketTest, ManyTakersTogetherKeepToTheRate) {
  TokenBucket bucket;
  std::vector<std::thread> takers;
  for (int i = 0; i < 4; ++i) {
    takers.emplace_back([&bucket] {
      for (int n = 0; n < 1000; ++n) bucket.Take(1, kRate, kNow);
    });
  }
  for (auto& taker : takers) taker.join();
  EXPECT_EQ(bucket.Take(0, kRate, kNow), 38 * kSecond) << "4,000 taken, 200 free, 100 a second";
}

TEST(TokenBucketsTest, ABucketOutlivesItsHolderUntilItIsFullAgain) {
  TokenBuckets registry;
  registry.Find("agent", kRate, kNow)->Take(300, kRate, kNow);
  EXPECT_EQ(registry.Find("agent", kRate, kNow)->Take(0, kRate, kNow), kSecond);
  const auto held = registry.Find("held", kRate, kNow);
  for (int i = 0; i < 100'000; ++i) registry.Find(std::to_string(i), kRate, kNow);
  EXPECT_LT(registry.size(), 3000u) << "names that took nothing are forgotten";
  EXPECT_EQ(registry.Find("agent", kRate, kNow)->Take(0, kRate, kNow), kSecond);
  EXPECT_EQ(registry.Find("held", kRate, kNow), held);
}

TEST(MemoryBudgetTest, PressureGrowsInOrder) {
  uint64_t used = 0;
  MemoryBudget budget({.budget_bytes = 1000, .used = [&used] { return used; }});
  const auto at = [&](uint64_t bytes) {
    used = bytes;
    budget.Look();
    return budget.pressure();
  };
  EXPECT_EQ(at(799), Pressure::kNone);
  EXPECT_EQ(at(800), Pressure::kHoldBack);
  EXPECT_EQ(at(900), Pressure::kSlowDown);
  EXPECT_EQ(at(950), Pressure::kRefuse);
  EXPECT_EQ(at(5000), Pressure::kRefuse);
  EXPECT_EQ(at(1), Pressure::kNone);
}

TEST(MemoryBudgetTest, ResidentMemoryIsWhatWasTouched) {
  const uint64_t before = ResidentBytes();
  ASSERT_GT(before, 0u);
  std::vector<char> touched(64 << 20, 1);
  EXPECT_GT(ResidentBytes(), before + (48u << 20)) << touched.back();
  EXPECT_GT(UsualBudget(), before);
}

TEST(QuotasTest, PressureLeavesAnEighthOfWhatMayWait) {
  prometheus::Registry registry;
  config::v1::Quotas config;
  config.set_burst(kSecond);
  config.set_memory_bytes(1000);
  config.set_stream_pending_bytes(8000);
  Quotas quotas({.config = config, .queue_bytes = 32'000, .registry = &registry, .resident = [] {
                   return uint64_t{850};
                 }});
  quotas.LookAtMemory();
  EXPECT_EQ(quotas.stream_pending_bytes(), 1000u);
  EXPECT_EQ(quotas.pending_bytes(), 2000u);
  EXPECT_FALSE(quotas.IsFull(2000));
  EXPECT_TRUE(quotas.IsFull(2001));
  EXPECT_EQ(quotas.Charge(1'000'000, nullptr, nullptr).limit, Quotas::Limit::kNone);
  EXPECT_TRUE(quotas.CheckNewStream().ok());
}

TEST(QuotasTest, WhatWaitsForTheBucketIsNoLoadOnTheDiskUntilThereIsTooMuch) {
  prometheus::Registry registry;
  config::v1::Quotas config;
  config.set_burst(kSecond);
  config.set_stream_pending_bytes(8000);
  uint64_t unshipped = 0;
  uint64_t queued = 0;
  Quotas quotas({.config = config,
                 .queue_bytes = 32'000,
                 .registry = &registry,
                 .unshipped = [&unshipped] { return unshipped; },
                 .max_unshipped = 1'000'000,
                 .queued = [&queued] { return queued; }});
  EXPECT_TRUE(quotas.waits_for_bucket());
  EXPECT_EQ(quotas.stream_pending_bytes(), 32'000u);
  EXPECT_EQ(quotas.pending_bytes(), 16'000u);
  unshipped = 999'999;
  // Messages are packed on their way: they may be far more than what waits in the end.
  EXPECT_FALSE(quotas.IsFull(50'000'000));
  queued = 16'001;
  EXPECT_TRUE(quotas.IsFull(20'000));
  queued = 0;
  unshipped = 1'000'000;
  EXPECT_TRUE(quotas.IsFull(1));
  EXPECT_FALSE(quotas.IsFull(0));
}

TEST(QuotasTest, AReloadThatCannotBeIsRefusedAndChangesNothing) {
  prometheus::Registry registry;
  Quotas quotas({.queue_bytes = 1000, .registry = &registry});
  config::v1::Collector config;
  config.mutable_quotas()->set_pending_bytes(1001);
  const auto refused = quotas.Prepare(config);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()),
              testing::HasSubstr("storage.journal_queue_bytes"));
  EXPECT_EQ(quotas.pending_bytes(), 500u);
  config.mutable_quotas()->set_pending_bytes(900);
  const auto change = quotas.Prepare(config);
  ASSERT_TRUE(change.ok());
  EXPECT_EQ(quotas.pending_bytes(), 500u) << "not before it is applied";
  (*change)();
  EXPECT_EQ(quotas.pending_bytes(), 900u);
}

}  // namespace
}  // namespace tacho::server::edge
