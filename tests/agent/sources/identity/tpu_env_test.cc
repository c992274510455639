#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "agent/sources/identity/fact_files.h"

namespace tacho::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(TpuEnvTest, LinesOfAV4AreRead) {
  EXPECT_THAT(ParseTpuEnv("ACCELERATOR_TYPE: 'v4-256'\n"
                          "CHIPS_PER_HOST_BOUNDS: '2,2,1'\n"
                          "TOPOLOGY: '4x4x8'\n"
                          "TPU_RUNTIME_METRICS_PORTS: '8431,8432,8433,8434'\n"
                          "WRAP: 'true,true,true'\n"),
              ElementsAre(Pair("ACCELERATOR_TYPE", "v4-256"),
                          Pair("CHIPS_PER_HOST_BOUNDS", "2,2,1"), Pair("TOPOLOGY", "4x4x8"),
                          Pair("TPU_RUNTIME_METRICS_PORTS", "8431,8432,8433,8434"),
                          Pair("WRAP", "true,true,true")));
}

TEST(TpuEnvTest, OtherScalarsOfYamlAreRead) {
  EXPECT_THAT(
      ParseTpuEnv("\xef\xbb\xbf"
                  "A: bare\r\n"
                  "B: 7  # a comment\n"
                  "C: a#b\n"
                  "# D: 'x'\n"
                  "\n"
                  "  E  :   'it''s'   # here\n"
                  "F: \"a\\\"b\\\\c\\n\"\n"
                  "G: ''\n"
                  "H:\n"
                  "I: grpc://10.0.0.1:8470\n"
                  "J: 'no line end'"),
      UnorderedElementsAre(Pair("A", "bare"), Pair("B", "7"), Pair("C", "a#b"), Pair("E", "it's"),
                           Pair("F", "a\"b\\c\n"), Pair("G", ""), Pair("H", ""),
                           Pair("I", "grpc://10.0.0.1:8470"), Pair("J", "no line end")));
}

TEST(TpuEnvTest, DamagedLinesCostOnlyThemselves) {
  constexpr char kText[] =
      "NO_COLON 'x'\n"
      "A: 'no end\n"
      "B: 'text' behind\n"
      "C: \"no end\\\"\n"
      "D: \"\\x41\"\n"
      "E: \"\\\n"
      ": 'no key'\n"
      "A KEY: 'x'\n"
      "K\xc3\x84Y: 'x'\n"
      "N: 'a\0b'\n"
      "GOOD: '1'\n";
  EXPECT_THAT(ParseTpuEnv({kText, sizeof(kText) - 1}), ElementsAre(Pair("GOOD", "1")));
}

TEST(TpuEnvTest, LastOfEqualKeysCounts) {
  EXPECT_THAT(ParseTpuEnv("A: '1'\nA: '2'\n"), ElementsAre(Pair("A", "2")));
}

TEST(TpuEnvTest, LimitsHoldAtTheirEdges) {
  const std::string key(kMaxTpuEnvKey, 'K');
  const std::string value(kMaxTpuEnvValue, 'v');
  EXPECT_EQ(ParseTpuEnv(absl::StrCat(key, ": '", value, "'")).size(), 1);
  EXPECT_THAT(ParseTpuEnv(absl::StrCat(key, "K: 'x'")), IsEmpty());
  EXPECT_THAT(ParseTpuEnv(absl::StrCat("A: '", value, "v'")), IsEmpty());
  std::string many;
  for (size_t i = 0; i <= kMaxTpuEnvEntries; ++i) absl::StrAppend(&many, "K", i, ": '1'\n");
  absl::StrAppend(&many, "K0: '2'\n");
  const auto found = ParseTpuEnv(many);
  EXPECT_EQ(found.size(), kMaxTpuEnvEntries);
  EXPECT_EQ(found.at("K0"), "2") << "one that is there may still change";
}

TEST(PodLabelsTest, FileOfTheDownwardApiIsRead) {
  EXPECT_THAT(
      ParsePodLabels("app=\"trainer\"\n"
                     "jobset.sigs.k8s.io/jobset-name=\"bert\"\n"
                     "quoted=\"a \\\"b\\\" \\\\\"\n"
                     "empty=\"\"\n"
                     "bare=word\nopen=\"x\nescape=\"\\u0041\"\nbehind=\"x\"y\n=\"no key\"\n"),
      UnorderedElementsAre(Pair("app", "trainer"), Pair("jobset.sigs.k8s.io/jobset-name", "bert"),
                           Pair("quoted", "a \"b\" \\"), Pair("empty", "")));
}

TEST(PodLabelsTest, NodeLabelsOfTheMetadataServerAreRead) {
  EXPECT_THAT(ParseNodeLabels("cloud.google.com/gke-tpu-topology=4x4,a=,b,=c, d = e "),
              UnorderedElementsAre(Pair("cloud.google.com/gke-tpu-topology", "4x4"), Pair("a", ""),
                                   Pair("d", "e")));
}

TEST(PodLabelsTest, TooManyLabelsAreLeftOut) {
  std::string many;
  for (size_t i = 0; i <= kMaxPodLabels; ++i) absl::StrAppend(&many, "k", i, "=v,");
  EXPECT_EQ(ParseNodeLabels(many).size(), kMaxPodLabels);
}

}  // namespace
}  // namespace tacho::agent
