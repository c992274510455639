// Event files as others leave them: links, files on network file systems, copies in the making,
// files of other users, and very long ones.
#include <gmock/gmock.h>
#include <sys/fsuid.h>
#include <sys/stat.h>

#include <string>
#include <tuple>

#include "tests/agent/sources/tfevents/tfevents_source_fixture.h"

namespace tacho::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(TfeventsSourceTest, LinksAreFollowedThatLeadNowhereElse) {
  WriteFile(Path("store", "1.bin"), ScalarRecord(2, 1, "a", 1));
  fs::create_directories(root_ / "x");
  fs::create_symlink("../store/1.bin", root_ / "x" / kFirstFile);
  fs::create_directories(root_ / "y");
  fs::create_symlink(root_ / "store" / "1.bin", root_ / "y" / kFirstFile);
  Cycle();
  EXPECT_THAT(Stored("a"), SizeIs(2));
  EXPECT_THAT(log_, IsEmpty());
}

// What another user's run says is not for who may only write here.
TEST_F(TfeventsSourceTest, LinksThatLeadOutAreNotFollowed) {
  const fs::path secret = root_.string() + ".secret";
  fs::remove_all(secret);
  WriteFile((secret / kFirstFile).string(), ScalarRecord(2, 1, "secret", 1));
  for (const char* run : {"absolute", "relative", "directory"}) fs::create_directories(root_ / run);
  fs::create_symlink(secret / kFirstFile, root_ / "absolute" / kFirstFile);
  fs::create_symlink("../../" + secret.filename().string() + "/" + kFirstFile,
                     root_ / "relative" / kFirstFile);
  fs::create_directory_symlink(secret, root_ / "directory" / "run");
  WriteFile(Path("own", kFirstFile), ScalarRecord(2, 1, "a", 1));
  Cycle();
  Cycle();
  EXPECT_THAT(Stored("secret"), IsEmpty());
  EXPECT_THAT(Stored("a"), SizeIs(1));
  ASSERT_THAT(log_, ::testing::UnorderedElementsAre(HasSubstr("absolute"), HasSubstr("relative")));
  EXPECT_THAT(log_[0], HasSubstr("leads out of the log directory"));
  fs::remove_all(secret);
}

// A client of NFS shows zeros up to the new length while what was written is on its way.
TEST_F(TfeventsSourceTest, ZerosThatBecomeDataAreWaitedFor) {
  const std::string first = FileVersionRecord(1) + ScalarRecord(2, 1, "a", 1);
  const std::string second = ScalarRecord(3, 2, "a", 2);
  const std::string path = Path("run", kFirstFile);
  WriteFile(path, first);
  Cycle();
  for (size_t arrived = 0; arrived < second.size(); arrived += 7) {
    WriteFile(path, first + second.substr(0, arrived) + std::string(second.size() - arrived, '\0'));
    Cycle();
  }
  WriteFile(path, first + second);
  CycleLater();
  EXPECT_THAT(Stored("a"), ElementsAre(std::tuple(0u, 1, 1.0), std::tuple(0u, 2, 2.0)));
  EXPECT_EQ(source_->stats().dead_files, 0u);
  EXPECT_THAT(log_, IsEmpty());
}

// As programs copy that write several pieces at a time: first zeros, then the same file.
TEST_F(TfeventsSourceTest, CopyInTheMakingIsNoOtherFile) {
  const std::string first = FileVersionRecord(1) + ScalarRecord(2, 1, "a", 1);
  const std::string second = ScalarRecord(3, 2, "a", 2);
  const std::string path = Path("run", kFirstFile);
  WriteFile(path, first);
  Cycle();
  std::string copy = first + second;
  copy.replace(FileVersionRecord(1).size(), copy.size() - FileVersionRecord(1).size(),
               copy.size() - FileVersionRecord(1).size(), '\0');
  WriteFile(path, copy);
  Cycle();
  Cycle();
  WriteFile(path, first + second);
  CycleLater();
  EXPECT_THAT(Stored("a"), ElementsAre(std::tuple(0u, 1, 1.0), std::tuple(0u, 2, 2.0)));
  EXPECT_EQ(source_->stats().replaced_files, 0u);
}

TEST_F(TfeventsSourceTest, FileThatBeginsAlikeAndStaysOtherwiseIsAnotherOne) {
  const std::string path = Path("run", kFirstFile);
  WriteFile(path, FileVersionRecord(1) + ScalarRecord(2, 1, "a", 1));
  Cycle();
  WriteFile(path, FileVersionRecord(1) + ScalarRecord(2, 1, "a", 5));
  Cycle();
  EXPECT_THAT(Stored("a"), SizeIs(1));
  CycleLater();
  EXPECT_THAT(Stored("a"), ElementsAre(std::tuple(0u, 1, 1.0), std::tuple(1u, 1, 5.0)));
  EXPECT_THAT(log_, ElementsAre(HasSubstr("another file")));
}

// Rotation and synchronizing tools put a file in the place of another; the number of its inode says
// nothing, since it may be used again.
TEST_F(TfeventsSourceTest, SameContentUnderANewInodeIsTheSameFile) {
  const std::string first = FileVersionRecord(1) + ScalarRecord(2, 1, "a", 1);
  WriteFile(Path("run", kFirstFile), first);
  Cycle();
  WriteFile(Path("run", "copy"), first + ScalarRecord(3, 2, "a", 2));
  fs::rename(root_ / "run" / "copy", root_ / "run" / kFirstFile);
  Cycle();
  EXPECT_THAT(Stored("a"), ElementsAre(std::tuple(0u, 1, 1.0), std::tuple(0u, 2, 2.0)));
}

TEST_F(TfeventsSourceTest, FileThatMayNotBeReadIsSaidOnceAndReadWhenItMay) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become somebody else";
  WriteFile(Path("closed", kFirstFile), ScalarRecord(2, 1, "a", 1));
  WriteFile(Path("open", kFirstFile), ScalarRecord(2, 1, "a", 1));
  fs::permissions(Path("closed", kFirstFile), fs::perms::none);
  ::setfsuid(65534);
  for (int cycle = 0; cycle < 3; ++cycle) Cycle();
  ::setfsuid(0);
  EXPECT_THAT(Stored("a"), SizeIs(1));
  EXPECT_THAT(log_, ElementsAre(HasSubstr("Permission denied")));
  Cycle();
  EXPECT_THAT(Stored("a"), SizeIs(2));
}

TEST_F(TfeventsSourceTest, PipesAndDevicesHoldUpNothing) {
  fs::create_directories(root_ / "run");
  ASSERT_EQ(::mkfifo(Path("run", kFirstFile).c_str(), 0600), 0);
  WriteFile(Path("run", kSecondFile), ScalarRecord(2, 1, "a", 1));
  Cycle();
  EXPECT_THAT(Stored("a"), SizeIs(1));
}

// 50 MB of one run, and a row of another now and then: it never waits for the long file's end.
TEST_F(TfeventsSourceTest, LongFileHoldsUpNoOther) {
  std::string piece;
  for (int step = 0; step < 20'000; ++step) {
    piece += Record(BytesField(4, std::string(400, 'g')));
    if (step % 100 == 0) piece += ScalarRecord(100 + step, step, "long", 1);
  }
  const std::string path = Path("long", kFirstFile);
  WriteFile(path, "");
  int pieces = 0;
  for (; fs::file_size(path) < (50u << 20); ++pieces) AppendToFile(path, piece);
  WriteFile(Path("short", kFirstFile), ScalarRecord(1, 0, "short", 0));
  turn_ = absl::Milliseconds(2);
  Restart();

  int written = 1;
  int longest_wait = 0;  // In polls.
  int waited = 0;
  const auto is_read = [&] { return Stored("long").size() == static_cast<size_t>(pieces) * 200; };
  for (int poll = 0; poll < 100'000 && !is_read(); ++poll) {
    now_ += absl::Milliseconds(500);
    source_->Poll(now_, &sink_);
    ++waited;
    if (Stored("short").size() < static_cast<size_t>(written)) continue;
    longest_wait = std::max(longest_wait, waited);
    waited = 0;
    AppendToFile(Path("short", kFirstFile), ScalarRecord(1 + written, written, "short", 1));
    ++written;
  }
  EXPECT_TRUE(is_read());
  EXPECT_GT(written, 5);
  EXPECT_LE(longest_wait, 8) << "4 polls of 0.5 s until it is looked at, and some to read";
}

TEST_F(TfeventsSourceTest, OldFilesLeaveMostOfTheProcessorToOthers) {
  std::string bytes;
  for (int step = 0; step < 5000; ++step) bytes += ScalarRecord(100 + step, step, "a", 1);
  WriteFile(Path("run", kFirstFile), bytes);
  TfeventsOptions options;
  options.turn = absl::Microseconds(1);
  auto source = TfeventsSource::Create(config_, std::move(options));
  ASSERT_TRUE(source.ok());
  for (int poll = 0; poll < 5; ++poll) {
    EXPECT_EQ((*source)->Poll(now_, &sink_), now_ + absl::Microseconds(3));
  }
}

TEST_F(TfeventsSourceTest, TagsBeyondTheLimitAreLeftOutAndCounted) {
  max_series_ = 3;
  Restart();
  std::string bytes;
  for (int tag = 0; tag < 5; ++tag) bytes += ScalarRecord(2, 1, absl::StrCat("t", tag), 1);
  WriteFile(Path("run", kFirstFile), bytes);
  Cycle();
  AppendToFile(Path("run", kFirstFile), ScalarRecord(3, 2, "t0", 1));
  Cycle();
  EXPECT_THAT(sink_.samples, SizeIs(4));
  EXPECT_EQ(source_->stats().refused, 2u);
  EXPECT_THAT(log_, ::testing::Each(HasSubstr("more than 3 tags")));
}

}  // namespace
}  // namespace tacho::agent
