// Reads texts that exporters and other projects' tests have written. The tests skip where these
// files are absent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/exposition/exposition.h"

namespace tacho {
namespace {

namespace fs = std::filesystem;

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class ExpositionReplayTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(TACHO_SOURCE_DIR) / ".." / "shared" / "data" / "exposition";
    if (!fs::exists(root_)) GTEST_SKIP() << "no recorded scrapes at " << root_;
  }
  std::vector<fs::path> FilesBelow(const std::string& directory) const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(root_ / directory)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  fs::path root_;
};

// The bits of a number as the C library reads it: another reader than ours.
uint64_t BitsOf(const std::string& word) {
  const double value = std::strtod(word.c_str(), nullptr);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return std::isnan(value) ? 1 : bits;
}
uint64_t BitsOf(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return std::isnan(value) ? 1 : bits;
}

// A sample as an exporter would write it, up to its value.
std::string WrittenName(const ExpositionSample& sample) {
  std::vector<std::string> labels;
  for (const auto& [name, value] : sample.labels) {
    labels.push_back(absl::StrCat(
        name, "=\"", absl::StrReplaceAll(value, {{"\\", "\\\\"}, {"\n", "\\n"}, {"\"", "\\\""}}),
        "\""));
  }
  return labels.empty() ? sample.name
                        : absl::StrCat(sample.name, "{", absl::StrJoin(labels, ","), "}");
}

// Every sample line of a text that a careful exporter wrote is, letter by letter, what was read.
void ExpectSameAsLines(const std::string& text, const Exposition& read, const fs::path& path) {
  size_t next = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line.empty() || line[0] == '#') continue;
    ASSERT_LT(next, read.samples.size()) << path << ": " << line;
    const ExpositionSample& sample = read.samples[next++];
    const std::string name = WrittenName(sample);
    std::string plain = absl::StrReplaceAll(line, {{"{}", ""}, {",}", "}"}, {"\", ", "\","}});
    ASSERT_TRUE(absl::StartsWith(plain, name)) << path << ": " << plain << " is not " << name;
    const std::vector<std::string> words =
        absl::StrSplit(plain.substr(name.size()), absl::ByAnyChar(" \t"), absl::SkipEmpty());
    ASSERT_GE(words.size(), 1) << path << ": " << line;
    EXPECT_EQ(BitsOf(sample.value), BitsOf(words[0])) << path << ": " << line;
    EXPECT_EQ(sample.time_ns.has_value(), words.size() > 1 && words[1] != "#") << line;
  }
  EXPECT_EQ(next, read.samples.size()) << path;
}

// Vectors whose lines are not written as an exporter writes them, and what is in them.
const std::map<std::string, std::vector<std::string>>& OddVectors() {
  static const auto* const kOdd = new std::map<std::string, std::vector<std::string>>{
      {"duplicate_timestamps_0",
       {"a{a=\"1\",foo=\"bar\"} 1 0", "a{a=\"1\",foo=\"bar\"} 3 1", "a{a=\"2\",foo=\"bar\"} 4 0"}},
      {"duplicate_timestamps_1", {"a{a=\"1\",foo=\"bar\"} 1 0", "a{a=\"2\",foo=\"bar\"} 4 0"}},
      {"escaping",
       {"a_total{foo=\"b\\\"a\\nr\"} 1", "a_total{foo=\"b\\\\a\\\\z\"} 2",
        "a_total{foo=\"b\\\"a\\nr # \"} 3", "a_total{foo=\"b\\\\a\\\\z # \"} 4"}},
      {"label_escaping",
       {"a0_total{foo=\"foo\",bar=\"baz\"} 1", "a1_total{foo=\"\\\\foo\",bar=\"baz\"} 1",
        "a2_total{foo=\"\\\\foo\",bar=\"baz\"} 1", "a3_total{foo=\"foo\\\\\",bar=\"baz\"} 1",
        "a4_total{foo=\"\\\\\",bar=\"baz\"} 1", "a5_total{foo=\"\\n\",bar=\"baz\"} 1",
        "a6_total{foo=\"\\\\n\",bar=\"baz\"} 1", "a7_total{foo=\"\\\\\\n\",bar=\"baz\"} 1",
        "a8_total{foo=\"\\\"\",bar=\"baz\"} 1", "a9_total{foo=\"\\\\\\\"\",bar=\"baz\"} 1"}},
  };
  return *kOdd;
}

TEST_F(ExpositionReplayTest, GoodOpenMetricsVectorsAreReadExactly) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(root_ / "OpenMetrics" / "parsers")) {
    const std::string name = entry.path().filename().string();
    if (absl::StartsWith(name, "bad_")) continue;
    const std::string text = ReadAll(entry.path() / "metrics");
    const auto read = ReadOpenMetricsText(text);
    ASSERT_TRUE(read.ok()) << name << ": " << read.status();
    ++count;
    const auto odd = OddVectors().find(name);
    if (odd == OddVectors().end()) {
      ExpectSameAsLines(text, *read, name);
      continue;
    }
    std::vector<std::string> lines;
    for (const ExpositionSample& sample : read->samples) {
      lines.push_back(absl::StrCat(WrittenName(sample), " ", sample.value));
      if (sample.time_ns) absl::StrAppend(&lines.back(), " ", *sample.time_ns);
    }
    EXPECT_EQ(lines, odd->second) << name;
  }
  EXPECT_GE(count, 44);
}

TEST_F(ExpositionReplayTest, BadOpenMetricsVectorsAreRefusedWithAReason) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(root_ / "OpenMetrics" / "parsers")) {
    const std::string name = entry.path().filename().string();
    if (!absl::StartsWith(name, "bad_")) continue;
    const auto read = ReadOpenMetricsText(ReadAll(entry.path() / "metrics"));
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_TRUE(absl::StartsWith(read.status().message(), "line ")) << name;
    ++count;
  }
  EXPECT_GE(count, 150);
}

TEST_F(ExpositionReplayTest, MalformedCorpusIsHarmlessAndWhatIsWrongIsRefused) {
  for (const fs::path& path : FilesBelow("prometheus-common/corpus")) {
    const std::string text = ReadAll(path);
    const auto read = ReadPrometheusText(text);
    EXPECT_FALSE(absl::StrContains(path.string(), "_error_") && ReadOpenMetricsText(text).ok())
        << path;
    if (absl::EndsWith(path.string(), "_error_0") || absl::EndsWith(path.string(), "_error_12")) {
      // The end of its last line is missing, and a second HELP: Prometheus does not mind.
      ASSERT_TRUE(read.ok()) << path << read.status();
      EXPECT_EQ(read->lapses, 1) << path;
    } else if (absl::StrContains(path.string(), "_error_")) {
      EXPECT_TRUE(absl::StartsWith(read.status().message(), "line ")) << path << read.status();
    }
    if (absl::StrContains(path.string(), "from_test_parse_") &&
        !absl::StrContains(path.string(), "_error_")) {
      EXPECT_TRUE(ReadPrometheusText(text).ok()) << path << ReadPrometheusText(text).status();
    }
  }
}

TEST_F(ExpositionReplayTest, RealScrapesWithoutTheirLastEndOfLineAreTaken) {
  int count = 0;
  for (const char* part : {"node_exporter", "nvidia_gpu_exporter"}) {
    for (const fs::path& path : FilesBelow(part)) {
      std::string text = ReadAll(path);
      const auto whole = ReadPrometheusText(text);
      if (!whole.ok() || whole->samples.empty() || text.back() != '\n') continue;
      while (text.back() == '\n') text.pop_back();
      const auto cut = ReadPrometheusText(text);
      ASSERT_TRUE(cut.ok()) << path << cut.status();
      EXPECT_EQ(cut->samples.size(), whole->samples.size()) << path;
      EXPECT_EQ(cut->samples.back().value, whole->samples.back().value) << path;
      EXPECT_EQ(cut->lapses, whole->lapses + 1) << path;
      ++count;
    }
  }
  EXPECT_GE(count, 20);
}

TEST_F(ExpositionReplayTest, RealScrapesAreReadLineByLine) {
  int count = 0;
  size_t samples = 0;
  for (const char* part : {"cncf-k8s-ai-conformance", "dynolog-tpu", "node_exporter",
                           "nvidia-aicr-evidence", "nvidia_gpu_exporter", "prometheus"}) {
    for (const fs::path& path : FilesBelow(part)) {
      const std::string name = path.filename().string();
      const bool open_metrics = absl::EndsWith(name, ".om.txt");
      const bool is_scrape = absl::EndsWith(name, ".prom") || absl::EndsWith(name, ".metrics") ||
                             absl::StartsWith(name, "e2e") || open_metrics ||
                             absl::EndsWith(name, ".prom.txt");
      if (!is_scrape) continue;
      // Written by hand for a report: three dots stand where labels were.
      if (absl::StrContains(name, "viettel")) {
        EXPECT_FALSE(ReadPrometheusText(ReadAll(path)).ok());
        continue;
      }
      std::string text = ReadAll(path);
      if (!absl::EndsWith(text, "\n")) text += "\n";
      if (name == "alltypes.5mfs.om.txt") {
        // Prometheus passes over it; the specification has no sums below 0.
        EXPECT_THAT(std::string(ReadOpenMetricsText(text).status().message()),
                    ::testing::HasSubstr("line 33: a counter, count or sum below 0"));
        continue;
      }
      const auto read = open_metrics ? ReadOpenMetricsText(text) : ReadPrometheusText(text);
      ASSERT_TRUE(read.ok()) << path << ": " << read.status();
      if (!open_metrics) ExpectSameAsLines(text, *read, path);
      samples += read->samples.size();
      ++count;
    }
  }
  EXPECT_GT(count, 40);
  EXPECT_GT(samples, 10'000);
}

}  // namespace
}  // namespace tacho
