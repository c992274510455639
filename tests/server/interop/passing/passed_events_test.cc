#include "server/interop/passing/passed_events.h"

#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/interop/passing/passed_series.h"

namespace tacho::server::interop {
namespace {

using testing::HasSubstr;

TEST(PassedEventsTest, ComeBackInSeveralMessages) {
  ForeignEvents write;
  for (int source = 0; source < 3; ++source) {
    write.sources.push_back({{"job", absl::StrCat("job-", source)}, {"host", "h1"}});
  }
  for (size_t i = 0; i < 3'000; ++i) {
    ForeignEvent event{.source = i % 3, .name = "text"};
    event.event.set_kind("text");
    event.event.set_time_unix_ns(static_cast<int64_t>(i));
    event.event.set_message(std::string(500, 'm'));
    write.events.push_back(std::move(event));
  }
  std::vector<uint32_t> all(write.events.size());
  std::iota(all.begin(), all.end(), 0);
  const auto messages = PassedEvents(write, all);
  EXPECT_GT(messages.size(), 2u);
  std::set<int64_t> found;
  for (const auto& message : messages) {
    EXPECT_LE(message.ByteSizeLong(), kPassedBytes + (16 << 10));
    EXPECT_LE(message.sources_size(), 3);
    const auto read = ReadPassedEvents(message);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_GT(read->text_bytes, 500 * read->events.size());
    for (const ForeignEvent& event : read->events) {
      const auto time = event.event.time_unix_ns();
      EXPECT_TRUE(found.insert(time).second);
      EXPECT_EQ(read->sources[event.source], write.sources[static_cast<size_t>(time) % 3]);
      EXPECT_EQ(event.name, "text");
      EXPECT_EQ(event.event.message().size(), 500u);
    }
  }
  EXPECT_EQ(found.size(), write.events.size());
}

TEST(PassedEventsTest, ASourceThatIsNotThereIsRefused) {
  v1::StoreEventsRequest request;
  request.add_events()->set_source(1);
  request.add_sources();
  EXPECT_THAT(std::string(ReadPassedEvents(request).status().message()),
              HasSubstr("events.source: 1 is no index into sources"));
}

}  // namespace
}  // namespace tacho::server::interop
