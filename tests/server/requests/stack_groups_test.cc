#include "server/requests/stack_groups.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tacho::server::requests {
namespace {

class StackGroupsTest : public testing::Test {
 protected:
  // Frames are "directory/file:function:line", the innermost first.
  void Add(uint32_t task, const std::vector<std::vector<std::string>>& frames,
           v1::StackOrigin origin = v1::STACK_ORIGIN_PYTHON) {
    v1::TaskStacks& stacks = stacks_.emplace_back();
    stacks.set_task(task);
    stacks.set_pid(1000 + task);
    stacks.set_origin(origin);
    for (const auto& frame : frames) {
      v1::StackFrame* const added = stacks.add_main();
      added->set_file(frame[0]);
      added->set_function(frame[1]);
      added->set_line(static_cast<uint32_t>(std::stoi(frame[2])));
    }
    tasks_.push_back({.task = task, .host = absl::StrCat("host-", task), .untrusted = &stacks});
  }

  std::deque<v1::TaskStacks> stacks_;
  std::vector<TaskOnHost> tasks_;
};

TEST_F(StackGroupsTest, PutsTheLargestFirstWhateverLinesAndDirectories) {
  Add(5, {{"/a/loop.py", "load", "3"}, {"/a/loop.py", "main", "9"}});
  Add(0, {{"/a/loop.py", "wait", "10"}, {"/a/loop.py", "main", "9"}});
  Add(3, {{"/b/c/loop.py", "wait", "11"}, {"loop.py", "main", "8"}});
  Add(1, {{"/a/loop.py", "wait", "10"}, {"/a/loop.py", "main", "9"}});
  const auto groups = GroupStacks(tasks_);
  ASSERT_EQ(groups.size(), 2);
  EXPECT_EQ(TaskRanges(groups[0], 100), "0-1,3");
  EXPECT_EQ(groups[0].frames(0), "loop.py:wait");
  EXPECT_EQ(groups[0].members(2).line(), 11);
  EXPECT_EQ(TaskRanges(groups[1], 100), "5");
  EXPECT_EQ(groups[1].members(0).host(), "host-5");
}

TEST_F(StackGroupsTest, TellsOriginsAndOuterFramesApart) {
  Add(0, {{"a.py", "f", "1"}, {"a.py", "train", "1"}});
  Add(1, {{"a.py", "f", "1"}, {"a.py", "evaluate", "1"}});
  Add(2, {{"a.py", "f", "1"}, {"a.py", "train", "1"}}, v1::STACK_ORIGIN_COMMAND);
  EXPECT_EQ(GroupStacks(tasks_).size(), 3);
}

TEST_F(StackGroupsTest, GroupsByWhereThreadsWaitIfThereIsNoStack) {
  for (uint32_t task = 0; task < 3; ++task) Add(task, {}, v1::STACK_ORIGIN_KERNEL);
  stacks_[0].set_waits_in("futex_wait");
  stacks_[1].set_waits_in("futex_wait");
  stacks_[2].set_state("R");
  const auto groups = GroupStacks(tasks_);
  ASSERT_EQ(groups.size(), 2);
  EXPECT_EQ(groups[0].frames(0), "futex_wait");
  EXPECT_EQ(groups[1].frames(0), "(no stack; state R)");
}

TEST_F(StackGroupsTest, BoundsWhatAgentsSend) {
  const std::string long_name = std::string(100'000, 'x') + "\x1b[2J";
  for (uint32_t task = 0; task < 2 * kMaxGroups; ++task) {
    Add(task, {{absl::StrCat("f", task), long_name, "1"}, {"a.py", "\x1b[2J\n", "1"}});
  }
  for (int i = 0; i < 10 * kMaxGroupFrames; ++i) stacks_[0].add_main()->set_function("f");
  const auto groups = GroupStacks(tasks_);
  ASSERT_EQ(groups.size(), kMaxGroups);
  EXPECT_EQ(groups.back().members_size(), kMaxGroups + 1);
  EXPECT_EQ(groups.back().frames(0), "(various stacks)");
  EXPECT_EQ(groups[0].frames_size(), kMaxGroupFrames);
  EXPECT_EQ(groups[0].frames(1), "a.py:?[2J?");
  EXPECT_LT(groups[0].frames(0).size(), 600);
}

TEST_F(StackGroupsTest, TheEventKeepsToItsLimitsAndNamesTheOddOnes) {
  for (uint32_t task = 0; task < 5000; ++task) {
    // Every other task, so that no range is short to say; and some kinds of stacks.
    Add(2 * task, {{"a.py", task < 4000 ? "wait" : absl::StrCat("f", task % 50), "1"}});
  }
  v1::TakeStacksResponse response;
  response.set_job("job");
  response.set_attempt(3);
  response.set_taken_unix_ns(17);
  for (auto& group : GroupStacks(tasks_)) *response.add_groups() = group;
  response.add_absent()->set_task(1);
  const storage::Event event = ToEvent(response, "Stalled");
  EXPECT_EQ(event.source.job, "job");
  EXPECT_EQ(event.source.attempt, 3);
  EXPECT_EQ(event.time_ns, 17);
  EXPECT_LE(event.fields.size(), 32);
  for (const auto& [name, value] : event.fields) EXPECT_LE(value.size(), 1024) << name;
  EXPECT_LE(event.message.size(), 1024);
  EXPECT_EQ(event.fields.at("groups"), "51");
  EXPECT_EQ(event.fields.at("group.1.stack"), "a.py:wait");
  EXPECT_NE(event.message.find("stacks of 5000 of 5001 tasks are of 51 kinds; unlike most: 8000 on "
                               "host-8000"),
            std::string::npos)
      << event.message;
}

}  // namespace
}  // namespace tacho::server::requests
