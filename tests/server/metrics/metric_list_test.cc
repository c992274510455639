#include "server/metrics/metric_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tacho::server::metrics {
namespace {

constexpr char kDocs[] = TACHO_SOURCE_DIR "/docs/metrics.md";
constexpr char kEnd[] = "<!-- end -->";

std::string Marker(const MetricTable& table) {
  return absl::StrCat("<!-- metrics: ", table.title, " -->\n");
}

// The page with every table made anew; empty, with a failure, if a marker is missing.
std::string MadeAnew(std::string page) {
  for (const MetricTable& table : AllMetricTables()) {
    const std::string marker = Marker(table);
    const size_t begin = page.find(marker);
    const size_t end = begin == std::string::npos ? begin : page.find(kEnd, begin);
    if (end == std::string::npos) {
      ADD_FAILURE() << kDocs << " lacks the lines " << marker << kEnd;
      return "";
    }
    page.replace(begin, end - begin, marker + MarkdownTable(table));
  }
  return page;
}

TEST(MetricList, TheDocumentationIsMadeFromIt) {
  std::ifstream file(kDocs);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  ASSERT_NE(page, "");
  const std::string made = MadeAnew(page);
  if (std::getenv("TACHO_UPDATE_DOCS") != nullptr && !made.empty()) std::ofstream(kDocs) << made;
  EXPECT_EQ(page, made) << "run TACHO_UPDATE_DOCS=1 metric_list_test, and look at the change";
}

TEST(MetricList, TheDocumentationHasNoTableBesides) {
  std::ifstream file(kDocs);
  std::set<std::string> titles;
  for (const MetricTable& table : AllMetricTables()) titles.insert(Marker(table));
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "<!-- metrics:")) continue;
    EXPECT_TRUE(titles.contains(line + "\n")) << line;
  }
}

TEST(MetricList, EveryFamilyIsThereOnceAndComplete) {
  std::set<absl::string_view> names;
  for (const MetricTable& table : AllMetricTables()) {
    EXPECT_FALSE(table.metrics.empty()) << table.title;
    for (const MetricInfo& info : table.metrics) {
      EXPECT_TRUE(names.insert(info.name).second) << info.name;
      EXPECT_THAT(info.type, testing::AnyOf("gauge", "counter", "histogram", "summary"))
          << info.name;
      EXPECT_EQ(info.type == "counter", absl::EndsWith(info.name, "_total")) << info.name;
      EXPECT_FALSE(info.help.empty()) << info.name;
      EXPECT_FALSE(absl::EndsWith(info.help, ".")) << info.name << ": the full stop is added";
      EXPECT_FALSE(absl::StrContains(info.help, '|')) << info.name << ": it stands in a table";
      EXPECT_FALSE(absl::StrContains(info.help, '\\')) << info.name;
      EXPECT_FALSE(absl::StrContains(info.help, '\n')) << info.name;
    }
  }
}

}  // namespace
}  // namespace tacho::server::metrics
