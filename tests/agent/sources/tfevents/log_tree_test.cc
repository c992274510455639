#include "agent/sources/tfevents/log_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/tfevents_writer.h"

namespace tacho::agent {
namespace {

namespace fs = std::filesystem;
using ::tacho::testing::AppendToFile;
using ::tacho::testing::WriteFile;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

size_t OpenDescriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

class LogTreeTest : public ::testing::Test {
 protected:
  LogTreeTest()
      : path_(absl::StrCat(::testing::TempDir(), "/log_tree_",
                           ::testing::UnitTest::GetInstance()->current_test_info()->name(), "_",
                           ::getpid())) {
    fs::remove_all(path_);
    fs::create_directories(path_);
    Make({});
  }
  ~LogTreeTest() override { fs::remove_all(path_); }

  void Make(LogTree::Options options) {
    options.wanted = [](absl::string_view name) { return name == "f"; };
    root_ = std::make_unique<BeneathDirectory>(path_);
    tree_ = std::make_unique<LogTree>(root_.get(), options);
  }
  void Write(const std::string& directory) { AppendToFile(path_ + "/" + directory + "/f", "x"); }

  // Everything that is due, 2 s after the last time.
  void Poll() {
    now_ += absl::Seconds(2);
    looked_.clear();
    files_.clear();
    gone_.clear();
    failures_.clear();
    for (LogTree::Step step; (step = tree_->Next(now_)) != LogTree::Step::kRest;) {
      most_open_ = std::max(most_open_, OpenDescriptors());
      if (step == LogTree::Step::kComplete) looked_.insert(tree_->directory());
      if (step == LogTree::Step::kFile) files_[tree_->directory()] = tree_->file().size;
      if (step == LogTree::Step::kGone) gone_.push_back(tree_->directory());
      if (step == LogTree::Step::kFailed && tree_->failure_is_new()) {
        failures_.push_back(tree_->failure());
      }
    }
    root_->Rest();
  }

  const std::string path_;
  std::unique_ptr<BeneathDirectory> root_;
  std::unique_ptr<LogTree> tree_;
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  std::set<std::string> looked_;
  std::map<std::string, uint64_t> files_;
  std::vector<std::string> gone_;
  std::vector<std::string> failures_;
  size_t most_open_ = 0;
};

TEST_F(LogTreeTest, DirectoriesThatDoNotChangeAreLookedAtSeldom) {
  for (int run = 0; run < 200; ++run) Write(absl::StrCat("run", run));
  Poll();
  EXPECT_EQ(looked_.size(), 201u);
  for (int poll = 0; poll < 600; ++poll) Poll();  // 20 minutes.
  size_t looks = 0;
  size_t most = 0;
  std::set<std::string> all;
  for (int poll = 0; poll < 30; ++poll) {
    Poll();
    EXPECT_TRUE(looked_.contains("."));
    looks += looked_.size();
    most = std::max(most, looked_.size());
    all.insert(looked_.begin(), looked_.end());
  }
  EXPECT_EQ(all.size(), 201u) << "each within a minute";
  EXPECT_LT(looks, 330u);
  EXPECT_LT(most, 60u) << "not all in one moment";
}

TEST_F(LogTreeTest, DirectoryThatChangesIsLookedAtEachTimeAgain) {
  Write("run");
  for (int poll = 0; poll < 600; ++poll) Poll();
  Write("run");
  int polls = 0;
  for (; polls < 31 && files_["run"] != 2; ++polls) Poll();
  EXPECT_LE(polls, 30);
  for (int poll = 0; poll < 5; ++poll) {
    Poll();
    EXPECT_TRUE(looked_.contains("run"));
  }
}

TEST_F(LogTreeTest, NewRunIsSeenAtOnceHoweverOldTheOthersAre) {
  Write("old");
  for (int poll = 0; poll < 600; ++poll) Poll();
  Write("new");
  Poll();
  EXPECT_EQ(files_["new"], 1u);
}

TEST_F(LogTreeTest, WhatIsGoneIsToldWithAllThatLaysBelowIt) {
  for (const char* run : {"a", "a/b", "a/b/c", "a-b", "a0", "ab/c", "-x"}) Write(run);
  Poll();
  EXPECT_EQ(files_.size(), 7u);
  fs::remove_all(path_ + "/a");
  Poll();
  EXPECT_THAT(gone_, UnorderedElementsAre("a", "a/b", "a/b/c"));
  fs::remove_all(path_ + "/-x");
  fs::remove_all(path_ + "/ab/c");
  Poll();
  EXPECT_THAT(gone_, UnorderedElementsAre("-x", "ab/c"));
  Poll();
  EXPECT_THAT(gone_, IsEmpty());
  EXPECT_THAT(looked_, UnorderedElementsAre(".", "a-b", "a0", "ab"));
}

TEST_F(LogTreeTest, MissingRootIsAFailureToldOnceAndNothingIsGone) {
  Write("a");
  Write("b");
  Poll();
  fs::rename(path_, path_ + ".away");
  Poll();
  EXPECT_THAT(failures_, ElementsAre(path_ + ": No such file or directory"));
  Poll();
  EXPECT_THAT(failures_, IsEmpty());
  fs::rename(path_ + ".away", path_);
  Poll();
  EXPECT_THAT(gone_, IsEmpty());
  EXPECT_EQ(looked_.size(), 3u);
}

TEST_F(LogTreeTest, DirectoryThatMayNotBeReadKeepsWhatItHadAndHoldsUpNoOther) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become somebody else";
  Write("closed");
  Write("open");
  fs::permissions(path_ + "/closed", fs::perms::none);
  ::setfsuid(65534);
  Poll();
  Poll();
  ::setfsuid(0);
  EXPECT_THAT(looked_, UnorderedElementsAre(".", "open"));
  EXPECT_THAT(gone_, IsEmpty());
  Poll();
  EXPECT_EQ(files_.count("closed"), 1u);
}

TEST_F(LogTreeTest, TreeThatIsTooDeepOrTooLargeIsCutAndCounted) {
  std::string deep = "d";
  for (int depth = 1; depth < LogTree::kMaxDepth + 3; ++depth) deep += "/d";
  Write(deep);
  Poll();
  EXPECT_EQ(looked_.size(), size_t{LogTree::kMaxDepth} + 1);
  EXPECT_EQ(tree_->left_out(), 1u);

  fs::remove_all(path_ + "/d");
  Make({.max_directories = 4, .max_files = 2});
  for (const char* run : {"a", "b", "c", "d", "e"}) Write(run);
  Poll();
  EXPECT_EQ(looked_.size(), 4u);
  EXPECT_EQ(files_.size(), 2u);
  EXPECT_EQ(tree_->left_out(), 3u);
}

TEST_F(LogTreeTest, LinksToDirectoriesAreNotFollowedNorAreCyclesWalked) {
  Write("run");
  fs::create_directory_symlink(path_, path_ + "/run/up");
  fs::create_directory_symlink("/proc", path_ + "/run/out");
  Poll();
  EXPECT_THAT(looked_, UnorderedElementsAre(".", "run"));
}

TEST_F(LogTreeTest, FewDescriptorsAreOpenAndNoneAfterwards) {
  for (int run = 0; run < 50; ++run) Write(absl::StrCat("a/b/c/run", run));
  const size_t before = OpenDescriptors();
  Poll();
  EXPECT_LE(most_open_, before + 2);
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(LogTreeTest, ClockThatIsSetBackStopsNothing) {
  Write("a");
  Poll();
  now_ -= absl::Hours(1000);
  Poll();
  EXPECT_THAT(looked_, UnorderedElementsAre(".", "a"));
}

}  // namespace
}  // namespace tacho::agent
