#include "server/tensorboard/experiment_size.h"

#include <gtest/gtest.h>

namespace tacho::server::tb {
namespace {

TEST(ExperimentSizeTest, WordsAreReadAsTheyAreWritten) {
  for (const uint64_t left_out : {uint64_t{0}, uint64_t{7}, UINT64_MAX}) {
    const ExperimentSize size = {.jobs = 3, .runs = 12, .left_out = left_out};
    const auto read = SizeFromWords(SizeInWords(size));
    ASSERT_TRUE(read.has_value()) << SizeInWords(size);
    EXPECT_EQ(read->jobs, 3u);
    EXPECT_EQ(read->runs, 12u);
    EXPECT_EQ(read->left_out, left_out);
  }
}

TEST(ExperimentSizeTest, OtherTextsAreNoSize) {
  for (const char* text : {"", "3 jobs", "3 jobs with 99999999999999999999 runs.",
                           "3 jobs with 4 runs. And more.", "-3 jobs with 4 runs."}) {
    EXPECT_FALSE(SizeFromWords(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace tacho::server::tb
