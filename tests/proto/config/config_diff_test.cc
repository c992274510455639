#include "proto/config/config_diff.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/config/yaml_config.h"
#include "tacho/config/v1/agent.pb.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

template <typename Config>
Config Read(absl::string_view text) {
  Config config;
  const absl::Status read = ParseYaml(text, "f.yaml", &config);
  EXPECT_TRUE(read.ok()) << read;
  return config;
}

template <typename Config>
std::vector<std::string> Diff(absl::string_view before, absl::string_view after) {
  return KeysThatNeedRestart(Read<Config>(before), Read<Config>(after));
}

TEST(KeysThatNeedRestartTest, AreNoneWhereNothingChanged) {
  EXPECT_THAT(Diff<v1::Collector>("", ""), IsEmpty());
  EXPECT_THAT(Diff<v1::Collector>("", "storage: {retention: 90d}\n"), IsEmpty()) << "the default";
}

TEST(KeysThatNeedRestartTest, AreNamedWithTheirPathsInTheOrderOfTheSchema) {
  EXPECT_THAT(Diff<v1::Collector>("",
                                  "storage: {seal_rows: 64, path: elsewhere}\n"
                                  "listen: {http: '127.0.0.1:1'}\n"),
              ElementsAre("listen.http", "storage.path", "storage.seal_rows"));
}

TEST(KeysThatNeedRestartTest, LeaveOutWhatCanBeReloadedAndWhatIsBelowIt) {
  EXPECT_THAT(Diff<v1::Collector>("", "metrics: {staleness: 1m, max_series: 7}\n"), IsEmpty());
  EXPECT_THAT(Diff<v1::Collector>("", "metrics: {staleness: 1m}\nstorage: {seal_rows: 64}\n"),
              ElementsAre("storage.seal_rows"));
}

TEST(KeysThatNeedRestartTest, TakeListsAndMapsAsOneKeyEach) {
  const char* const two =
      "sources: {tfevents: {directories: [{path: /a}, {path: /b}]}}\n"
      "identity: {labels: {rack: r1, row: '2'}}\n";
  const char* const other_order =
      "sources: {tfevents: {directories: [{path: /b}, {path: /a}]}}\n"
      "identity: {labels: {row: '2', rack: r1}}\n";
  EXPECT_THAT(Diff<v1::Agent>(two, two), IsEmpty());
  EXPECT_THAT(Diff<v1::Agent>(two, other_order), ElementsAre("sources.tfevents.directories"))
      << "a list has an order, a map has none";
  EXPECT_THAT(Diff<v1::Agent>(two, ""),
              ElementsAre("identity.labels", "sources.tfevents.directories"));
}

TEST(PrintYamlTest, MarksWhatCanBeReloaded) {
  const std::string printed = PrintYaml(Read<v1::Collector>(""));
  EXPECT_THAT(printed, HasSubstr("What /metrics shows. (reloaded on SIGHUP)"));
}

}  // namespace
}  // namespace tacho::config
