#include "server/forward/series_ends.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "proto/base/task_end.h"
#include "tests/server/memory_store.h"

namespace tacho::server::forward {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);
constexpr absl::Duration kStaleness = absl::Minutes(5);
constexpr int64_t kMs = 1'000'000;

class SeriesEndsTest : public testing::Test {
 protected:
  SeriesEndsTest() : texts_(*SeriesNaming::Create({}, "forward[0]")) {}

  storage::SeriesPtr Series(uint32_t task, const std::string& metric = "loss") {
    return store_.AddSeries("job", MetricNamed(metric), task, "h1");
  }
  // A row that has come so long before kNow, with that time.
  void Row(const std::vector<storage::SeriesPtr>& series, absl::Duration ago,
           uint32_t attempt = 0) {
    const std::vector<double> values(series.size(), 1);
    store_.AddLatestRow(series, attempt, TimeNs(ago), storage::kNoStep, kNow - ago, values);
  }
  static int64_t TimeNs(absl::Duration ago) { return absl::ToUnixNanos(kNow - ago); }
  void End(uint32_t task, absl::Duration ago, uint32_t attempt = 0) {
    store_.AddEvent({{"job", task, attempt, "h1"}, TimeNs(ago), {}, kExitedKind, "", {}});
  }
  // All that is stored has been sent.
  void SentAll() { ends_.Begin(*store_.get(), &texts_); }
  // (task, attempt, marker's time after that of `ago`) of what has ended.
  std::vector<std::pair<std::string, int64_t>> Find(absl::Time now = kNow) {
    std::vector<std::pair<std::string, int64_t>> found;
    for (const auto& end : ends_.Find(*store_.get(), now, kStaleness)) {
      found.emplace_back(absl::StrCat(promread::ValueOf(end.text->labels, promread::kNameLabel),
                                      " of ", promread::ValueOf(end.text->labels, "task"), " in ",
                                      promread::ValueOf(end.text->labels, "attempt")),
                         end.time_ns);
    }
    return found;
  }

  MemoryStore store_;
  SeriesTexts texts_;
  SeriesEnds ends_;
};

TEST_F(SeriesEndsTest, ASilentSeriesEndsOnceAMillisecondAfterItsLastSample) {
  Row({Series(1)}, absl::Minutes(4));
  Row({Series(2)}, absl::Minutes(6));
  SentAll();
  EXPECT_THAT(Find(),
              UnorderedElementsAre(std::pair("loss of 2 in 0", TimeNs(absl::Minutes(6)) + kMs)));
  EXPECT_THAT(Find(), IsEmpty());
  EXPECT_THAT(Find(kNow + absl::Minutes(2)),
              UnorderedElementsAre(std::pair("loss of 1 in 0", TimeNs(absl::Minutes(4)) + kMs)));
}

TEST_F(SeriesEndsTest, ASeriesThatGoesOnEndsAgain) {
  Row({Series(1)}, absl::Minutes(6));
  SentAll();
  EXPECT_EQ(Find().size(), 1u);
  Row({Series(1)}, absl::Minutes(1));
  SentAll();
  EXPECT_THAT(Find(), IsEmpty());
  EXPECT_EQ(Find(kNow + absl::Minutes(5)).size(), 1u);
}

TEST_F(SeriesEndsTest, ANewerAttemptEndsTheOneBefore) {
  Row({Series(1)}, absl::Seconds(20), 0);
  Row({Series(2)}, absl::Seconds(20), 0);
  SentAll();
  EXPECT_THAT(Find(), IsEmpty());
  Row({Series(1)}, absl::Seconds(5), 1);
  SentAll();
  EXPECT_THAT(Find(),
              UnorderedElementsAre(std::pair("loss of 1 in 0", TimeNs(absl::Seconds(20)) + kMs)));
}

TEST_F(SeriesEndsTest, TheEndOfATaskEndsItsSeriesOnceNothingMoreComes) {
  Row({Series(1)}, absl::Seconds(20));
  Row({Series(2)}, absl::Seconds(20));
  End(1, absl::Seconds(21));  // Agents go on a little.
  SentAll();
  EXPECT_THAT(Find(), IsEmpty()) << "more may be on its way";
  EXPECT_THAT(Find(),
              UnorderedElementsAre(std::pair("loss of 1 in 0", TimeNs(absl::Seconds(20)) + kMs)));
}

TEST_F(SeriesEndsTest, AnEndLongBeforeTheLastSampleIsNone) {
  Row({Series(1)}, absl::Seconds(20));
  End(1, absl::Minutes(3));
  End(1, absl::Seconds(20), 7);  // Of another attempt.
  SentAll();
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Find(), IsEmpty());
}

TEST_F(SeriesEndsTest, WhatItsSenderEndsEndsAtOnce) {
  Row({Series(1)}, absl::Seconds(20));
  Row({Series(2)}, absl::Seconds(20));
  SentAll();
  store_->EndLatest({{Series(2), TimeNs(absl::Seconds(10))}});
  EXPECT_THAT(Find(),
              UnorderedElementsAre(std::pair("loss of 2 in 0", TimeNs(absl::Seconds(20)) + kMs)));
}

TEST_F(SeriesEndsTest, ASeriesThatMovesToAnotherLayoutGoesOn) {
  Row({Series(1)}, absl::Minutes(4));
  SentAll();
  Row({Series(1), Series(1, "accuracy")}, absl::Minutes(1));
  SentAll();
  EXPECT_THAT(Find(kNow + absl::Minutes(2)), IsEmpty());
  EXPECT_THAT(
      Find(kNow + absl::Minutes(5)),
      UnorderedElementsAre(std::pair("loss of 1 in 0", TimeNs(absl::Minutes(1)) + kMs),
                           std::pair("accuracy of 1 in 0", TimeNs(absl::Minutes(1)) + kMs)));
}

TEST_F(SeriesEndsTest, WhatHasNotBeenSentIsWaitedFor) {
  Row({Series(1)}, absl::Minutes(8));
  SentAll();
  Row({Series(1)}, absl::Minutes(7));
  EXPECT_THAT(Find(), IsEmpty());
  SentAll();
  EXPECT_THAT(Find(),
              UnorderedElementsAre(std::pair("loss of 1 in 0", TimeNs(absl::Minutes(7)) + kMs)));
}

}  // namespace
}  // namespace tacho::server::forward
