#include "server/limits/refusal_ledger.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/limits/limit_text.h"
#include "server/limits/series_limiting.h"

namespace tacho::server::limits {
namespace {

using testing::SizeIs;

Refusals Of(std::string job, std::string name, uint64_t series, std::string example = "") {
  return {.job = std::move(job),
          .name = std::move(name),
          .limit = storage::Limit::kLabelValues,
          .series = series,
          .example = std::move(example)};
}

TEST(RefusalLedgerTest, AddsUpByOffenderAndKeepsTheLatestExample) {
  RefusalLedger ledger;
  ledger.Add(Of("a", "id", 2, "first"));
  ledger.Add(Of("b", "id", 4));
  ledger.Add(Of("a", "id", 3, "second"));
  ledger.Add(Of("a", "other", 1));
  const auto all = ledger.Top("", 10);
  ASSERT_THAT(all, SizeIs(3));
  EXPECT_EQ(all[0].job, "a");
  EXPECT_EQ(all[0].series, 5u);
  EXPECT_EQ(all[0].example, "second");
  EXPECT_THAT(ledger.Top("a", 10), SizeIs(2));
  EXPECT_THAT(ledger.Top("", 1), SizeIs(1));
}

// Whoever sends ever new names neither fills memory nor hides the worst offender.
TEST(RefusalLedgerTest, IsBoundedAndTheWorstOffenderStays) {
  RefusalLedger ledger;
  uint64_t total = 0;
  for (int i = 0; i < 5000; ++i) {
    ledger.Add(Of(absl::StrCat("job-", i), "id", 1));
    ledger.Add(Of("worst", "id", 3));
    total += 4;
  }
  const auto all = ledger.Top("", 100'000);
  EXPECT_THAT(all, SizeIs(RefusalLedger::kEntries));
  EXPECT_EQ(all[0].job, "worst");
  EXPECT_EQ(all[0].series, 15'000u);
  EXPECT_EQ(all[0].too_many, 0u);
  uint64_t listed = 0;
  for (const Refusals& one : all) listed += one.series;
  EXPECT_EQ(listed, total) << "what one entry loses another has";
}

TEST(RefusalLedgerTest, TextsAreCutAtACodePoint) {
  RefusalLedger ledger;
  std::string text(kShortTextBytes - 1, 'x');
  ledger.Add(Of("a", "id", 1, text + "é and so on"));
  EXPECT_EQ(ledger.Top("", 1)[0].example, text + "…");
}

TEST(LimitConfigTest, ARuleLeavesOutWhatIsAsOutsideOfIt) {
  config::v1::Limits config;
  config.set_series_per_metric(7);
  config.set_values_per_label(8);
  config.set_action("observe");
  config.add_allowed_labels("chip");
  auto* rule = config.add_rules();
  rule->set_metric("debug/.*");
  rule->set_series_per_metric(1);
  rule->set_values_per_label(-1);
  const auto policy = MakeLimitPolicy(config);
  ASSERT_TRUE(policy.ok()) << policy.status();
  const storage::SeriesLimits& limits = (*policy)->OfRule(0);
  EXPECT_EQ(limits.series_per_metric, 1u);
  EXPECT_EQ(limits.values_per_label, 8u);
  EXPECT_EQ(limits.action, storage::LimitAction::kObserve);
  EXPECT_THAT(limits.allowed_labels, testing::ElementsAre("chip"));
  const storage::Breach breach{.limit = storage::Limit::kMetricSeries, .rule = 0};
  EXPECT_EQ(DescribeLimit(**policy, breach, ""),
            "limits.rules[0].series_per_metric is 1; drop labels or metrics, or raise it");
}

}  // namespace
}  // namespace tacho::server::limits
