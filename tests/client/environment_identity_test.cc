// Job, task and attempt come from the variables that launchers set.
#include "client/environment_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <ostream>
#include <string>

namespace tacho::client {
namespace {

using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

AttemptIdentity Find(const Variables& variables, const std::string& job = "",
                     std::optional<uint32_t> task = {}, std::optional<uint32_t> attempt = {}) {
  return FindIdentity(job, task, attempt, [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

struct Case {
  const char* what;
  Variables variables;
  std::string job;
  uint32_t task = 0;
  uint32_t attempt = 0;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.what; }

class EnvironmentIdentityTest : public testing::TestWithParam<Case> {};

TEST_P(EnvironmentIdentityTest, IsWhatTheLauncherMeans) {
  const AttemptIdentity found = Find(GetParam().variables);
  EXPECT_EQ(found.trouble, "");
  EXPECT_EQ(found.job, GetParam().job);
  EXPECT_EQ(found.task, GetParam().task);
  EXPECT_EQ(found.attempt, GetParam().attempt);
}

const Case kCases[] = {
    {"nothing", {}, ""},
    {"plain", {{"TACHO_JOB", "llm"}, {"TACHO_TASK", "7"}, {"TACHO_ATTEMPT", "2"}}, "llm", 7, 2},
    {"only a name", {{"TACHO_JOB", "llm"}}, "llm"},
    {"an empty variable is an absent one",
     {{"TACHO_JOB", ""}, {"TACHO_TASK", ""}, {"JOBSET_NAME", "set"}, {"JOB_COMPLETION_INDEX", "3"}},
     "set",
     3},
    {"a plain name within a JobSet",
     {{"TACHO_JOB", "llm"}, {"JOBSET_NAME", "set"}, {"JOB_COMPLETION_INDEX", "3"}},
     "llm",
     3},
    {"a JobSet of one job",
     {{"JOBSET_NAME", "set"}, {"JOB_COMPLETION_INDEX", "5"}, {"JOBSET_RESTART_ATTEMPT", "1"}},
     "set",
     5,
     1},
    {"a JobSet of several jobs",
     {{"JOBSET_NAME", "set"},
      {"JOB_COMPLETION_INDEX", "5"},
      {"JOB_INDEX", "3"},
      {"PROCESSES_IN_JOB", "16"}},
     "set",
     53},
    {"the index over all of a JobSet's jobs wins",
     {{"JOBSET_NAME", "set"},
      {"JOB_COMPLETION_INDEX", "5"},
      {"JOB_INDEX", "0"},
      {"JOB_GLOBAL_INDEX", "2"},
      {"PROCESSES_IN_JOB", "16"}},
     "set",
     37},
    {"the first job of a JobSet needs no number of pods",
     {{"JOBSET_NAME", "set"}, {"JOB_COMPLETION_INDEX", "5"}, {"JOB_INDEX", "0"}},
     "set",
     5},
    {"slices of a JobSet on TPUs, each counted from 0",
     {{"JOBSET_NAME", "set"},
      {"JOB_COMPLETION_INDEX", "1"},
      {"TPU_WORKER_ID", "1"},
      {"TPU_WORKER_HOSTNAMES", "a,b,c,d"},
      {"MEGASCALE_SLICE_ID", "2"}},
     "set",
     9},
    {"Slurm",
     {{"SLURM_JOB_NAME", "pretrain"},
      {"SLURM_JOB_ID", "1234"},
      {"SLURM_PROCID", "6"},
      {"SLURM_RESTART_COUNT", "1"}},
     "pretrain-1234",
     6,
     1},
    {"Slurm without a name", {{"SLURM_JOB_ID", "1234"}, {"SLURM_PROCID", "6"}}, "slurm-1234", 6},
    {"torchrun",
     {{"TORCHELASTIC_RUN_ID", "run-9"}, {"RANK", "11"}, {"TORCHELASTIC_RESTART_COUNT", "2"}},
     "run-9",
     11,
     2},
    {"torchrun that nobody gave an id names no job",
     {{"TORCHELASTIC_RUN_ID", "none"}, {"RANK", "11"}},
     "",
     11},
    {"torchrun on each node of a Slurm job: many processes share SLURM_PROCID",
     {{"SLURM_JOB_NAME", "pretrain"},
      {"SLURM_JOB_ID", "1234"},
      {"SLURM_PROCID", "1"},
      {"SLURM_RESTART_COUNT", "1"},
      {"TORCHELASTIC_RUN_ID", "run-9"},
      {"TORCHELASTIC_RESTART_COUNT", "4"},
      {"RANK", "13"}},
     "pretrain-1234",
     13,
     1},
    {"torchrun in each pod of a JobSet",
     {{"JOBSET_NAME", "set"}, {"JOB_COMPLETION_INDEX", "1"}, {"RANK", "13"}, {"WORLD_SIZE", "16"}},
     "set",
     13},
    {"a RANK that is of something else",
     {{"TACHO_JOB", "llm"}, {"RANK", "captain"}, {"SLURM_PROCID", "2"}},
     "llm",
     2},
    {"a TPU of one slice", {{"TPU_NAME", "v4-a"}, {"TPU_WORKER_ID", "3"}}, "v4-a", 3},
    {"a TPU of several slices",
     {{"TPU_NAME", "v4-a"},
      {"TPU_WORKER_ID", "3"},
      {"TPU_WORKER_HOSTNAMES", "a,b,c,d"},
      {"MEGASCALE_SLICE_ID", "1"}},
     "v4-a",
     7},
};

INSTANTIATE_TEST_SUITE_P(Launchers, EnvironmentIdentityTest, testing::ValuesIn(kCases));

TEST(EnvironmentIdentityTest, WhatIsGivenWinsAndItsVariablesAreNotLookedAt) {
  const Variables variables = {
      {"TACHO_JOB", "environment"}, {"TACHO_TASK", "no number"}, {"TACHO_ATTEMPT", "no number"}};
  const AttemptIdentity found = Find(variables, "given", 4, 5);
  EXPECT_EQ(found.trouble, "");
  EXPECT_EQ(found.job, "given");
  EXPECT_EQ(found.task, 4u);
  EXPECT_EQ(found.attempt, 5u);
}

TEST(EnvironmentIdentityTest, WhatIsNoNumberIsNamed) {
  for (const char* value : {"-1", "4294967296", "1x", " 1", "0x10"}) {
    const AttemptIdentity found = Find({{"TACHO_JOB", "j"}, {"SLURM_PROCID", value}});
    EXPECT_THAT(found.trouble, HasSubstr(std::string("SLURM_PROCID=\"") + value)) << value;
  }
  EXPECT_EQ(Find({{"TACHO_TASK", "4294967295"}}).task, 4294967295u);
}

// Two processes that take the same task would mix their rows.
TEST(EnvironmentIdentityTest, ATaskThatCannotBeKnownIsNotGuessed) {
  EXPECT_THAT(Find({{"JOB_COMPLETION_INDEX", "1"}, {"JOB_INDEX", "1"}}).trouble,
              HasSubstr("PROCESSES_IN_JOB"));
  EXPECT_THAT(Find({{"TPU_WORKER_ID", "1"}, {"MEGASCALE_SLICE_ID", "1"}}).trouble,
              HasSubstr("TPU_WORKER_HOSTNAMES"));
  EXPECT_THAT(
      Find({{"JOB_COMPLETION_INDEX", "1"}, {"JOB_INDEX", "70000"}, {"PROCESSES_IN_JOB", "70000"}})
          .trouble,
      HasSubstr("TACHO_TASK"));
}

}  // namespace
}  // namespace tacho::client
