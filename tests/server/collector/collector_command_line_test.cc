#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/command_line.h"

namespace tacho::server {
namespace {

using Mode = CommandLine::Mode;
using testing::HasSubstr;

absl::StatusOr<CommandLine> Parse(const std::vector<const char*>& arguments) {
  return ParseCommandLine(arguments);
}

TEST(CommandLineTest, NothingRunsWithDefaults) {
  const auto line = Parse({});
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->mode, Mode::kRun);
  EXPECT_EQ(line->config, "");
}

TEST(CommandLineTest, CheckStoreIsAModeWithItsDirectory) {
  const auto line = Parse({"--check-store", "/backup/x"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->mode, Mode::kCheckStore);
  EXPECT_EQ(line->check_store, "/backup/x");
  EXPECT_FALSE(Parse({"--check-store"}).ok());
  EXPECT_FALSE(Parse({"--check-store", "x", "--check-store", "y"}).ok());
  EXPECT_FALSE(Parse({"--check-store", "x", "--check-config"}).ok());
  EXPECT_FALSE(Parse({"--version", "--check-store=x"}).ok());
}

TEST(CommandLineTest, BucketsAreCheckedAndRestoredFrom) {
  const auto check = Parse({"--config", "a.yaml", "--check-bucket", "--deep"});
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_EQ(check->mode, Mode::kCheckBucket);
  EXPECT_TRUE(check->deep);
  const auto restore =
      Parse({"--config", "a.yaml", "--restore-from-bucket", "/new", "--days", "7"});
  ASSERT_TRUE(restore.ok()) << restore.status();
  EXPECT_EQ(restore->mode, Mode::kRestoreFromBucket);
  EXPECT_EQ(restore->restore, "/new");
  EXPECT_EQ(restore->days, 7u);
  EXPECT_FALSE(Parse({"--restore-from-bucket", "/new"})->days.has_value());
  EXPECT_FALSE(Parse({"--restore-from-bucket", "/new", "--days", "-1"}).ok());
  EXPECT_FALSE(Parse({"--restore-from-bucket", "/new", "--days", "all"}).ok());
  EXPECT_FALSE(Parse({"--restore-from-bucket", "/new", "--deep"}).ok());
  EXPECT_FALSE(Parse({"--check-bucket", "--days", "7"}).ok());
  EXPECT_FALSE(Parse({"--days", "7"}).ok());
  EXPECT_FALSE(Parse({"--check-bucket", "--restore-from-bucket", "/new"}).ok());
}

TEST(CommandLineTest, ValuesComeAfterASpaceOrAnEqualsSign) {
  const auto line = Parse({"--config", "a.yaml", "--grpc=127.0.0.1:0", "--http", "[::1]:0",
                           "--data=/x=y", "--port-file", "ports", "--check-config"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->config, "a.yaml");
  EXPECT_EQ(line->grpc, "127.0.0.1:0");
  EXPECT_EQ(line->http, "[::1]:0");
  EXPECT_EQ(line->data, "/x=y");
  EXPECT_EQ(line->port_file, "ports");
  EXPECT_EQ(line->mode, Mode::kCheckConfig);
}

TEST(CommandLineTest, MistakesNameTheArgumentAndPointToTheHelp) {
  for (const auto& arguments : std::vector<std::vector<const char*>>{{"serve"},
                                                                     {"-c"},
                                                                     {"--confg"},
                                                                     {"--config"},
                                                                     {"--config="},
                                                                     {"--help=yes"},
                                                                     {"--help", "--version"},
                                                                     {""}}) {
    const auto line = Parse(arguments);
    ASSERT_FALSE(line.ok()) << arguments[0];
    EXPECT_THAT(std::string(line.status().message()), HasSubstr(arguments.back()));
    EXPECT_THAT(std::string(line.status().message()), HasSubstr("--help"));
  }
}

TEST(CommandLineTest, AMistypedOptionIsAnsweredWithTheNearest) {
  EXPECT_THAT(std::string(Parse({"--confg", "x"}).status().message()),
              HasSubstr("did you mean '--config'?"));
  EXPECT_THAT(std::string(Parse({"--help", "--version"}).status().message()),
              HasSubstr("--help and --version exclude each other"));
}

TEST(CommandLineTest, TheLastValueOfAnOptionCounts) {
  EXPECT_EQ(Parse({"--data", "a", "--data", "b"})->data, "b");
}

TEST(CommandLineTest, HelpNamesEveryOption) {
  for (const char* option :
       {"--config", "--grpc", "--http", "--data", "--port-file", "--check-config", "--print-config",
        "--check-store", "--check-bucket", "--restore-from-bucket", "--days", "--deep",
        "--make-token", "--version", "--help"}) {
    EXPECT_THAT(kCommandLineHelp, HasSubstr(option));
  }
}

}  // namespace
}  // namespace tacho::server
