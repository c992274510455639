#include "proto/config/yaml_config.h"

#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "tacho/config/v1/agent.pb.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::config {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kSecond = 1'000'000'000;

// The text of the refusal; "" if `text` was accepted.
template <typename Config>
std::string MistakesOf(absl::string_view text) {
  Config config;
  return std::string(ParseYaml(text, "f.yaml", &config).message());
}

TEST(ParseYamlTest, EmptyFileIsAllDefaultsAtEveryDepth) {
  for (const char* text : {"", "\n# nothing\n", "---\n", "{}", "storage:\n"}) {
    v1::Collector config;
    ASSERT_TRUE(ParseYaml(text, "f.yaml", &config).ok()) << text;
    EXPECT_EQ(config.listen().grpc(), "127.0.0.1:7411");
    EXPECT_EQ(config.storage().retention(), 90 * 86400 * kSecond);
    EXPECT_EQ(config.storage().journal_queue_bytes(), 64u << 20);
    EXPECT_EQ(config.query().max_concurrent(), 16u);
    EXPECT_EQ(config.log().level(), "info");
  }
}

TEST(ParseYamlTest, AnInheritingListBeginsWithWhatStandsBesideItWhereverThatIs) {
  v1::Collector config;
  const absl::Status read = ParseYaml(R"(
conditions:
  jobs:
    - {pattern: "eval-.*", progress: {stalled: {enabled: false, for: 0s}}}
    - {pattern: ".*"}
  progress:
    stalled: {for: 7m, severity: info}
)",
                                      "f.yaml", &config);
  ASSERT_TRUE(read.ok()) << read;
  ASSERT_EQ(config.conditions().jobs_size(), 2);
  const auto& eval = config.conditions().jobs(0).progress().stalled();
  EXPECT_FALSE(eval.enabled());
  EXPECT_EQ(eval.for_(), 0);
  EXPECT_EQ(eval.severity(), "info");
  const auto& other = config.conditions().jobs(1);
  EXPECT_TRUE(MessageDifferencer::Equals(other.progress(), config.conditions().progress()));
  EXPECT_TRUE(MessageDifferencer::Equals(other.curves(), config.conditions().curves()));
  EXPECT_EQ(other.progress().stalled().for_(), 7 * 60 * kSecond);

  v1::Collector again;
  EXPECT_TRUE(ParseYaml(PrintYaml(config), "f.yaml", &again).ok());
  EXPECT_TRUE(MessageDifferencer::Equals(config, again)) << PrintYaml(config);
}

TEST(ParseYamlTest, AnInheritingListTakesNumbersTooAndHasItsOwnDefaultsElse) {
  config::v1::Agent config;
  ASSERT_TRUE(ParseYaml("sources:\n"
                        "  endpoints:\n"
                        "    targets:\n"
                        "      - {url: 'http://h:1/m'}\n"
                        "      - {url: 'http://h:2/m', interval: 3s, series: {task: '7'}}\n"
                        "    interval: 2s\n",
                        "f.yaml", &config)
                  .ok());
  const auto& endpoints = config.sources().endpoints();
  ASSERT_EQ(endpoints.targets_size(), 2);
  EXPECT_EQ(endpoints.targets(0).interval(), 2'000'000'000);
  EXPECT_EQ(endpoints.targets(0).timeout(), endpoints.timeout());
  EXPECT_EQ(endpoints.targets(0).max_body_bytes(), uint64_t{8} << 20);
  EXPECT_EQ(endpoints.targets(0).max_series(), 5000u);
  EXPECT_TRUE(endpoints.targets(0).timestamps());
  EXPECT_EQ(endpoints.targets(0).series().job(), "hosts");
  EXPECT_EQ(endpoints.targets(1).interval(), 3'000'000'000);
  EXPECT_EQ(endpoints.targets(1).series().job(), "hosts");
  EXPECT_EQ(endpoints.targets(1).series().task(), "7");
}

TEST(ParseYamlTest, MistakesInAnInheritingListNameTheLine) {
  EXPECT_EQ(
      MistakesOf<v1::Collector>("conditions:\n  jobs:\n    - progress: {stalled: {fro: 1s}}\n"),
      "f.yaml:3: conditions.jobs[0].progress.stalled.fro: unknown key; did you mean for?\n"
      "f.yaml:3: conditions.jobs[0].pattern: is required and empty; expected a regular expression");
  EXPECT_THAT(MistakesOf<v1::Collector>("conditions: {jobs: 1}"),
              HasSubstr("f.yaml:1: conditions.jobs: is '1'; expected a list"));
}

TEST(ParseYamlTest, ForgetsWhatTheMessageHeldBefore) {
  v1::Collector config;
  config.mutable_listen()->set_grpc("other:1");
  ASSERT_TRUE(ParseYaml("", "f.yaml", &config).ok());
  EXPECT_EQ(config.listen().grpc(), "127.0.0.1:7411");
}

TEST(ParseYamlTest, ReadsEveryKindOfValue) {
  v1::Collector config;
  const absl::Status read = ParseYaml(R"(
listen: {grpc: "[::1]:0"}
storage:
  path: /var/lib/tacho
  seal_age: 1h30m
  seal_rows: 64
  block_cache_bytes: 2GB
log:
  level: debug
)",
                                      "f.yaml", &config);
  ASSERT_TRUE(read.ok()) << read;
  EXPECT_EQ(config.listen().grpc(), "[::1]:0");
  EXPECT_EQ(config.listen().http(), "127.0.0.1:7412");
  EXPECT_EQ(config.storage().path(), "/var/lib/tacho");
  EXPECT_EQ(config.storage().seal_age(), 5400 * kSecond);
  EXPECT_EQ(config.storage().seal_rows(), 64u);
  EXPECT_EQ(config.storage().block_cache_bytes(), 2'000'000'000u);
  EXPECT_EQ(config.log().level(), "debug");
}

TEST(ParseYamlTest, ReadsListsAndMapsWithDefaultsInTheirElements) {
  v1::Agent config;
  const absl::Status read = ParseYaml(R"(
identity:
  labels: {zone: b, rack: 17}
sources:
  host: {enabled: false}
  tfevents:
    directories:
      - path: /logs
      - {path: /more, run_pattern: '(?P<job>\w+)/(?P<task>\d+)', task: 3}
)",
                                      "f.yaml", &config);
  ASSERT_TRUE(read.ok()) << read;
  EXPECT_EQ(config.identity().labels().at("zone"), "b");
  EXPECT_EQ(config.identity().labels().at("rack"), "17");
  EXPECT_FALSE(config.sources().host().enabled());
  ASSERT_EQ(config.sources().tfevents().directories_size(), 2);
  EXPECT_EQ(config.sources().tfevents().directories(0).run_pattern(), "(?P<job>.*)");
  EXPECT_EQ(config.sources().tfevents().directories(0).job(), "{job}");
  EXPECT_EQ(config.sources().tfevents().directories(1).task(), 3u);
  EXPECT_EQ(config.sources().rings().directory(), "/run/tacho");
}

TEST(ParseYamlTest, NamesLineKeyAndNearestKeyOfAnUnknownKey) {
  EXPECT_EQ(MistakesOf<v1::Collector>("storage:\n  path: x\n  seal_agee: 10m\n"),
            "f.yaml:3: storage.seal_agee: unknown key; did you mean seal_age?");
  EXPECT_THAT(MistakesOf<v1::Collector>("colour: red\n"),
              AllOf(StartsWith("f.yaml:1: colour: unknown key; known here: listen, storage")));
  EXPECT_THAT(MistakesOf<v1::Collector>(absl::StrCat(std::string(1000, 'x'), ": 1\n")),
              HasSubstr("known here"));
}

TEST(ParseYamlTest, RefusesAKeyGivenTwice) {
  EXPECT_EQ(MistakesOf<v1::Collector>("log:\n  level: info\n  level: warn\n"),
            "f.yaml:3: log.level: is given twice; expected once");
  EXPECT_EQ(MistakesOf<v1::Agent>("identity:\n  labels:\n    a: b\n    a: c\n"),
            "f.yaml:4: identity.labels.a: is given twice; expected once");
}

TEST(ParseYamlTest, SaysWhatWasExpectedInsteadOfAWrongType) {
  const struct {
    const char* text;
    const char* mistake;
  } kCases[] = {
      {"storage: 5", "f.yaml:1: storage: is '5'; expected a mapping of keys"},
      {"[a]", "f.yaml:1: the file: is a list; expected a mapping of keys"},
      {"storage: {path: [a]}", "f.yaml:1: storage.path: is a list; expected a path"},
      {"storage:\n  path:\n", "f.yaml:2: storage.path: is nothing; expected a path"},
      {"storage: {seal_rows: many}",
       "f.yaml:1: storage.seal_rows: 'many' is not a whole number from 0 to 4294967295"},
      {"storage: {seal_rows: -1}",
       "f.yaml:1: storage.seal_rows: '-1' is not a whole number from 0 to 4294967295"},
      {"storage: {seal_rows: 4294967296}",
       "f.yaml:1: storage.seal_rows: '4294967296' is not a whole number from 0 to 4294967295"},
      {"storage: {seal_rows: '64'}",
       "f.yaml:1: storage.seal_rows: '64' is a text; expected a whole number without quotes"},
      {"? [a]\n: b", "f.yaml:1: the file: has a list as a key; expected a name"},
  };
  for (const auto& [text, mistake] : kCases) {
    EXPECT_EQ(MistakesOf<v1::Collector>(text), mistake);
  }
  EXPECT_THAT(MistakesOf<v1::Collector>("storage: {seal_age: 600}"),
              HasSubstr("storage.seal_age: '600' is not a duration; expected one such as"));
  EXPECT_THAT(MistakesOf<v1::Agent>("sources: {host: {enabled: yes}}"),
              HasSubstr("sources.host.enabled: 'yes' is not true or false"));
  EXPECT_THAT(MistakesOf<v1::Agent>("sources: {tfevents: {directories: /logs}}"),
              HasSubstr("is '/logs'; expected a list, each element a mapping of keys"));
  EXPECT_THAT(MistakesOf<v1::Agent>("identity: {labels: [a]}"),
              HasSubstr("is a list; expected a mapping of names to texts"));
}

TEST(ParseYamlTest, RefusesImpossibleValues) {
  const struct {
    const char* text;
    const char* mistake;
  } kCases[] = {
      {"storage: {seal_age: 7h}", "storage.seal_age: 7h is too large; expected at most 6h"},
      {"storage: {seal_age: 999ms}", "storage.seal_age: 999ms is too small; expected at least 1s"},
      {"storage: {retention: -1s}", "storage.retention: -1s is too small; expected at least 0s"},
      {"storage: {seal_rows: 15}", "storage.seal_rows: 15 is too small; expected at least 16"},
      {"ingest: {max_message_bytes: 1GiB}", "1GiB is too large; expected at most 256MiB"},
      {"listen: {grpc: '7411'}", "listen.grpc: '7411' has no port; expected host:port"},
      {"listen: {grpc: ''}", "listen.grpc: is required and empty; expected an address"},
      {"log: {level: loud}", "log.level: 'loud' is not one of debug, info, warn, error"},
      {"storage: {path: \"a\\0b\"}", "storage.path: must not contain a NUL byte"},
  };
  for (const auto& [text, mistake] : kCases) {
    EXPECT_THAT(MistakesOf<v1::Collector>(text), HasSubstr(mistake)) << text;
  }
  EXPECT_THAT(
      MistakesOf<v1::Agent>("sources: {tfevents: {directories: [{path: a, run_pattern: '('}]}}"),
      HasSubstr("directories[0].run_pattern: '(' is not a regular expression of RE2"));
}

TEST(ParseYamlTest, TakesTheValuesAtTheBounds) {
  EXPECT_EQ(MistakesOf<v1::Collector>("storage: {seal_age: 6h, seal_rows: 16, retention: 0}"), "");
  EXPECT_EQ(MistakesOf<v1::Collector>("storage: {retention_bytes: 2TiB}"), "");
  EXPECT_EQ(MistakesOf<v1::Collector>("ingest: {max_message_bytes: 256MiB}"), "");
}

TEST(ParseYamlTest, MissingRequiredKeyNamesTheLineOfItsElement) {
  EXPECT_EQ(MistakesOf<v1::Agent>("sources:\n  tfevents:\n    directories:\n      - task: 1\n"),
            "f.yaml:4: sources.tfevents.directories[0].path: is required and empty; expected a "
            "path");
}

TEST(ParseYamlTest, ReportsEveryMistakeInTheOrderOfTheFile) {
  EXPECT_EQ(MistakesOf<v1::Collector>("storage:\n"
                                      "  path: ''\n"
                                      "  seal_age: soon\n"
                                      "log: {level: loud}\n"
                                      "logs: {}\n"),
            "f.yaml:2: storage.path: is required and empty; expected a path\n"
            "f.yaml:3: storage.seal_age: 'soon' is not a duration; expected one such as 500ms, "
            "90s, 1h30m, 30d\n"
            "f.yaml:4: log.level: 'loud' is not one of debug, info, warn, error\n"
            "f.yaml:5: logs: unknown key; did you mean log?");
}

TEST(ParseYamlTest, CountsTheMistakesThatItDoesNotPrint) {
  std::string text;
  for (int i = 0; i < 60; ++i) absl::StrAppend(&text, "unknown_key_", i, ": 1\n");
  EXPECT_THAT(MistakesOf<v1::Collector>(text), HasSubstr("\nand 10 more"));
}

TEST(ParseYamlTest, NamesTheLineWhereTheFileStopsBeingYaml) {
  EXPECT_THAT(MistakesOf<v1::Collector>("log:\n  level: info\n   bad: [\n"),
              AllOf(StartsWith("f.yaml:3: the file: is not YAML: ")));
  EXPECT_THAT(MistakesOf<v1::Collector>("log: {level: \"\xff\"}"), HasSubstr("is not UTF-8"));
  EXPECT_THAT(MistakesOf<v1::Collector>("log: {}\n---\nlog: {}\n"),
              StartsWith("f.yaml:2: the file: does not end with its first document"));
  EXPECT_THAT(MistakesOf<v1::Collector>(","), HasSubstr("does not end with its first document"));
  EXPECT_EQ(MistakesOf<v1::Collector>("---\nlog: {}\n...\n"), "");
  EXPECT_THAT(MistakesOf<v1::Collector>(std::string(100000, '[')), HasSubstr("is not YAML"));
  EXPECT_THAT(MistakesOf<v1::Collector>(std::string((4 << 20) + 1, ' ')), HasSubstr("is larger"));
}

TEST(ParseYamlTest, RefusesWhatItCouldNotPrintAgain) {
  // yaml-cpp ends the text at 0x04, and turns \N and \_ into bytes that are no UTF-8.
  EXPECT_THAT(MistakesOf<v1::Collector>("log: {}\nstorage: {path: \"a\x04\"}\n"),
              StartsWith("f.yaml:2: the file: has the control character 0x04"));
  EXPECT_THAT(MistakesOf<v1::Collector>(absl::string_view("\0l\0o\0g", 6)),
              StartsWith("f.yaml:1: the file: has the control character 0x00"));
  EXPECT_EQ(MistakesOf<v1::Collector>("storage:\n  path: \"a\\Nb\"\n"),
            "f.yaml:2: storage.path: is not UTF-8");
  EXPECT_EQ(MistakesOf<v1::Collector>("storage:\n  path: \"a\\x04b\"\n"), "");
}

TEST(ParseYamlTest, AliasesCannotMultiplyTheWork) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 40; ++i) {
    const std::string alias = absl::StrCat("*a", i - 1);
    absl::StrAppend(&text, "a", i, ": &a", i, " [", alias, ", ", alias, ", ", alias, "]\n");
  }
  EXPECT_THAT(MistakesOf<v1::Collector>(text), HasSubstr("a39: unknown key"));
}

TEST(PrintYamlTest, DefaultsAreReadBackAsTheSame) {
  v1::Collector collector;
  v1::Agent agent;
  ASSERT_TRUE(ParseYaml("", "f.yaml", &collector).ok());
  ASSERT_TRUE(ParseYaml("", "f.yaml", &agent).ok());

  v1::Collector collector_again;
  v1::Agent agent_again;
  ASSERT_TRUE(ParseYaml(PrintYaml(collector), "f.yaml", &collector_again).ok());
  ASSERT_TRUE(ParseYaml(PrintYaml(agent), "f.yaml", &agent_again).ok());

  EXPECT_TRUE(MessageDifferencer::Equals(collector, collector_again)) << PrintYaml(collector);
  EXPECT_TRUE(MessageDifferencer::Equals(agent, agent_again)) << PrintYaml(agent);
}

TEST(ParseYamlTest, ListsTheKeysThatAFileGivesWhereADefaultDependsOnTheProfile) {
  v1::Collector config;
  const absl::Status read = ParseYaml(R"(
conditions:
  jobs:
    - {pattern: "a", progress: {straggling: {for: 1m, k: 7}}}
    - {pattern: "b"}
  progress:
    stalled: {floor: 2m, factor: 4}
)",
                                      "f.yaml", &config);
  ASSERT_TRUE(read.ok()) << read;
  const auto& conditions = config.conditions();
  EXPECT_THAT(conditions.given(), ElementsAre("progress.stalled.floor"));
  EXPECT_THAT(conditions.jobs(0).given(),
              ElementsAre("progress.stalled.floor", "progress.straggling.for"));
  EXPECT_THAT(conditions.jobs(1).given(), ElementsAre("progress.stalled.floor"));
  // A printed configuration gives the same keys, and no others.
  const std::string printed = PrintYaml(config);
  EXPECT_THAT(printed, AllOf(HasSubstr("\n      floor: 2m\n"), HasSubstr("\n      # for: 10s\n"),
                             HasSubstr("10s in profile fast"), HasSubstr("5m in profile quiet")));
  v1::Collector again;
  ASSERT_TRUE(ParseYaml(printed, "f.yaml", &again).ok());
  EXPECT_TRUE(MessageDifferencer::Equals(config, again)) << printed;
  EXPECT_THAT(MistakesOf<v1::Collector>("conditions: {given: [a]}"),
              HasSubstr("conditions.given: unknown key"));
}

TEST(PrintYamlTest, AwkwardTextsAreReadBackAsTheSame) {
  for (const char* text : {"~",
                           "null",
                           "true",
                           "a: b",
                           "a #b",
                           "#",
                           "-",
                           "- a",
                           "'",
                           "\"",
                           "\\",
                           "\t\n\r",
                           "{a}",
                           "[a",
                           "*a",
                           "&a",
                           "!a",
                           "%a",
                           "@a",
                           "`a",
                           " a ",
                           "a:",
                           "\x01\x7f",
                           "\xc2\x85",
                           "\xef\xbb\xbf",
                           "\xe2\x80\xa8",
                           "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"}) {
    v1::Agent agent;
    ASSERT_TRUE(ParseYaml("", "f.yaml", &agent).ok());
    agent.mutable_identity()->set_agent_id(text);
    (*agent.mutable_identity()->mutable_labels())[text] = text;
    agent.mutable_sources()->mutable_tfevents()->add_directories()->set_path(text);
    agent.mutable_sources()->mutable_tfevents()->mutable_directories(0)->set_job(text);
    agent.mutable_sources()->mutable_tfevents()->mutable_directories(0)->set_run_pattern(".");

    v1::Agent again;
    const absl::Status read = ParseYaml(PrintYaml(agent), "f.yaml", &again);

    EXPECT_TRUE(read.ok()) << read;
    EXPECT_TRUE(MessageDifferencer::Equals(agent, again)) << PrintYaml(agent);
  }
}

TEST(PrintYamlTest, WritesValuesAsPeopleDoAndHelpAsComments) {
  v1::Collector config;
  ASSERT_TRUE(ParseYaml("", "f.yaml", &config).ok());
  EXPECT_THAT(
      PrintYaml(config),
      AllOf(HasSubstr("# Address for agents and queries."), HasSubstr("\n  grpc: 127.0.0.1:7411\n"),
            HasSubstr("\n  retention: 90d\n"), HasSubstr("\n  seal_age: 10m\n"),
            HasSubstr("\n  journal_queue_bytes: 64MiB\n")));
}

TEST(LoadYamlFileTest, ReadsAFileAndNamesItInMistakes) {
  const std::string path = absl::StrCat(testing::TempDir(), "/tacho_yaml_config_test.yaml");
  std::ofstream(path) << "log: {level: loud}\n";
  v1::Collector config;
  EXPECT_THAT(std::string(LoadYamlFile(path, &config).message()),
              StartsWith(absl::StrCat(path, ":1: log")));
  std::ofstream(path, std::ios::trunc).close();
  EXPECT_TRUE(LoadYamlFile(path, &config).ok());
  EXPECT_EQ(config.log().level(), "info");
  std::remove(path.c_str());
  EXPECT_EQ(LoadYamlFile(path, &config).code(), absl::StatusCode::kNotFound);
}

TEST(LoadYamlFileTest, RefusesADirectory) {
  v1::Collector config;
  EXPECT_FALSE(LoadYamlFile(testing::TempDir(), &config).ok());
}

}  // namespace
}  // namespace tacho::config
