#include "server/interop/formats/label_mapping.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tacho::server::interop {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

config::v1::MappingRule* AddRule(config::v1::Interop* config) {
  auto* const rule = config->add_mapping();
  rule->set_job("{job}");  // As ParseYaml() leaves it.
  rule->set_host("{instance|host:unknown}");
  rule->set_task("{task}");
  rule->set_attempt("{attempt}");
  rule->set_metric("{__name__}");
  return rule;
}

void Match(config::v1::MappingRule* rule, const char* name, const char* pattern) {
  auto* const match = rule->add_match();
  match->set_name(name);
  match->set_pattern(pattern);
}

MappedSeries Map(const config::v1::Interop& config, storage::Labels labels) {
  const auto mapping = LabelMapping::Create(config);
  EXPECT_TRUE(mapping.ok()) << mapping.status();
  auto mapped = (*mapping)->Map(std::move(labels));
  EXPECT_TRUE(mapped.ok()) << mapped.status();
  return *std::move(mapped);
}

TEST(LabelMappingTest, AScrapedSeriesKeepsItsJobAndTheHostOfItsInstance) {
  const auto mapped = Map({}, {{"__name__", "up"}, {"job", "node"}, {"instance", "h7:9100"}});
  EXPECT_EQ(mapped.metric, "up");
  EXPECT_EQ(mapped.source.job, "node");
  EXPECT_EQ(mapped.source.host, "h7");
  EXPECT_FALSE(mapped.source.task.has_value());
  // Two programs of one host stay apart by it.
  EXPECT_THAT(mapped.labels, ElementsAre(Pair("instance", "h7:9100")));
}

TEST(LabelMappingTest, AHostIsFoundInAddressesOfAllKinds) {
  for (const auto& [instance, host] : {std::pair("10.0.0.7:9100", "10.0.0.7"),
                                       {"[fe80::1]:9100", "fe80::1"},
                                       {"fe80::1", "fe80::1"},
                                       {"h7", "h7"},
                                       {":9100", ":9100"}}) {
    EXPECT_EQ(Map({}, {{"__name__", "up"}, {"instance", instance}}).source.host, host);
  }
}

TEST(LabelMappingTest, TaskAndAttemptAreNumbersOrStayLabels) {
  auto mapped = Map({}, {{"__name__", "loss"}, {"job", "j"}, {"task", "3"}, {"attempt", "2"}});
  EXPECT_EQ(mapped.source.task, 3u);
  EXPECT_EQ(mapped.source.attempt, 2u);
  EXPECT_TRUE(mapped.labels.empty());

  mapped = Map({}, {{"__name__", "loss"}, {"job", "j"}, {"task", "classify"}});
  EXPECT_FALSE(mapped.source.task.has_value());
  EXPECT_THAT(mapped.labels, ElementsAre(Pair("exported_task", "classify")));
}

TEST(LabelMappingTest, NamesThatAreNotAllowedAreChanged) {
  const auto mapped = Map({}, {{"__name__", "m"},
                               {"__meta", "x"},
                               {"service.version", "1"},
                               {"9lives", "cat"},
                               {"overflow", "true"},
                               {"empty", ""}});
  EXPECT_THAT(mapped.labels, ElementsAre(Pair("_9lives", "cat"), Pair("exported_overflow", "true"),
                                         Pair("service_version", "1")));
}

TEST(LabelMappingTest, LabelsThatBecomeOneNameAreJoined) {
  const auto mapped = Map({}, {{"__name__", "m"}, {"a.b", "1"}, {"a_b", "2"}});
  EXPECT_THAT(mapped.labels, ElementsAre(Pair("a_b", "1;2")));
}

TEST(LabelMappingTest, TheFirstRuleThatFitsDecides) {
  config::v1::Interop config;
  auto* const trainer = AddRule(&config);
  Match(trainer, "namespace", "ml-.*");
  trainer->set_job("{namespace}/{run}");
  trainer->set_task("{rank}");
  (*trainer->mutable_rename_labels())["gpu"] = "chip";
  trainer->add_drop_labels("pod");
  AddRule(&config)->set_job("all/{job}");

  const storage::Labels labels = {{"__name__", "loss"}, {"namespace", "ml-7"}, {"run", "r1"},
                                  {"rank", "4"},        {"gpu", "0"},          {"pod", "p"},
                                  {"instance", "h:1"},  {"job", "x"}};
  const auto mapped = Map(config, labels);
  EXPECT_EQ(mapped.rule, "interop.mapping[0]");
  EXPECT_EQ(mapped.source.job, "ml-7/r1");
  EXPECT_EQ(mapped.source.task, 4u);
  EXPECT_THAT(mapped.labels,
              ElementsAre(Pair("chip", "0"), Pair("exported_job", "x"), Pair("instance", "h:1")));

  // Without {run} the first does not fit after all.
  const auto without = Map(config, {{"__name__", "loss"}, {"namespace", "ml-7"}, {"job", "x"}});
  EXPECT_EQ(without.rule, "interop.mapping[1]");
  EXPECT_EQ(without.source.job, "all/x");
}

TEST(LabelMappingTest, ADroppedSeriesIsNothing) {
  config::v1::Interop config;
  auto* const rule = AddRule(&config);
  Match(rule, "__name__", "go_.*");
  rule->set_drop(true);
  EXPECT_TRUE(Map(config, {{"__name__", "go_threads"}, {"job", "x"}}).dropped);
  EXPECT_FALSE(Map(config, {{"__name__", "ago_threads"}, {"job", "x"}}).dropped) << "whole name";
}

TEST(LabelMappingTest, TheCollectorsOwnAggregatesAreDroppedUnlessARuleTakesThem) {
  const storage::Labels labels = {{"__name__", "tacho_job_loss"}, {"job", "vision"}};
  EXPECT_TRUE(Map({}, labels).dropped);
  config::v1::Interop config;
  AddRule(&config);
  EXPECT_FALSE(Map(config, labels).dropped);
}

TEST(LabelMappingTest, ASeriesWithoutANameOrWithALabelTwiceIsRefused) {
  const auto mapping = *LabelMapping::Create({});
  EXPECT_THAT(mapping->Map({{"job", "x"}}).status().message(), HasSubstr("no metric name"));
  EXPECT_THAT(mapping->Map({{"__name__", "m"}, {"a", "1"}, {"a", "2"}}).status().message(),
              HasSubstr("\"a\" twice"));
}

TEST(LabelMappingTest, AWrongRuleIsNamedByItsKey) {
  for (const char* text : {"{job", "job}", "{}", "{a,}", "{a|b}"}) {
    config::v1::Interop config;
    AddRule(&config)->set_host(text);
    EXPECT_THAT(LabelMapping::Create(config).status().message(),
                HasSubstr("interop.mapping[0].host: "))
        << text;
  }
  config::v1::Interop config;
  Match(AddRule(&config), "a", "(");
  EXPECT_THAT(LabelMapping::Create(config).status().message(),
              HasSubstr("interop.mapping[0].match: "));
}

}  // namespace
}  // namespace tacho::server::interop
