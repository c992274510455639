// On the real file system: what lies in directories, and stays over restarts, is what is tested.
#include "agent/spool/sharded_spool.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/spool/spool_division.h"
#include "agent/spool/spool_move.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/job_shard.h"
#include "tests/agent/recording_sink.h"

namespace tacho::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kHome[] = "hosts";  // Of shard 2 of 3.

v1::Layout LayoutOf(const std::string& job, const std::string& host = "") {
  v1::Layout layout;
  layout.mutable_source()->set_job(job);
  layout.mutable_source()->set_host(host);
  layout.add_series()->mutable_metric()->set_name("m");
  return layout;
}

class ShardedSpoolTest : public ::testing::Test {
 protected:
  ShardedSpoolTest()
      : path_(absl::StrCat(::testing::TempDir(), "/sharded_spool_test_",
                           ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(path_);
    for (int i = 0; jobs_.size() < 3; ++i) {
      const std::string job = absl::StrCat("job-", i);
      if (ShardOfJob(job, 3) == jobs_.size()) jobs_.push_back(job);
    }
  }
  ~ShardedSpoolTest() override {
    Close();
    fs::remove_all(path_);
  }

  SpoolOptions Options() {
    return {.path = path_,
            .max_bytes = max_bytes_,
            .patient_sources = {"files"},
            .log = testing::LogTo(&log_)};
  }
  void Close() {
    sharded_.reset();
    undivided_.reset();
    sink_ = nullptr;
  }
  void OpenShards(uint32_t shards, const std::set<std::string, std::less<>>& split_jobs = {}) {
    Close();
    auto spool = ShardedSpool::Open({.spool = Options(),
                                     .division = {shards, split_jobs},
                                     .home_job = kHome,
                                     .home_host = "d",
                                     .host_jobs = {kHome},
                                     .monotonic = [this] { return now_; }});
    ASSERT_TRUE(spool.ok()) << spool.status();
    sharded_ = *std::move(spool);
    sink_ = sharded_.get();
  }
  void OpenNoShards() {
    Close();
    auto spool = OpenUndivided(Options());
    ASSERT_TRUE(spool.ok()) << spool.status();
    undivided_ = *std::move(spool);
    sink_ = undivided_.get();
  }

  absl::Status Append(const std::string& job, double value, const RowSink::Checkpoint& at = {},
                      const std::string& host = "") {
    const auto layout = sink_->DefineLayout(LayoutOf(job, host));
    if (!layout.ok()) return layout.status();
    const int64_t time = 7;
    return sink_->AppendRows(*layout, {&time, 1}, {}, {&value, 1}, at);
  }
  // "job=value" of each row in its order, with "copy of " before it if it is one, "job!kind" of
  // each event, "-rows: reason" of each Gap.
  static std::vector<std::string> ContentsOf(Spool* spool) {
    std::vector<std::string> contents;
    EXPECT_TRUE(spool->Sync().ok());
    const auto entries = spool->Read(1, UINT64_MAX);
    EXPECT_TRUE(entries.ok()) << entries.status();
    for (const Spool::Entry& entry : *entries) {
      const v1::ClientMessage message = entry.message.Parsed();
      const std::string job = spool->SourceOf(entry.message).job();
      if (message.has_event()) contents.push_back(absl::StrCat(job, "!", message.event().kind()));
      if (message.has_attributes()) contents.push_back(absl::StrCat(job, "@"));
      if (message.has_gap()) {
        contents.push_back(absl::StrCat("-", message.gap().rows(), ": ", message.gap().reason()));
      }
      const auto layout = spool->FindLayout(entry.message.layout());
      const char* const copy = layout.ok() && layout->copy() ? "copy of " : "";
      for (const double value : message.batch().values()) {
        contents.push_back(absl::StrCat(copy, job, "=", value));
      }
    }
    return contents;
  }
  std::vector<std::string> ContentsOfShard(uint32_t shard) {
    const auto open = sharded_->spools();
    const auto found = open.find(shard);
    return found == open.end() ? std::vector<std::string>() : ContentsOf(found->second);
  }
  std::vector<std::string> Directories() const {
    std::vector<std::string> paths;
    for (const FoundSpool& found : FindSpools(path_)) paths.push_back(found.path);
    return paths;
  }
  std::string Of(int job, const std::string& what) const {
    return absl::StrCat(jobs_.at(static_cast<size_t>(job)), what);
  }

  const std::string path_;
  std::vector<std::string> jobs_;  // By shard of three.
  uint64_t max_bytes_ = 1u << 30;
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);  // As a monotonic clock may show it.
  std::vector<std::string> log_;
  std::unique_ptr<ShardedSpool> sharded_;
  std::unique_ptr<Spool> undivided_;
  RowSink* sink_ = nullptr;
};

TEST_F(ShardedSpoolTest, PutsEachMessageIntoTheSpoolOfItsJobsShard) {
  OpenShards(3);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Append(jobs_[static_cast<size_t>(i)], i).ok());
  v1::Event event;
  event.mutable_source()->set_job(jobs_[0]);
  event.set_kind("ended");
  ASSERT_TRUE(sink_->AppendEvent(event, {}).ok());
  v1::Attributes attributes;
  attributes.set_job(jobs_[1]);
  ASSERT_TRUE(sink_->AppendAttributes(attributes, {}).ok());
  EXPECT_THAT(ContentsOfShard(0), ElementsAre(Of(0, "=0"), Of(0, "!ended")));
  EXPECT_THAT(ContentsOfShard(1), ElementsAre(Of(1, "=1"), Of(1, "@")));
  EXPECT_THAT(ContentsOfShard(2), ElementsAre(Of(2, "=2")));
  EXPECT_EQ(sharded_->Stats().entries, 5u);
  EXPECT_EQ(sharded_->Stats().appended_rows, 3u);
}

TEST_F(ShardedSpoolTest, OpensASpoolWhenItsShardHasSomething) {
  OpenShards(3);
  std::vector<uint32_t> opened;
  sharded_->SetOpened([&opened](uint32_t shard, Spool* spool) {
    EXPECT_EQ(spool->end(), 1u) << "told before there is anything in it";
    opened.push_back(shard);
  });
  EXPECT_EQ(sharded_->spools().size(), 1u) << "that of the home job";
  ASSERT_TRUE(Append(kHome, 1).ok());
  ASSERT_TRUE(Append(jobs_[1], 1).ok());
  ASSERT_TRUE(Append(jobs_[1], 2).ok());
  EXPECT_THAT(opened, ElementsAre(1));
  OpenShards(3);
  EXPECT_EQ(sharded_->spools().size(), 2u);
  EXPECT_THAT(ContentsOfShard(1), ElementsAre(Of(1, "=1"), Of(1, "=2")));
}

TEST_F(ShardedSpoolTest, RefusesADirectoryThatAnotherAgentHas) {
  OpenShards(3);
  const auto second =
      ShardedSpool::Open({.spool = Options(), .division = {3, {}}, .home_job = kHome});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ShardedSpoolTest, ACheckpointFollowsItsRows) {
  OpenShards(3);
  ASSERT_TRUE(sink_->WriteCheckpoint({"s/a", "1"}).ok());
  ASSERT_TRUE(Append(jobs_[0], 1, {"s/a", "2"}).ok());
  EXPECT_EQ(sink_->ReadCheckpoint("s/a"), "2");
  ASSERT_TRUE(Append(jobs_[1], 1, {"s/a", "3"}).ok());
  EXPECT_EQ(sink_->ReadCheckpoint("s/a"), "3");
  int holders = 0;
  for (const auto& [shard, spool] : sharded_->spools()) {
    holders += spool->ReadCheckpoint("s/a").empty() ? 0 : 1;
  }
  EXPECT_EQ(holders, 1);
  OpenShards(3);
  EXPECT_EQ(sink_->ReadCheckpoint("s/a"), "3");
  ASSERT_TRUE(sink_->WriteCheckpoint({"s/a", ""}).ok());
  EXPECT_EQ(sink_->ReadCheckpoint("s/a"), "");
}

TEST_F(ShardedSpoolTest, ACrashWhileACheckpointMovesLeavesTheNewestAlone) {
  OpenShards(3);
  ASSERT_TRUE(Append(jobs_[0], 1, {"s/a", "1"}).ok());
  ASSERT_TRUE(Append(jobs_[1], 1).ok());
  // As it is when the process dies before the old one is removed.
  ASSERT_TRUE(sharded_->spools().at(1)->WriteCheckpoint({"s/a", "1"}).ok());
  OpenShards(3);
  ASSERT_TRUE(Append(jobs_[1], 2, {"s/a", "2"}).ok());
  EXPECT_EQ(sink_->ReadCheckpoint("s/a"), "2");
}

TEST_F(ShardedSpoolTest, RowsOfTheHostAreCopiedForTheJobsThatRunOnIt) {
  OpenShards(3);
  ASSERT_TRUE(Append(kHome, 1).ok());
  EXPECT_THAT(ContentsOfShard(2), ElementsAre("hosts=1"));
  ASSERT_TRUE(Append(jobs_[0], 1).ok());
  ASSERT_TRUE(Append(kHome, 2, {"host/", "2"}).ok());
  // The member that keeps the host's job needs no copy for its own jobs.
  ASSERT_TRUE(Append(jobs_[2], 1).ok());
  now_ += absl::Hours(1);
  ASSERT_TRUE(Append(jobs_[1], 1).ok());
  ASSERT_TRUE(Append(kHome, 3).ok());
  // The job of shard 0 has recorded nothing for longer than that.
  now_ += ShardedSpool::kCopiedFor - absl::Minutes(59);
  ASSERT_TRUE(Append(kHome, 4).ok());
  EXPECT_THAT(ContentsOfShard(0), ElementsAre(Of(0, "=1"), "copy of hosts=2", "copy of hosts=3"));
  EXPECT_THAT(ContentsOfShard(1), ElementsAre(Of(1, "=1"), "copy of hosts=3", "copy of hosts=4"));
  EXPECT_THAT(ContentsOfShard(2),
              ElementsAre("hosts=1", "hosts=2", Of(2, "=1"), "hosts=3", "hosts=4"));
  EXPECT_EQ(sharded_->spools().at(0)->ReadCheckpoint("host/"), "") << "it is with the rows";
  EXPECT_EQ(sink_->ReadCheckpoint("host/"), "2");
}

TEST_F(ShardedSpoolTest, AnEventOrALayoutOfAJobBringsNoCopies) {
  OpenShards(3);
  ASSERT_TRUE(sink_->DefineLayout(LayoutOf(jobs_[0])).ok());
  v1::Event event;
  event.mutable_source()->set_job(jobs_[1]);
  event.set_kind("ended");
  ASSERT_TRUE(sink_->AppendEvent(event, {}).ok());
  ASSERT_TRUE(Append(kHome, 1).ok());
  EXPECT_THAT(ContentsOfShard(0), IsEmpty());
  EXPECT_THAT(ContentsOfShard(1), ElementsAre(Of(1, "!ended")));
}

TEST_F(ShardedSpoolTest, CopiesAreNotMoved) {
  OpenShards(3);
  ASSERT_TRUE(Append(jobs_[0], 1).ok());
  ASSERT_TRUE(Append(kHome, 2).ok());
  OpenNoShards();
  EXPECT_THAT(ContentsOf(undivided_.get()),
              ::testing::UnorderedElementsAre(Of(0, "=1"), "hosts=2"));
  ASSERT_TRUE(Append(kHome, 3).ok());
  EXPECT_EQ(ContentsOf(undivided_.get()).back(), "hosts=3") << "nobody needs a copy of it";
}

TEST_F(ShardedSpoolTest, TheFullestGivesWayWhenAllTogetherAreFull) {
  max_bytes_ = 32 << 10;
  OpenShards(3);
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(Append(jobs_[0], i).ok());  // A member that is away.
  const uint64_t before = ContentsOfShard(0).size();
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(Append(jobs_[1], i).ok());
  EXPECT_EQ(ContentsOfShard(1).size(), 300u) << "nothing of it is dropped";
  EXPECT_LT(ContentsOfShard(0).size(), before);
  const std::string contents = absl::StrJoin(ContentsOfShard(0), "\n");
  EXPECT_TRUE(absl::StrContains(contents, "the agent's spool was full"));
  EXPECT_TRUE(absl::StrContains(contents, Of(0, "=1999")));
  EXPECT_LE(sharded_->Stats().bytes, max_bytes_ + 200);
  EXPECT_GT(sharded_->Stats().Of(SpoolLoss::kBytes).rows, 0u);
}

TEST_F(ShardedSpoolTest, APatientSourceWaitsWhenAllTogetherAreHalfFull) {
  max_bytes_ = 64 << 10;
  OpenShards(3);
  for (int i = 0; sharded_->Stats().bytes <= max_bytes_ / 2; ++i) {
    ASSERT_TRUE(Append(jobs_[0], i, {"rings/a", absl::StrCat(i)}).ok());
  }
  EXPECT_EQ(Append(jobs_[1], 1, {"files/a", "1"}).code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Append(jobs_[1], 1, {"rings/b", "1"}).ok());
}

TEST_F(ShardedSpoolTest, MovesWhatWaitedWithoutMembers) {
  OpenNoShards();
  ASSERT_TRUE(Append(jobs_[0], 1, {"s/a", "1"}).ok());
  ASSERT_TRUE(Append(jobs_[1], 2).ok());
  v1::Event event;
  event.mutable_source()->set_job(jobs_[1]);
  event.set_kind("ended");
  ASSERT_TRUE(sink_->AppendEvent(event, {}).ok());
  ASSERT_TRUE(undivided_->Sync().ok());
  ASSERT_TRUE(Append(jobs_[0], 3, {"s/a", "3"}).ok());
  ASSERT_TRUE(undivided_->Sync().ok());
  ASSERT_TRUE(undivided_->Drop(1, 1, "given up").ok());
  EXPECT_THAT(Directories(), ElementsAre(path_));

  OpenShards(3);
  EXPECT_THAT(ContentsOfShard(0), ElementsAre(Of(0, "=3")));
  EXPECT_THAT(ContentsOfShard(1), ElementsAre(Of(1, "=2"), Of(1, "!ended")));
  EXPECT_THAT(ContentsOfShard(2), ElementsAre("-1: given up"));
  EXPECT_EQ(sink_->ReadCheckpoint("s/a"), "3");
  EXPECT_EQ(sharded_->Stats().appended_rows, 0u) << "an earlier run counted them";
  EXPECT_FALSE(fs::exists(path_ + "/CURRENT"));
  EXPECT_THAT(absl::StrJoin(log_, "\n"), HasSubstr("moved what waited"));
  OpenShards(3);
  EXPECT_THAT(ContentsOfShard(0), ElementsAre(Of(0, "=3")));
  EXPECT_EQ(sink_->ReadCheckpoint("s/a"), "3");
}

TEST_F(ShardedSpoolTest, MovesWhatWaitedForAnotherNumberOfMembersAndBack) {
  OpenShards(3);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(
        Append(jobs_[static_cast<size_t>(i)], i, {absl::StrCat("s/", i), absl::StrCat(i)}).ok());
  }
  OpenShards(5);
  size_t contents = 0;
  for (const auto& [shard, spool] : sharded_->spools()) {
    for (const std::string& one : ContentsOf(spool)) {
      ++contents;
      const std::string job = one.substr(0, one.find('='));
      EXPECT_EQ(ShardOfJob(job, 5), shard) << one;
    }
  }
  EXPECT_EQ(contents, 3u);
  for (const std::string& path : Directories()) EXPECT_THAT(path, HasSubstr("-of-5"));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(sink_->ReadCheckpoint(absl::StrCat("s/", i)), absl::StrCat(i));
  }

  OpenNoShards();
  EXPECT_THAT(ContentsOf(undivided_.get()),
              ::testing::UnorderedElementsAre(Of(0, "=0"), Of(1, "=1"), Of(2, "=2")));
  EXPECT_THAT(Directories(), ElementsAre(path_));
  EXPECT_EQ(sink_->ReadCheckpoint("s/1"), "1");
}

// ShardOfHost("hosts", …, 3) of a, b and d is 0, 1 and 2.
TEST_F(ShardedSpoolTest, RowsAndEventsOfASplitJobGoWhereTheirHostIsKept) {
  OpenShards(3, {"hosts"});
  double value = 0;
  for (const char* const host : {"a", "b", "d"}) {
    ASSERT_TRUE(Append("hosts", value++, {}, host).ok());
    v1::Event event;
    event.mutable_source()->set_job("hosts");
    event.mutable_source()->set_host(host);
    event.set_kind(host);
    ASSERT_TRUE(sink_->AppendEvent(event, {}).ok());
  }
  EXPECT_THAT(ContentsOfShard(0), ElementsAre("hosts=0", "hosts!a"));
  EXPECT_THAT(ContentsOfShard(1), ElementsAre("hosts=1", "hosts!b"));
  EXPECT_THAT(ContentsOfShard(2), ElementsAre("hosts=2", "hosts!d"));
}

TEST_F(ShardedSpoolTest, MovesWhatWaitedForOtherSplitJobsAndBack) {
  OpenShards(3);
  for (const char* const host : {"a", "b", "d"}) {
    ASSERT_TRUE(Append("hosts", host[0] - 'a', {}, host).ok());
  }
  ASSERT_TRUE(Append(jobs_[1], 9).ok());
  EXPECT_THAT(ContentsOfShard(2), ElementsAre("hosts=0", "hosts=1", "hosts=3"));
  OpenShards(3, {"hosts"});
  EXPECT_THAT(ContentsOfShard(0), ElementsAre("hosts=0"));
  EXPECT_THAT(ContentsOfShard(1), ::testing::UnorderedElementsAre("hosts=1", Of(1, "=9")));
  EXPECT_THAT(ContentsOfShard(2), ElementsAre("hosts=3"));
  for (const std::string& path : Directories()) EXPECT_THAT(path, HasSubstr("-of-3-split-"));
  OpenShards(3, {"hosts", "others"});  // Another list, of which nothing waits.
  EXPECT_THAT(ContentsOfShard(0), ElementsAre("hosts=0"));
  OpenShards(3);
  EXPECT_THAT(ContentsOfShard(2), ::testing::UnorderedElementsAre("hosts=0", "hosts=1", "hosts=3"));
  for (const std::string& path : Directories()) EXPECT_THAT(path, ::testing::EndsWith("-of-3"));
}

// What a crash leaves at any moment of a move: some targets have more than others, the old spool
// has all.
TEST_F(ShardedSpoolTest, AMoveThatWasCutOffMovesNothingTwice) {
  OpenNoShards();
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(Append(jobs_[static_cast<size_t>(i % 3)], i).ok());
  }
  Close();
  const std::string copy = path_ + ".copy";
  fs::remove_all(copy);
  fs::copy(path_, copy, fs::copy_options::recursive);
  OpenShards(3);
  Close();
  // All targets but one have everything; that one has nothing.
  fs::remove_all(ShardPath(path_, 1, {3, {}}));
  for (const auto& entry : fs::directory_iterator(copy)) {
    fs::copy(entry.path(), fs::path(path_) / entry.path().filename());
  }
  fs::remove_all(copy);
  OpenShards(3);
  EXPECT_THAT(ContentsOfShard(0), ElementsAre(Of(0, "=0"), Of(0, "=3")));
  EXPECT_THAT(ContentsOfShard(1), ElementsAre(Of(1, "=1"), Of(1, "=4")));
  EXPECT_THAT(ContentsOfShard(2), ElementsAre(Of(2, "=2"), Of(2, "=5")));
  OpenShards(3);  // Forgets how far the move had come.
  for (const auto& [shard, spool] : sharded_->spools()) {
    EXPECT_THAT(spool->Checkpoints(), IsEmpty());
  }
}

TEST_F(ShardedSpoolTest, ADamagedSpoolWithoutMembersTakesNoOtherAlong) {
  OpenShards(3);
  ASSERT_TRUE(Append(jobs_[0], 1).ok());
  Close();
  // Half of a database.
  std::ofstream(path_ + "/CURRENT") << "MANIFEST-000099\n";
  OpenShards(3);
  EXPECT_THAT(ContentsOfShard(0), ElementsAre(Of(0, "=1")));
  EXPECT_THAT(absl::StrJoin(log_, "\n"), HasSubstr("damaged"));
  ASSERT_TRUE(Append(jobs_[0], 2).ok());
  OpenShards(3);
  EXPECT_THAT(ContentsOfShard(0), ElementsAre(Of(0, "=1"), Of(0, "=2")));
  for (const auto& entry : fs::directory_iterator(fs::path(path_).parent_path())) {
    const std::string name = entry.path().string();
    if (name.starts_with(path_ + ".damaged")) fs::remove_all(entry.path());
  }
}

}  // namespace
}  // namespace tacho::agent
