#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/sources/tpu/tpu_troubles.h"
#include "tests/agent/recording_sink.h"

namespace tacho::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kSlice[] = "slice.error.detected.gauge";
constexpr char kMegascale[] = "megascale.error.detected.gauge";

class TpuErrorsTest : public ::testing::Test {
 protected:
  using Gauges = std::map<std::string, std::vector<TpuPoint>>;

  static TpuPoint Point(const std::string& type, double value) {
    TpuPoint point;
    point.labels = {{"error_type", type}};
    point.value = value;
    return point;
  }
  // The kinds of the events that this look reports.
  std::vector<std::string> Tell(const Gauges& gauges, bool nobody_up = false) {
    testing::RecordingSink sink;
    ChipEvents events("hosts", "host-a");
    is_new_ = errors_.Tell(absl::UnixEpoch(), gauges, nobody_up, &events);
    events.Flush(&sink);
    std::vector<std::string> kinds;
    messages_.clear();
    for (const v1::Event& event : sink.events) {
      kinds.push_back(absl::StrCat(event.kind(), " ", event.fields().at("error_type")));
      messages_.push_back(event.message());
    }
    return kinds;
  }

  TpuErrors errors_;
  bool is_new_ = false;
  std::vector<std::string> messages_;
};

TEST_F(TpuErrorsTest, SliceAndMegascaleAreKindsOfTheirOwn) {
  EXPECT_THAT(Tell({{kSlice, {Point("ICI_LINK_DOWN", 1)}}, {kMegascale, {Point("HANG", 1)}}}),
              ElementsAre("tpu_megascale_error HANG", "tpu_slice_error ICI_LINK_DOWN"));
  EXPECT_THAT(messages_, ElementsAre(HasSubstr("between slices: HANG"),
                                     HasSubstr("of the slice: ICI_LINK_DOWN")));
  EXPECT_TRUE(is_new_);
  EXPECT_EQ(errors_.Count(kSlice), 1u);
  EXPECT_EQ(errors_.Count(kMegascale), 1u);
  EXPECT_THAT(Tell({{kSlice, {Point("ICI_LINK_DOWN", 0)}}, {kMegascale, {Point("HANG", 1)}}}),
              ElementsAre("tpu_slice_error_cleared ICI_LINK_DOWN"));
  EXPECT_FALSE(is_new_);
  EXPECT_EQ(errors_.Count(kSlice), 0u);
}

TEST_F(TpuErrorsTest, ErrorOnSeveralPortsIsOne) {
  EXPECT_THAT(Tell({{kSlice, {Point("A", 1), Point("A", 1), Point("B", 1)}}}),
              ElementsAre("tpu_slice_error A", "tpu_slice_error B"));
  EXPECT_EQ(errors_.Count(kSlice), 2u);
  // One port has seen it end before the other: it lasts.
  EXPECT_THAT(Tell({{kSlice, {Point("A", 0), Point("A", 1), Point("B", 1)}}}), IsEmpty());
}

TEST_F(TpuErrorsTest, GaugeThatNobodyToldStaysUntilNobodyIsThere) {
  Tell({{kSlice, {Point("A", 1)}}});
  EXPECT_THAT(Tell({}), IsEmpty());
  EXPECT_EQ(errors_.Count(kSlice), 1u);
  EXPECT_THAT(Tell({}, true), ElementsAre("tpu_slice_error_cleared A"));
}

TEST_F(TpuErrorsTest, ErrorThatIsNoLongerListedIsOver) {
  Tell({{kSlice, {Point("A", 1)}}});
  EXPECT_THAT(Tell({{kSlice, {}}}), ElementsAre("tpu_slice_error_cleared A"));
}

TEST_F(TpuErrorsTest, MadeUpLabelsDoNotFillTheMemory) {
  Gauges gauges;
  for (size_t i = 0; i < TpuErrors::kMaxErrors + 5; ++i) {
    gauges[kSlice].push_back(Point(absl::StrCat("type", i), 1));
  }
  Tell(gauges);
  EXPECT_EQ(errors_.Count(kSlice), TpuErrors::kMaxErrors);
}

}  // namespace
}  // namespace tacho::agent
