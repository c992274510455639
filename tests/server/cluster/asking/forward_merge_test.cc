#include "server/cluster/asking/forward_merge.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/query/lists/job_position.h"

namespace tacho::server::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint32_t kShards = 3;
constexpr int64_t kActiveSince = 1'000'000;

class ForwardMergeTest : public testing::Test {
 protected:
  ForwardMergeTest() : membership_(MakeMembership()) {
    asked_.set_page_token(query::PageTokenOf({.active_since_ns = kActiveSince, .name = ""}));
  }

  static Membership MakeMembership() {
    config::v1::Collector config;
    for (const char* const member : {"a:1", "b:1", "c:1"}) {
      config.mutable_cluster()->add_members(member);
    }
    auto membership = Membership::Make(config, "b");
    EXPECT_TRUE(membership.ok()) << membership.status();
    return *std::move(membership);
  }

  // The n-th name that belongs to the shard.
  std::string JobOf(uint32_t shard, int n = 0) const {
    for (int i = 0;; ++i) {
      std::string name = absl::StrCat("job-", i);
      if (membership_.ShardOf(name) == shard && n-- == 0) return name;
    }
  }

  template <typename Response>
  static std::vector<Answered<Response>> Answers() {
    std::vector<Answered<Response>> answers(kShards);
    for (uint32_t shard = 0; shard < kShards; ++shard) answers[shard].shard = shard;
    return answers;
  }
  static void AddJob(const std::string& name, int64_t seen_ns,
                     Answered<v1::ListJobsResponse>* answer) {
    v1::Job* const job = answer->response.add_jobs();
    job->set_name(name);
    job->set_first_seen_unix_ns(seen_ns == 0 ? 0 : 1);
    job->set_last_seen_unix_ns(seen_ns);
  }
  // The answer goes on behind this job.
  static void EndPage(const std::string& name, int64_t seen_ns,
                      Answered<v1::ListJobsResponse>* answer) {
    answer->response.set_next_page_token(
        query::PageTokenOf(query::JobPosition::Of(kActiveSince, seen_ns, name)));
  }
  static std::vector<std::string> NamesOf(const v1::ListJobsResponse& response) {
    std::vector<std::string> names;
    for (const v1::Job& job : response.jobs()) names.push_back(job.name());
    return names;
  }

  const Membership membership_;
  v1::ListJobsRequest asked_;
};

TEST_F(ForwardMergeTest, TheFirstPageFixesWhichJobsAreActive) {
  const absl::Time now = absl::FromUnixSeconds(1'000);
  v1::ListJobsRequest request;
  request.set_page_size(7);
  const v1::ListJobsRequest asked = JobsAsked(request, now);
  const auto position = query::ReadPageToken(asked.page_token());
  ASSERT_TRUE(position.ok());
  EXPECT_EQ(position->active_since_ns, absl::ToUnixNanos(now - absl::Minutes(5)));
  EXPECT_EQ(asked.page_size(), 7);
  EXPECT_EQ(JobsAsked(asked, now + absl::Minutes(1)).page_token(), asked.page_token());
}

TEST_F(ForwardMergeTest, JobsComeInTheOrderOfOneCollector) {
  auto answers = Answers<v1::ListJobsResponse>();
  const std::string first = std::min(JobOf(0), JobOf(2));
  const std::string second = std::max(JobOf(0), JobOf(2));
  AddJob(JobOf(0), kActiveSince + 5, &answers[0]);
  AddJob(JobOf(0, 1), 300, &answers[0]);
  AddJob(JobOf(1), 400, &answers[1]);
  AddJob(JobOf(1, 1), 0, &answers[1]);  // Only refused rows are known.
  AddJob(JobOf(2), kActiveSince + 9, &answers[2]);
  v1::ListJobsResponse merged;
  ASSERT_TRUE(MergeJobs(membership_, asked_, &answers, &merged).ok());
  EXPECT_THAT(NamesOf(merged), ElementsAre(first, second, JobOf(1), JobOf(0, 1), JobOf(1, 1)));
  EXPECT_THAT(merged.next_page_token(), IsEmpty());
}

TEST_F(ForwardMergeTest, APageIsCutAndTheNextOneFollowsIt) {
  auto answers = Answers<v1::ListJobsResponse>();
  AddJob(JobOf(0), 500, &answers[0]);
  AddJob(JobOf(0, 1), 300, &answers[0]);
  AddJob(JobOf(1), 400, &answers[1]);
  asked_.set_page_size(2);
  v1::ListJobsResponse merged;
  ASSERT_TRUE(MergeJobs(membership_, asked_, &answers, &merged).ok());
  EXPECT_THAT(NamesOf(merged), ElementsAre(JobOf(0), JobOf(1)));
  const auto end = query::ReadPageToken(merged.next_page_token());
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end->name, JobOf(1));
  EXPECT_EQ(end->seen_ns, 400);
  EXPECT_EQ(end->active_since_ns, kActiveSince);
}

TEST_F(ForwardMergeTest, NothingIsListedBehindTheEndOfAPageThatGoesOn) {
  auto answers = Answers<v1::ListJobsResponse>();
  AddJob(JobOf(0), 500, &answers[0]);
  EndPage(JobOf(0), 500, &answers[0]);
  AddJob(JobOf(1), 400, &answers[1]);  // A job of member 0 with 450 may come.
  v1::ListJobsResponse merged;
  ASSERT_TRUE(MergeJobs(membership_, asked_, &answers, &merged).ok());
  EXPECT_THAT(NamesOf(merged), ElementsAre(JobOf(0)));
  const auto end = query::ReadPageToken(merged.next_page_token());
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end->name, JobOf(0));
}

TEST_F(ForwardMergeTest, OnlyTheMemberThatKeepsAJobListsIt) {
  auto answers = Answers<v1::ListJobsResponse>();
  AddJob(JobOf(1), 0, &answers[0]);  // Rows of it were sent to the wrong member.
  AddJob(JobOf(1), 400, &answers[1]);
  v1::ListJobsResponse merged;
  ASSERT_TRUE(MergeJobs(membership_, asked_, &answers, &merged).ok());
  ASSERT_THAT(NamesOf(merged), ElementsAre(JobOf(1)));
  EXPECT_EQ(merged.jobs(0).last_seen_unix_ns(), 400);
}

TEST_F(ForwardMergeTest, WithoutTheAnswerOfOneMemberThereIsNone) {
  auto answers = Answers<v1::ListJobsResponse>();
  AddJob(JobOf(0), 500, &answers[0]);
  answers[2].status = grpc::Status(grpc::StatusCode::UNAVAILABLE, "member c:1");
  v1::ListJobsResponse merged;
  const grpc::Status status = MergeJobs(membership_, asked_, &answers, &merged);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("c:1"));
  EXPECT_EQ(merged.jobs_size(), 0);
}

TEST_F(ForwardMergeTest, ConditionsAreOrderedByJob) {
  auto answers = Answers<v1::ConditionsResponse>();
  int n = 0;
  while (JobOf(1, n) < JobOf(2)) ++n;  // Not the order of the shards.
  for (const uint32_t shard : {1u, 2u}) {
    const std::string job = shard == 1 ? JobOf(1, n) : JobOf(2);
    for (const char* const name : {"Diverged", "Stalled"}) {
      auto* const condition = answers[shard].response.add_conditions();
      condition->set_job(job);
      condition->set_condition(name);
    }
    answers[shard].response.add_profiles()->set_job(job);
  }
  answers[0].response.add_profiles()->set_job(JobOf(1));  // Not its job.
  v1::ConditionsResponse merged;
  ASSERT_TRUE(MergeConditions(membership_, &answers, &merged).ok());
  std::vector<std::string> lines;
  const std::vector<std::string> jobs = {JobOf(2), JobOf(1, n)};
  for (const auto& one : merged.conditions()) {
    lines.push_back(absl::StrCat(one.job(), " ", one.condition()));
  }
  EXPECT_THAT(lines, ElementsAre(jobs[0] + " Diverged", jobs[0] + " Stalled", jobs[1] + " Diverged",
                                 jobs[1] + " Stalled"));
  EXPECT_EQ(merged.profiles_size(), 2);
}

TEST_F(ForwardMergeTest, CardinalityAddsTotalsUpAndKeepsTheLargest) {
  auto answers = Answers<v1::CardinalityResponse>();
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    auto* const total = answers[shard].response.add_totals();
    total->set_name("series");
    total->set_used(10 + shard);
    total->set_limit(100);
    auto* const job = answers[shard].response.add_jobs();
    job->set_job(JobOf(shard));
    job->set_used(10 + shard);
    // A copy of host rows, of a job that is another member's.
    auto* const copy = answers[shard].response.add_metrics();
    copy->set_job(JobOf(0));
    copy->set_name("host_cpu");
    copy->set_used(100 + shard);
    answers[shard].response.set_jobs_left_out(1);
  }
  v1::CardinalityRequest request;
  request.set_top(2);
  v1::CardinalityResponse merged;
  ASSERT_TRUE(MergeCardinality(membership_, request, &answers, &merged).ok());
  ASSERT_EQ(merged.totals_size(), 1);
  EXPECT_EQ(merged.totals(0).used(), 33);
  EXPECT_EQ(merged.totals(0).limit(), 300);
  ASSERT_EQ(merged.jobs_size(), 2);
  EXPECT_EQ(merged.jobs(0).job(), JobOf(2));
  EXPECT_EQ(merged.jobs(1).job(), JobOf(1));
  ASSERT_EQ(merged.metrics_size(), 1);
  EXPECT_EQ(merged.metrics(0).used(), 100) << "of the member that keeps the job";
  EXPECT_EQ(merged.jobs_left_out(), 3);
}

TEST_F(ForwardMergeTest, TheFleetHasTheSickestOfAllMembers) {
  auto answers = Answers<v1::FleetResponse>();
  const double ranks[kShards] = {2, 3, 3};
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    auto* const job = answers[shard].response.add_jobs();
    job->mutable_job()->set_name(JobOf(shard));
    job->set_rank(ranks[shard]);
    auto* const totals = answers[shard].response.mutable_totals();
    totals->set_jobs(5);
    totals->set_running(shard);
    totals->set_chips(4);
    answers[shard].response.set_left_out(4);
    answers[shard].response.set_revision(100 + shard);
  }
  v1::FleetRequest request;
  request.set_since_revision(77);
  EXPECT_EQ(FleetAsked(request).since_revision(), 0);
  request.set_max_jobs(2);
  v1::FleetResponse merged;
  ASSERT_TRUE(MergeFleet(membership_, request, &answers, &merged).ok());
  ASSERT_EQ(merged.jobs_size(), 2);
  EXPECT_EQ(merged.jobs(0).job().name(), std::min(JobOf(1), JobOf(2)));
  EXPECT_EQ(merged.jobs(1).job().name(), std::max(JobOf(1), JobOf(2)));
  EXPECT_EQ(merged.left_out(), 13);
  EXPECT_TRUE(merged.complete());
  EXPECT_EQ(merged.revision(), 101);  // This member's.
  EXPECT_EQ(merged.totals().jobs(), 15);
  EXPECT_EQ(merged.totals().running(), 3);
  EXPECT_EQ(merged.totals().chips(), 12);
  EXPECT_FALSE(merged.totals().has_goodput_ratio());
}

TEST_F(ForwardMergeTest, AHostIsIdleIfNoMemberHasAJobOnIt) {
  auto answers = Answers<v1::FleetResponse>();
  const auto add_host = [&](uint32_t shard, const std::string& name, uint32_t chips, bool used) {
    v1::FleetHost* const host = answers[shard].response.add_hosts();
    host->set_name(name);
    host->set_chips(chips);
    host->set_used(used);
  };
  add_host(0, "a", 8, false);  // The member of the job "hosts". Nobody uses b.
  add_host(0, "b", 4, false);
  add_host(0, "c", 2, true);
  add_host(1, "a", 0, true);  // No copy has come yet.
  add_host(2, "c", 2, false);
  answers[0].response.mutable_totals()->set_chips_idle(12);
  v1::FleetRequest request;
  EXPECT_TRUE(FleetAsked(request).hosts());
  v1::FleetResponse merged;
  ASSERT_TRUE(MergeFleet(membership_, request, &answers, &merged).ok());
  EXPECT_EQ(merged.totals().chips_idle(), 4);
  EXPECT_THAT(merged.hosts(), IsEmpty()) << "only who asks gets them";
  request.set_hosts(true);
  v1::FleetResponse with_hosts;
  ASSERT_TRUE(MergeFleet(membership_, request, &answers, &with_hosts).ok());
  ASSERT_EQ(with_hosts.hosts_size(), 3);
  EXPECT_EQ(with_hosts.hosts(0).name(), "a");
  EXPECT_EQ(with_hosts.hosts(0).chips(), 8);
  EXPECT_TRUE(with_hosts.hosts(0).used());
  EXPECT_FALSE(with_hosts.hosts(1).used());
  EXPECT_TRUE(with_hosts.hosts(2).used());
}

TEST_F(ForwardMergeTest, NobodyKnowsOfIdleChipsIfNoMemberDoes) {
  auto answers = Answers<v1::FleetResponse>();
  v1::FleetHost* const host = answers[1].response.add_hosts();
  host->set_name("a");
  host->set_used(true);
  v1::FleetResponse merged;
  ASSERT_TRUE(MergeFleet(membership_, {}, &answers, &merged).ok());
  EXPECT_FALSE(merged.totals().has_chips_idle());
}

TEST_F(ForwardMergeTest, TheGoodputOfTheFleetIsThatOfAllSeconds) {
  auto answers = Answers<v1::FleetResponse>();
  const double productive[kShards] = {0, 90, 10};
  const double wall[kShards] = {0, 100, 900};  // The first one knows no ledger.
  for (uint32_t shard = 1; shard < kShards; ++shard) {
    auto* const totals = answers[shard].response.mutable_totals();
    totals->set_productive_seconds(productive[shard]);
    totals->set_wall_seconds(wall[shard]);
    totals->set_goodput_ratio(productive[shard] / wall[shard]);
  }
  v1::FleetResponse merged;
  ASSERT_TRUE(MergeFleet(membership_, {}, &answers, &merged).ok());
  EXPECT_DOUBLE_EQ(merged.totals().goodput_ratio(), 0.1);
  EXPECT_EQ(merged.totals().wall_seconds(), 1000);
}

}  // namespace
}  // namespace tacho::server::cluster
