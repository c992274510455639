// How files are found and told apart, and the formats that tables share.
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/import/formats.h"
#include "client/import/text_source.h"
#include "client/import/units.h"
#include "client/tfevents/run_name.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/import/import_test_support.h"
#include "tests/support/tfevents_writer.h"

namespace tacho::importer {
namespace {

namespace fs = std::filesystem;
using ::tacho::testing::WriteFile;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr int64_t kBegin = 1'769'860'800 * kNsPerSecond;  // 2026-01-31T12:00:00Z

std::tuple<int64_t, int64_t, uint64_t> Point(int64_t time, int64_t step, double value) {
  return {time, step, BitsOf(value)};
}

ReadOptions FromBegin() {
  ReadOptions options;
  options.start = absl::FromUnixNanos(kBegin);
  return options;
}

// "12, W" as PowerShell writes it.
std::string Utf16(absl::string_view ascii, bool big) {
  std::string bytes = big ? "\xFE\xFF" : "\xFF\xFE";
  for (const char c : ascii) {
    if (big) bytes.push_back('\0');
    bytes.push_back(c);
    if (!big) bytes.push_back('\0');
  }
  return bytes;
}

TEST(ImportDetectionTest, ContentDecidesAndNotTheNumberOfLines) {
  const std::string metric = R"({"start_step": 1, "values": {"1": 10.9}})";
  EXPECT_EQ(DetectFormatOfBytes("{\"lm loss\": " + metric + "}"), FileFormat::kMegatron);
  EXPECT_EQ(DetectFormatOfBytes("{\"iteration_timing_avg\": 0.1, \"lm loss\": " + metric + "}\n"),
            FileFormat::kMegatron);
  EXPECT_EQ(DetectFormatOfBytes("{\n\"lm loss\":\n" + metric + "}\n"), FileFormat::kMegatron);
  EXPECT_EQ(DetectFormatOfBytes(R"({"step": 1, "histogram": {"values": [1, 2]}})"),
            FileFormat::kJsonLines);
  EXPECT_EQ(DetectFormatOfBytes(R"({"max_steps": 9, "log_history": []})"),
            FileFormat::kTrainerState);
  EXPECT_EQ(DetectFormatOfBytes("{\n \"epoch\": 3.0,\n \"train_runtime\": 12.5\n}\n"),
            FileFormat::kTrainerState);
  EXPECT_EQ(DetectFormatOfBytes("{\n \"name\": \"x\",\n \"version\": 1\n}\n"), std::nullopt);
  EXPECT_EQ(DetectFormatOfBytes("Lines have :::MLLOG {json}, and more.\n"), std::nullopt);
  EXPECT_EQ(DetectFormatOfBytes("Copyright (c) 2017, 2018 Someone\nAll rights reserved.\n"),
            std::nullopt);
}

TEST(ImportDetectionTest, MonitorAndSmiAreKnownAlsoInUtf16) {
  EXPECT_EQ(DetectFormatOfBytes("#{\"t_start\": 1.5, \"env_id\": \"a\"}\nr,l,t\n1,2,3\n"),
            FileFormat::kMonitor);
  const std::string smi = "timestamp, index, power.draw [W]\r\n2026/01/31 12:00:00.250, 0, 1 W\r\n";
  for (const std::string& bytes : {smi, Utf16(smi, false), Utf16(smi, true)}) {
    EXPECT_EQ(DetectFormatOfBytes(bytes), FileFormat::kSmi);
  }
  EXPECT_EQ(DetectFormatOfBytes("step,memory.used [MiB],loss\n1,2,3\n"), FileFormat::kCsv);
  EXPECT_EQ(DetectFormatOfBytes("\xEF\xBB\xBF{\"step\": 1, \"loss\": 2}\n"),
            FileFormat::kJsonLines);
}

TEST(TextSourceTest, Utf16BecomesUtf8AndHalvesAreReplaced) {
  EXPECT_EQ(TextOfBytes(Utf16("a,b\n", false)), "a,b\n");
  EXPECT_EQ(TextOfBytes(Utf16("a,b\n", true)), "a,b\n");
  EXPECT_EQ(TextOfBytes(std::string("\xFF\xFE\x3D\xD8\x00\xDE\xE9\x00", 8)), "😀é");
  EXPECT_EQ(TextOfBytes(std::string("\xFF\xFE\x3D\xD8\x61\x00\x00\xDC\x62", 9)),
            "\uFFFDa\uFFFD\uFFFD");
  EXPECT_EQ(TextOfBytes("\xEF\xBB\xBFx"), "x");
  EXPECT_EQ(TextOfBytes("\xFF"), "\xFF");
  EXPECT_EQ(TextOfBytes(""), "");
}

TEST(ImportAttemptsTest, StepsThatStartAgainBeginTheNextAttempt) {
  const Sent sent = ReadText(ReadStepLog,
                             "s:0 tel:11\ns:0 trl:10.5\ns:1 trl:9.5\ns:2 trl:8.5\n"
                             "s:0 tel:12\ns:0 trl:10.25\ns:1 trl:9.25\n",
                             FromBegin());
  ASSERT_TRUE(sent.status.ok()) << sent.status;
  EXPECT_THAT(sent.series.at("0/0/h/trl"),
              ElementsAre(Point(kBegin, 0, 10.5), Point(kBegin + kNsPerSecond, 1, 9.5),
                          Point(kBegin + 2 * kNsPerSecond, 2, 8.5)));
  EXPECT_THAT(sent.series.at("1/0/h/trl"),
              ElementsAre(Point(kBegin, 0, 10.25), Point(kBegin + kNsPerSecond, 1, 9.25)));
  EXPECT_THAT(sent.series.at("1/0/h/tel"), ElementsAre(Point(kBegin, 0, 12)));
  EXPECT_EQ(sent.summary.repeated, 0);
  EXPECT_EQ(sent.summary.series.size(), 2) << "a series has samples of all attempts";
  EXPECT_THAT(sent.summary.notes, Contains(HasSubstr("step 0 comes again after later ones: what "
                                                     "follows is attempt 1")));
}

TEST(ImportAttemptsTest, TheyDoInTablesAndJsonTooAndFromACheckpoint) {
  const Sent csv = ReadText(ReadCsv, "step,loss\n1,5\n2,4\n3,3\n2,4.5\n3,3.5\n", FromBegin());
  ASSERT_TRUE(csv.status.ok()) << csv.status;
  EXPECT_THAT(csv.series.at("0/0/h/loss"), SizeIs(3));
  EXPECT_THAT(csv.series.at("1/0/h/loss"), SizeIs(2));
  const Sent json =
      ReadText(ReadJsonLines, "{\"step\":1,\"a\":1}\n{\"step\":2,\"a\":2}\n{\"step\":1,\"a\":3}\n",
               FromBegin());
  ASSERT_TRUE(json.status.ok()) << json.status;
  EXPECT_THAT(json.series.at("1/0/h/a"), ElementsAre(Point(kBegin + kNsPerSecond, 1, 3)));
  const Sent hf = ReadText(ReadTrainerState,
                           "{\"log_history\": [{\"step\":1,\"loss\":1}, {\"step\":2,\"loss\":2}, "
                           "{\"step\":1,\"loss\":3}], \"max_steps\": 2}",
                           FromBegin());
  ASSERT_TRUE(hf.status.ok()) << hf.status;
  EXPECT_THAT(hf.series.at("1/0/h/loss"), SizeIs(1));
  EXPECT_EQ(hf.attributes.at("1/max_steps"), "2");
}

TEST(ImportAttemptsTest, OtherOrdersBeginNothing) {
  // A table from the newest to the oldest; evaluations written late; what the user calls one.
  EXPECT_THAT(ReadText(ReadCsv, "step,loss\n3,5\n2,4\n1,3\n", FromBegin()).series, SizeIs(1));
  EXPECT_THAT(ReadText(ReadJsonLines,
                       "{\"step\":8,\"loss\":1}\n{\"step\":10,\"loss\":1}\n"
                       "{\"step\":8,\"eval\":2}\n",
                       FromBegin())
                  .series,
              SizeIs(2));
  ReadOptions fixed = FromBegin();
  fixed.fixed_attempt = true;
  const Sent sent = ReadText(ReadCsv, "step,loss\n1,5\n2,4\n1,5\n2,4.5\n", fixed);
  EXPECT_THAT(sent.series, SizeIs(1));
  EXPECT_EQ(sent.summary.repeated, 2);
  EXPECT_EQ(sent.summary.replaced, 1) << "the other one has the same value";
  EXPECT_EQ(sent.summary.first_replaced, "loss at step 2");
}

TEST(ImportMonitorTest, EpisodesHaveTimesAndCountTheStepsOfTheEnvironment) {
  const Sent sent = ReadText(ReadMonitor,
                             "#{\"t_start\": 1769860800.25, \"env_id\": \"CartPole-v1\"}\n"
                             "r,l,t\n23.5,23,0.512345\n-1.0,10,1.5\n"
                             "#{\"t_start\": 1769860900, \"env_id\": \"CartPole-v1\"}\n"
                             "r,l,t\n7,5,0.25\n");
  ASSERT_TRUE(sent.status.ok()) << sent.status;
  EXPECT_THAT(sent.series.at("0/0/h/r"), ElementsAre(Point(kBegin + 762'345'000, 23, 23.5),
                                                     Point(kBegin + 1'750'000'000, 33, -1)));
  EXPECT_THAT(sent.series.at("0/0/h/l"), SizeIs(2));
  EXPECT_THAT(sent.series.at("1/0/h/r"),
              ElementsAre(Point(kBegin + 100 * kNsPerSecond + 250'000'000, 5, 7)));
  EXPECT_EQ(sent.attributes.at("1/env_id"), "CartPole-v1");
}

TEST(ImportMonitorTest, AppendedRunWithoutAHeaderIsAnAttemptAndDamageIsNamed) {
  const std::string head = "#{\"t_start\": 1769860800}\nr,l,t\n";
  const Sent sent = ReadText(ReadMonitor, head + "1,2,9\n3,4,5\n");
  ASSERT_TRUE(sent.status.ok()) << sent.status;
  EXPECT_THAT(sent.series.at("1/0/h/r"), ElementsAre(Point(kBegin + 5 * kNsPerSecond, 4, 3)));
  EXPECT_THAT(sent.summary.notes, ElementsAre(HasSubstr("line 4: the times start again")));
  EXPECT_THAT(ReadText(ReadMonitor, head + "1,2\n").error(), HasSubstr("line 3: there are 2"));
  EXPECT_THAT(ReadText(ReadMonitor, head + "1,x,2\n").error(), HasSubstr("line 3: a length"));
  EXPECT_THAT(ReadText(ReadMonitor, head + "1,9e18,2\n1,9e18,2\n").error(), HasSubstr("line"));
  EXPECT_THAT(ReadText(ReadMonitor, "a,b\n").error(), HasSubstr("r,l,t"));
  EXPECT_THAT(ReadText(ReadMonitor, "#{}\nr,l,t\n1,2,3\n").error(), HasSubstr("--start"));
}

TEST(ImportSmiTest, CellsLoseTheirUnitsAndLinesAreOfTheirGpu) {
  const Sent sent = ReadText(
      ReadSmi,
      "timestamp, index, name, utilization.gpu [%], power.draw [W], pstate, "
      "clocks_throttle_reasons.active, persistence_mode, fan.speed [%]\n"
      "2026/01/31 12:00:00.250, 0, NVIDIA H100, 97 %, 123.45 W, P0, 0x0000000000000004, Enabled, "
      "[N/A]\n"
      "2026/01/31 12:00:00.250, 1, NVIDIA H100, 3, 80.10, P8, 0x0, Disabled, [Unknown Error]\n");
  ASSERT_TRUE(sent.status.ok()) << sent.status;
  const int64_t time = kBegin + 250'000'000;
  const auto of = [&sent](absl::string_view metric, int chip) {
    return sent.series.at(absl::StrCat("0/0/h/", metric, ",chip=", chip, ",name=NVIDIA H100"));
  };
  EXPECT_THAT(of("utilization.gpu", 0), ElementsAre(Point(time, -1000, 97)));
  EXPECT_THAT(of("power.draw", 0), ElementsAre(Point(time, -1000, 123.45)));
  EXPECT_THAT(of("power.draw", 1), ElementsAre(Point(time, -1000, 80.10)));
  EXPECT_THAT(of("pstate", 1), ElementsAre(Point(time, -1000, 8)));
  EXPECT_THAT(of("clocks_throttle_reasons.active", 0), ElementsAre(Point(time, -1000, 4)));
  EXPECT_THAT(of("persistence_mode", 0), ElementsAre(Point(time, -1000, 1)));
  EXPECT_EQ(sent.skipped(Skip::kNoValue), 2);
  EXPECT_THAT(sent.summary.notes, IsEmpty());
}

TEST(ImportSmiTest, ATableWithATimeOfItsOwnIsNone) {
  EXPECT_EQ(DetectFormatOfBytes("time,power.draw [W]\n1,2\n"), FileFormat::kCsv);
  EXPECT_EQ(DetectFormatOfBytes("index, power.draw [W]\n0, 1 W\n"), FileFormat::kSmi);
}

TEST(ImportSmiTest, WhatIsMissingIsSaid) {
  EXPECT_THAT(ReadText(ReadSmi, "index, power.draw [W]\n0, 1 W\n").error(),
              HasSubstr("no column timestamp"));
  const std::string head = "timestamp, power.draw [W]\n";
  EXPECT_THAT(ReadText(ReadSmi, head + "2026/01/31 12:00:00\n").error(),
              HasSubstr("line 2: there are 1 fields where the first line has 2"));
  const Sent sent = ReadText(ReadSmi, head + "2026/01/31 12:00:00, 5 kW\n" + head);
  EXPECT_EQ(sent.skipped(Skip::kNotNumber), 1) << "the unit is another one";
  EXPECT_THAT(sent.summary.notes, ElementsAre(HasSubstr("no column index")));
}

TEST(ImportTrainerStateTest, ResultsOfARunAreReadFromTheirOwnFile) {
  const Sent sent = ReadText(ReadTrainerState,
                             "{\n \"epoch\": 3.0,\n \"eval_loss\": 0.25,\n \"train_runtime\": "
                             "12.5,\n \"model\": \"x\"\n}\n",
                             FromBegin());
  ASSERT_TRUE(sent.status.ok()) << sent.status;
  const int64_t time = kBegin + 12'500'000'000;
  EXPECT_THAT(sent.series.at("0/0/h/eval_loss"), ElementsAre(Point(time, -1000, 0.25)));
  EXPECT_THAT(sent.series.at("0/0/h/epoch"), ElementsAre(Point(time, -1000, 3)));
  EXPECT_EQ(sent.attributes.at("0/model"), "x");
}

TEST(ImportMegatronTest, AveragesBesideTheMetricsAreFacts) {
  const Sent sent = ReadText(ReadMegatron,
                             "{\"lm loss\": {\"start_step\": 0, \"step_interval\": 5, \"values\": "
                             "[2.5, 1.5]}, \"args\": {\"lr\": 1}, \"iteration_timing_avg\": 0.5}",
                             FromBegin());
  ASSERT_TRUE(sent.status.ok()) << sent.status;
  EXPECT_THAT(sent.series.at("0/0/h/lm loss"),
              ElementsAre(Point(kBegin, 0, 2.5), Point(kBegin + 2'500'000'000, 5, 1.5)));
  EXPECT_EQ(sent.attributes.at("0/iteration_timing_avg"), "0.5");
}

TEST(ImportErrorsTest, AdviceFitsTheMistake) {
  // To pass over every line would leave nothing.
  EXPECT_THAT(ReadText(ReadJsonLines, "{\"a\": 1, \"b\": 2}\n").error(),
              AllOf(HasSubstr("line 1: no member is a step or a time"), HasSubstr("there are a, b"),
                    Not(HasSubstr("--skip-damaged"))));
  EXPECT_THAT(ReadText(ReadCsv, "0.5,1.5\n1,2\n").error(), HasSubstr("has numbers where"));
}

class ImportSearchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = (fs::path(::testing::TempDir()) / absl::StrCat("import_search_", ::getpid())).string();
    fs::remove_all(root_);
    Make("metrics.jsonl", "{\"step\": 1, \"loss\": 2}\n");
    Make("data.jsonl", "{\"text\": \"no log\"}\n");
    Make("train.py", "import os\n");
    Make("empty.csv", "");
    Make("a/b/loss.csv", "step,loss\n1,2\n");
    Make("a/b/table.csv", "name,size\nx,2\n");
    Make("a/b/events.out.tfevents.1.x", "?");
    Make("a/events.out.tfevents.2.x", "?");
    Make("events.out.tfevents.3.x", "?");
    Make("c/x.tfevents.profile-empty", "");
  }
  void TearDown() override { fs::remove_all(root_); }

  void Make(const std::string& name, const std::string& bytes) const {
    fs::create_directories((fs::path(root_) / name).parent_path());
    WriteFile(absl::StrCat(root_, "/", name), bytes);
  }
  std::vector<std::string> Names(const UnitOptions& options) {
    const auto units = FindUnits({root_}, options, &passed_over_);
    EXPECT_TRUE(units.ok()) << units.status();
    std::vector<std::string> names;
    for (const Unit& unit : *units) names.push_back(unit.name);
    return names;
  }

  std::string root_;
  PassedOver passed_over_;
};

TEST_F(ImportSearchTest, LogsOfAllFormatsAreFoundAndTheRestIsCounted) {
  EXPECT_THAT(Names({}), ElementsAre("a/b/loss", "metrics", ".", "a", "a/b"));
  EXPECT_EQ(passed_over_.files, 5);
  std::string all;
  for (const auto& [path, why] : passed_over_.first) absl::StrAppend(&all, path, ": ", why, "\n");
  EXPECT_THAT(all, HasSubstr("data.jsonl: JSON lines without a step or time"));
  EXPECT_THAT(all, HasSubstr("table.csv: CSV without a step or time"));
  EXPECT_THAT(all, HasSubstr("empty.csv is empty"));
  EXPECT_THAT(all, HasSubstr("train.py: no log of a known format"));
}

TEST_F(ImportSearchTest, GivenFormatTakesNoOther) {
  UnitOptions options;
  options.format = FileFormat::kCsv;
  EXPECT_THAT(Names(options), ElementsAre("a/b/loss"));
  EXPECT_EQ(passed_over_.files, 6);
  options.format = FileFormat::kMlperf;
  passed_over_ = {};
  const auto none = FindUnits({root_}, options, &passed_over_);
  EXPECT_THAT(std::string(none.status().message()),
              AllOf(HasSubstr("is an MLPerf log; it has"), HasSubstr("loss.csv: it is CSV")));
  options.format = FileFormat::kEventFiles;
  EXPECT_THAT(Names(options), ElementsAre(".", "a", "a/b"));
}

TEST_F(ImportSearchTest, PathsThatOverlapAreReadOnce) {
  std::vector<std::string> names;
  const auto units = FindUnits({root_, root_ + "/a", root_}, {}, &passed_over_);
  ASSERT_TRUE(units.ok()) << units.status();
  for (const Unit& unit : *units) names.push_back(unit.name);
  EXPECT_THAT(names, ElementsAre("a/b/loss", "metrics", ::testing::_, "a", "a/b"));
}

TEST_F(ImportSearchTest, AnErrorOfADirectoryTellsOfItsOwnFiles) {
  fs::create_directories(root_ + "/z");
  Make("z/readme.py", "import os\n");
  const auto units = FindUnits({root_, root_ + "/z"}, {}, &passed_over_);
  EXPECT_THAT(std::string(units.status().message()), HasSubstr("it has 1 other file, "));
  EXPECT_THAT(std::string(units.status().message()), HasSubstr("readme.py"));
}

TEST_F(ImportSearchTest, ATableOfPowerWithoutATimeIsPassedOver) {
  Make("z/power.csv", "index, power.draw [W]\n0, 1 W\n");
  const std::vector<std::string> names = Names({});
  EXPECT_THAT(names, Not(Contains(HasSubstr("power"))));
}

TEST_F(ImportSearchTest, ColumnThatTheUserNamesMakesATableALog) {
  UnitOptions options;
  options.format = FileFormat::kCsv;
  options.read.step_field = "size";
  EXPECT_THAT(Names(options), ElementsAre("a/b/loss", "a/b/table"));
}

}  // namespace
}  // namespace tacho::importer
