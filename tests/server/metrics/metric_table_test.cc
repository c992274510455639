#include "server/metrics/metric_table.h"

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
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace tacho::server::metrics {
namespace {

constexpr char kDocs[] = TACHO_SOURCE_DIR "/docs/metrics.md";
constexpr char kEnd[] = "<!-- end -->";

std::string Marker(const MetricSection& section) {
  return absl::StrCat("<!-- metrics: ", section.title, " -->\n");
}

std::string Code(absl::string_view text) { return absl::StrCat("`", text, "`"); }

std::string MarkdownTable(const MetricSection& section) {
  std::string text = "| Name | Type | Unit | Labels | Meaning |\n|---|---|---|---|---|\n";
  for (const MetricInfo& info : section.metrics) {
    const std::vector<absl::string_view> names =
        absl::StrSplit(info.labels, ", ", absl::SkipEmpty());
    const std::string labels = absl::StrJoin(
        names, ", ", [](std::string* out, absl::string_view name) { *out += Code(name); });
    absl::StrAppend(&text, "| ", Code(info.name), " | ", info.type, " | ", info.unit, " | ", labels,
                    " | ", info.help);
    if (!info.when.empty()) absl::StrAppend(&text, ". ", info.when);
    absl::StrAppend(&text, " |\n");
  }
  return text;
}

// The page with every table made anew; empty, with a failure, if a marker is missing.
std::string MadeAnew(std::string page) {
  for (const MetricSection& section : kMetricSections) {
    const std::string marker = Marker(section);
    const size_t begin = page.find(marker);
    const size_t end = begin == std::string::npos ? begin : page.find(kEnd, begin);
    if (end == std::string::npos) {
      ADD_FAILURE() << kDocs << " lacks the lines " << marker << kEnd;
      return "";
    }
    page.replace(begin, end - begin, marker + MarkdownTable(section));
  }
  return page;
}

TEST(MetricTable, TheDocumentationIsMadeFromIt) {
  std::ifstream file(kDocs);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  ASSERT_NE(page, "");
  const std::string made = MadeAnew(page);
  if (std::getenv("TACHO_UPDATE_DOCS") != nullptr && !made.empty()) std::ofstream(kDocs) << made;
  EXPECT_EQ(page, made) << "run TACHO_UPDATE_DOCS=1 metrics_test, and look at the change";
}

TEST(MetricTable, TheDocumentationHasNoTableBesides) {
  std::ifstream file(kDocs);
  std::set<std::string> titles;
  for (const MetricSection& section : kMetricSections) titles.insert(Marker(section));
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "<!-- metrics:")) continue;
    EXPECT_TRUE(titles.contains(line + "\n")) << line;
  }
}

TEST(MetricTable, EveryFamilyIsThereOnceAndComplete) {
  std::set<absl::string_view> names;
  for (const MetricSection& section : kMetricSections) {
    EXPECT_FALSE(section.metrics.empty()) << section.title;
    for (const MetricInfo& info : section.metrics) {
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
