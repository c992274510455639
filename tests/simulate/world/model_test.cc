// The model and retention: which rows may be gone, and which must be.
#include "tests/simulate/world/model.h"

#include <cstdint>
#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace tacho::simulate {
namespace {

constexpr Model::Source kSource = {0, 1};

class ModelTest : public ::testing::Test {
 protected:
  // One row at each of these times, acknowledged.
  ModelTest() {
    for (const int64_t time_ns : {100, 200, 300}) {
      const uint64_t number = model_.Made(kSource) + 1;
      model_.Make(kSource, number, time_ns, /*right_time=*/true);
      model_.Appended(kSource, number, number);
    }
    model_.Trimmed(0, 4);
  }
  // A query returns the rows from `first` on. What the model says of that, and how much is missing.
  Model::Compared Query(uint64_t first) {
    Model::Found found;
    for (uint64_t number = first; number <= 3; ++number) {
      for (int column = 0; column < kColumns; ++column) {
        const double value = ValueOf(0, 1, number, column);
        std::string wrong = model_.FoundSample(kSource, number, column,
                                               static_cast<int64_t>(number) * 100, value, &found);
        if (!wrong.empty()) return {.wrong = std::move(wrong), .example = ""};
      }
    }
    return model_.Compare(found, model_.Acknowledged());
  }

  Model model_;
};

TEST_F(ModelTest, WhatWasReturnedMustStayUntilRetentionReachesIt) {
  EXPECT_EQ(Query(1).wrong, "");
  model_.Expire(/*may=*/150, /*must=*/0);
  const Model::Compared dropped = Query(2);
  EXPECT_EQ(dropped.wrong, "");
  EXPECT_EQ(dropped.missing, 0u);
  EXPECT_EQ(Query(3).wrong, "row 2 of source 1 of agent 0 was returned before, and is gone");
}

TEST_F(ModelTest, WhatWasNeverReturnedIsMissingUntilRetentionReachesIt) {
  model_.Expire(/*may=*/150, /*must=*/0);
  EXPECT_EQ(Query(3).missing, static_cast<uint64_t>(kColumns));
}

TEST_F(ModelTest, WhatRetentionShouldLongHaveDroppedMustBeGone) {
  model_.Expire(/*may=*/250, /*must=*/150);
  EXPECT_EQ(Query(2).wrong, "");
  EXPECT_NE(Query(1).wrong.find("row 1 of source 1 of agent 0 is still there"), std::string::npos);
}

}  // namespace
}  // namespace tacho::simulate
