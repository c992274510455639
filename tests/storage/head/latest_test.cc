// The newest sample of a series, from whatever holds it: open rows, headers of columns, columns.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "proto/base/stale_marker.h"
#include "storage/codec/keys.h"
#include "tests/storage/store_fixture.h"

namespace tacho::storage {
namespace {

constexpr int64_t kFirst = 100 * kDayNs;

class LatestTest : public StoreFixture {
 protected:
  // Rows of a random attempt about the last midnights, in any order, with and without values.
  void AppendSome(std::mt19937* random) {
    const auto below = [random](uint32_t end) { return static_cast<int64_t>((*random)() % end); };
    const auto attempt = static_cast<uint32_t>(below(3));
    const LayoutPtr layout = Register(Definition("job", {"a", "b"}, 0, attempt));
    std::vector<int64_t> times;
    std::vector<int64_t> steps;
    std::vector<double> values;
    for (int64_t row = 1 + below(8); row > 0; --row) {
      // Few different ones, so that they meet.
      times.push_back(kFirst + below(3) * kDayNs + below(12) * kDayNs / 12);
      steps.push_back(below(4) == 0 ? kNoStep : below(3));
      for (int column = 0; column < 2; ++column) {
        const bool none = below(3) == 0;
        values.push_back(none ? StaleMarker() : static_cast<double>(below(1'000'000)));
      }
    }
    ASSERT_TRUE(Append(layout, times, steps, values).ok());
  }

  void ExpectLatestAsRead(const std::string& metric) {
    const SeriesPtr series = Find("job", metric);
    const SampleBlock all = ReadAll(series);
    const auto latest = store_->Latest(series);
    ASSERT_TRUE(latest.ok()) << latest.status();
    ASSERT_EQ(latest->has_value(), all.size() > 0);
    if (all.size() == 0) return;
    EXPECT_EQ((*latest)->time_ns, all.times.back());
    EXPECT_EQ((*latest)->attempt, all.attempts.back());
    EXPECT_EQ((*latest)->step, all.steps.back());
    EXPECT_EQ((*latest)->value, all.values.back());
  }
};

TEST_F(LatestTest, OfSealedRowsItIsTheLastThatIsRead) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    options_.path = "/store-" + std::to_string(seed);
    Reopen();
    for (int i = 0; i < 5; ++i) {
      AppendSome(&random);
      if (random() % 2 == 0) Reopen();
    }
    Reopen();
    ExpectLatestAsRead("a");
    ExpectLatestAsRead("b");
  }
}

}  // namespace
}  // namespace tacho::storage
