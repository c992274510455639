#include "agent/sources/make_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tacho::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> Names(const config::v1::Agent& config) {
  const auto sources = MakeSources(config, {.host = "host-a"}, {});
  EXPECT_TRUE(sources.ok()) << sources.status();
  std::vector<std::string> names;
  if (sources.ok()) {
    for (const auto& source : *sources) names.emplace_back(source->name());
  }
  return names;
}

TEST(MakeSourcesTest, OnlyWhatIsConfiguredIsMade) {
  config::v1::Agent config;
  EXPECT_THAT(Names(config), IsEmpty());
  auto* host = config.mutable_sources()->mutable_host();
  host->set_enabled(true);
  host->set_interval(1'000'000'000);
  auto* directory = config.mutable_sources()->mutable_tfevents()->add_directories();
  directory->set_path("/logs");
  directory->set_run_pattern("(?P<job>.*)");
  directory->set_job("{job}");
  config.mutable_sources()->mutable_rings()->set_directory("/run/tacho");
  EXPECT_THAT(Names(config), ElementsAre("host", "host_settings", "filesystems",
                                         "network_filesystems", "tfevents", "rings"));
  host->set_max_processes(1);
  config.mutable_sources()->mutable_textfiles()->set_directory("/text");
  config.mutable_sources()->mutable_json_lines()->add_files()->set_path("/log");
  config.mutable_sources()->mutable_endpoints()->add_targets()->set_url("http://h:1/m");
  EXPECT_THAT(Names(config), ElementsAre("host", "host_settings", "filesystems",
                                         "network_filesystems", "processes", "tfevents", "rings",
                                         "endpoint:h:1", "textfiles", "json_lines"));
}

TEST(MakeSourcesTest, NoticesAreWatchedForWhereSomebodyAnnouncesThem) {
  config::v1::Agent config;
  config.mutable_sources()->mutable_notices()->set_enabled(true);
  config.mutable_sources()->mutable_notices()->set_interval(1'000'000'000);
  EXPECT_THAT(Names(config), IsEmpty());
  const MetadataServer server(*ParseHttpUrl("http://h:1"), absl::Seconds(1));
  const auto sources = MakeSources(config, {.host = "host-a", .metadata = server}, {});
  ASSERT_TRUE(sources.ok()) << sources.status();
  ASSERT_THAT(*sources, SizeIs(1));
  EXPECT_EQ(sources->front()->name(), "notices");
}

TEST(MakeSourcesTest, NodeIsWatchedWhereItIsKnown) {
  config::v1::Agent config;
  config.mutable_sources()->mutable_node()->set_enabled(true);
  config.mutable_sources()->mutable_node()->set_interval(1'000'000'000);
  EXPECT_THAT(Names(config), IsEmpty());
  const SourceIdentity identity = {.host = "host-a", .node = NodePlace{.node = "n"}};
  const auto sources = MakeSources(config, identity, {});
  ASSERT_TRUE(sources.ok()) << sources.status();
  ASSERT_THAT(*sources, SizeIs(1));
  EXPECT_EQ(sources->front()->name(), "node");
  config.mutable_sources()->mutable_node()->set_enabled(false);
  EXPECT_THAT(*MakeSources(config, identity, {}), IsEmpty());
}

TEST(MakeSourcesTest, TwoEndpointsOfOneNameAreRefused) {
  config::v1::Agent config;
  config.mutable_sources()->mutable_endpoints()->add_targets()->set_url("http://h:1/a");
  config.mutable_sources()->mutable_endpoints()->add_targets()->set_url("http://h:1/b");
  const auto sources = MakeSources(config, {.host = "host-a"}, {});
  EXPECT_THAT(std::string(sources.status().message()), HasSubstr("two are called endpoint:h:1"));
}

TEST(MakeSourcesTest, ImpossibleTemplateIsRefusedWithItsDirectory) {
  config::v1::Agent config;
  auto* directory = config.mutable_sources()->mutable_tfevents()->add_directories();
  directory->set_path("/logs");
  directory->set_run_pattern(".*");
  directory->set_job("{job}");
  const auto sources = MakeSources(config, {.host = "host-a"}, {});
  EXPECT_EQ(sources.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(sources.status().message()), HasSubstr("/logs"));
}

}  // namespace
}  // namespace tacho::agent
