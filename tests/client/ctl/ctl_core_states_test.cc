// The cores of TPUs that 'hang' shows beside the stacks.
#include <sstream>
#include <string>
#include <vector>

#include "client/ctl/requests/core_states.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/ctl/ctl_fake_query.h"

namespace tacho::ctl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kSecond = 1'000'000'000;

v1::RecordedEvent Core(const std::string& host, int core, const std::string& counter,
                       int64_t seconds = 100) {
  v1::RecordedEvent event;
  event.mutable_source()->set_host(host);
  event.set_time_unix_ns(seconds * kSecond);
  event.set_kind("tpu_core_state");
  auto& fields = *event.mutable_fields();
  fields["core"] = std::to_string(core);
  fields["chip"] = std::to_string(core / 2);
  fields["core_type"] = "TENSOR_CORE";
  fields["fingerprint"] = "01ab";
  fields["pc_0"] = counter;
  return event;
}

std::vector<v1::RecordedEvent> Hang() {
  return {Core("a", 0, "4711"), Core("a", 1, "4711"), Core("b", 2, "0"), Core("b", 3, "4711")};
}

std::string Printed(const std::vector<CoreGroup>& groups) {
  std::ostringstream out;
  Environment env;
  env.out = &out;
  PrintCores(env, groups);
  return out.str();
}

TEST(CoreStatesTest, TheCoreThatIsElsewhereIsNamed) {
  const std::vector<CoreGroup> groups = GroupCores(Hang(), {"a", "b"});
  ASSERT_THAT(groups, SizeIs(2));
  EXPECT_THAT(groups[0].cores, SizeIs(3));
  ASSERT_THAT(groups[1].cores, SizeIs(1));
  EXPECT_EQ(groups[1].cores[0].host, "b");
  const std::string text = Printed(groups);
  EXPECT_THAT(text, HasSubstr("4 cores, 2 kinds"));
  EXPECT_THAT(text, HasSubstr("  3 cores: TENSOR_CORE, program 01ab, at 4711\n"));
  EXPECT_THAT(text, HasSubstr("  1 core unlike most: TENSOR_CORE, program 01ab, at 0: waits for "
                              "input\n    core 2 (chip 1) on b\n"));
}

TEST(CoreStatesTest, OnlyTheNewestStateOfACoreCounts) {
  std::vector<v1::RecordedEvent> events = Hang();
  events.push_back(Core("b", 2, "4711", 200));
  const std::vector<CoreGroup> groups = GroupCores(events, {"a", "b"});
  ASSERT_THAT(groups, SizeIs(1));
  EXPECT_THAT(groups[0].cores, SizeIs(4));
}

TEST(CoreStatesTest, CoresOfOtherHostsAndOtherEventsDoNotCount) {
  std::vector<v1::RecordedEvent> events = Hang();
  events[0].set_kind("tpu_looks_hung");
  EXPECT_THAT(GroupCores(events, {"b"}), SizeIs(2));
  EXPECT_THAT(GroupCores(events, {"c"}), IsEmpty());
  EXPECT_EQ(Printed({}), "");
}

TEST(CoreStatesTest, AsksForTheHostsOfAllTasks) {
  FakeQuery fake;
  for (const v1::RecordedEvent& event : Hang()) *fake.events.add_events() = event;
  v1::TakeStacksResponse stacks;
  stacks.add_groups()->add_members()->set_host("a");
  stacks.add_absent()->set_host("b");
  QueryClient client({.address = fake.address, .security = {}});
  const auto groups = ReadCores(stacks, absl::FromUnixSeconds(300), &client);
  ASSERT_TRUE(groups.ok()) << groups.status();
  EXPECT_THAT(*groups, SizeIs(2));
  EXPECT_EQ(fake.events_request.job(), "hosts");
  EXPECT_EQ(fake.events_request.time().begin_unix_ns(), (300 - 6 * 3600) * kSecond);
  fake.events_status = grpc::Status(grpc::StatusCode::NOT_FOUND, "no job");
  EXPECT_FALSE(ReadCores(stacks, absl::FromUnixSeconds(300), &client).ok());
}

}  // namespace
}  // namespace tacho::ctl
