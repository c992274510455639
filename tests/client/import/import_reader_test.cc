// Readers of foreign logs, over texts written here.
#include <limits>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/import/formats.h"
#include "client/import/values.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/import/import_test_support.h"

namespace tacho::importer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kStart = 1'769'860'800 * kSecond;  // 2026-01-31T12:00:00Z
constexpr uint64_t kNan = 0x7ff8000000000000;

ReadOptions WithStart() {
  ReadOptions options;
  options.start = absl::FromUnixNanos(kStart);
  options.step_time = absl::Seconds(2);
  return options;
}

std::tuple<int64_t, int64_t, uint64_t> At(int64_t time, int64_t step, double value) {
  return {time, step, BitsOf(value)};
}

TEST(ImportValuesTest, EveryNumberReadsBackToItsBits) {
  for (const uint64_t bits :
       {uint64_t{0}, uint64_t{1} << 63, uint64_t{1}, uint64_t{0x7fefffffffffffff},
        uint64_t{0x7ff0000000000000}, uint64_t{0xfff0000000000000}, kNan,
        uint64_t{0xfff8000000000123}, uint64_t{0x7ff0000000000001}, BitsOf(0.1), BitsOf(1e23)}) {
    double value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    const auto again = ParseNumber(NumberText(value));
    ASSERT_TRUE(again.has_value()) << NumberText(value);
    EXPECT_EQ(BitsOf(*again), bits) << NumberText(value);
  }
}

TEST(ImportValuesTest, TextsThatAreNoNumbersAreNone) {
  for (const char* text : {"", " ", "+", "-", "x", "1.2.3", "0x10", "nano", "infinite", "--1", "1e",
                           "NaN(0x1)", "NaN(0x3ff0000000000000)", "12 apples"}) {
    EXPECT_FALSE(ParseNumber(text).has_value()) << text;
  }
}

TEST(ImportValuesTest, TimesAreExactToTheNanosecond) {
  const auto parse = [](const char* text) {
    return ParseTimeNs(text, TimeUnit::kGuess, absl::UTCTimeZone());
  };
  EXPECT_EQ(parse("1769860800.123456789"), kStart + 123'456'789);
  EXPECT_EQ(parse("1769860800123"), kStart + 123'000'000);
  EXPECT_EQ(parse("1769860800123456"), kStart + 123'456'000);
  EXPECT_EQ(parse("1769860800123456789"), kStart + 123'456'789);
  EXPECT_EQ(parse("1.7698608e9"), kStart);
  EXPECT_EQ(parse("2026-01-31T12:00:00Z"), kStart);
  EXPECT_EQ(parse("2026-01-31T13:00:00.25+01:00"), kStart + kSecond / 4);
  EXPECT_EQ(parse("2026-01-31 12:00:00"), kStart);
  EXPECT_EQ(parse("yesterday"), std::nullopt);
  EXPECT_EQ(parse("99999999999999999999"), std::nullopt);
}

TEST(ImportCsvTest, ColumnsBecomeMetrics) {
  const Sent sent = ReadText(ReadCsv,
                             "step,timestamp,loss,\"lr, group 0\"\r\n"
                             "1,1769860800,2.5,0.1\r\n"
                             "2,1769860801.5,nan,\r\n");
  ASSERT_TRUE(sent.status.ok()) << sent.status;
  EXPECT_THAT(sent.series.at("0/0/h/loss"),
              ElementsAre(At(kStart, 1, 2.5), std::make_tuple(kStart + 3 * kSecond / 2, 2, kNan)));
  EXPECT_THAT(sent.series.at("0/0/h/lr, group 0"), ElementsAre(At(kStart, 1, 0.1)));
  EXPECT_EQ(sent.summary.samples, 3);
  EXPECT_EQ(sent.summary.rows, 2);
}

TEST(ImportCsvTest, StepsMakeTimesWhereThereAreNone) {
  const Sent sent = ReadText(ReadCsv, "iter;loss\n10;1\n11;2\n", WithStart());
  ASSERT_TRUE(sent.status.ok()) << sent.status;
  EXPECT_THAT(sent.series.at("0/0/h/loss"),
              ElementsAre(At(kStart + 20 * kSecond, 10, 1), At(kStart + 22 * kSecond, 11, 2)));
  EXPECT_THAT(sent.summary.notes, ElementsAre(HasSubstr("2s")));
  EXPECT_THAT(ReadText(ReadCsv, "iter;loss\n10;1\n").error(), HasSubstr("--start"));
}

TEST(ImportCsvTest, ExportedLinesKeepEverything) {
  const Sent sent =
      ReadText(ReadCsv,
               "job,metric,type,unit,task,host,labels,attempt,time_unix_ns,step,value\r\n"
               "other,mfu,gauge,1,3,n-1,\"{\"\"chip\"\":\"\"0,x\"\"}\",2,1769860800000000007,-4,"
               "NaN(0x7ff8000000000123)\r\n"
               "other,up,counter,,,n-1,{},0,5,,1\r\n");
  ASSERT_TRUE(sent.status.ok()) << sent.status;
  EXPECT_THAT(sent.series.at("2/3/n-1/mfu,chip=0,x"),
              ElementsAre(std::make_tuple(kStart + 7, -4, 0x7ff8000000000123)));
  EXPECT_THAT(sent.series.at("0/-/n-1/up"), ElementsAre(At(5, -1000, 1)));
}

TEST(ImportCsvTest, WhatIsNoNumberIsCountedWithItsPlace) {
  const Sent sent = ReadText(ReadCsv, "step,time,loss,note\n1,1769860800,1,warmup\n2,later,1,\n");
  ASSERT_TRUE(sent.status.ok()) << sent.status;
  EXPECT_EQ(sent.summary.samples, 1);
  EXPECT_EQ(sent.skipped(Skip::kNotNumber), 1);
  EXPECT_EQ(sent.summary.skipped[static_cast<size_t>(Skip::kNotNumber)].where,
            "line 2, column note");
  EXPECT_EQ(sent.skipped(Skip::kNoTime), 1);
}

TEST(ImportCsvTest, DamageIsAnErrorThatNamesTheLineOrIsPassedOver) {
  const std::string text = "step,time,loss\n1,1769860800,1\n2,17698\n3,1769860802,3\n";
  EXPECT_THAT(ReadText(ReadCsv, text).error(), HasSubstr("line 3: there are 2 fields"));
  ReadOptions options;
  options.skip_damaged = true;
  const Sent sent = ReadText(ReadCsv, text, options);
  ASSERT_TRUE(sent.status.ok()) << sent.status;
  EXPECT_EQ(sent.summary.samples, 2);
  EXPECT_EQ(sent.skipped(Skip::kDamaged), 1);
}

TEST(ImportCsvTest, WrongFilesSayWhatIsExpected) {
  EXPECT_THAT(ReadText(ReadCsv, "").error(), HasSubstr("empty"));
  EXPECT_THAT(ReadText(ReadCsv, "a,b\n1,2\n").error(), HasSubstr("--step-field"));
  EXPECT_THAT(ReadText(ReadCsv, "step,a,a\n1,2,3\n").error(), HasSubstr("'a' twice"));
  EXPECT_THAT(ReadText(ReadCsv, std::string("\x7f"
                                            "ELF\0\0",
                                            6))
                  .error(),
              HasSubstr("zero bytes"));
  EXPECT_THAT(ReadText(ReadCsv, "step,\"a\n1,2\n").error(), HasSubstr("no end"));
}

TEST(ImportCsvTest, NamesThatMayNotBeAreSkipped) {
  const Sent sent =
      ReadText(ReadCsv, "step,time,a\x01z," + std::string(300, 'x') + ",\n1,1769860800,1,2,3\n");
  ASSERT_TRUE(sent.status.ok()) << sent.status;
  EXPECT_EQ(sent.summary.samples, 0);
  EXPECT_EQ(sent.skipped(Skip::kBadName), 3);
}

TEST(ImportJsonLinesTest, MembersBecomeMetrics) {
  const Sent sent = ReadText(
      ReadJsonLines,
      "{\"step\": 1, \"_timestamp\": 1769860800.5, \"train\": {\"loss\": 2.5}, \"ok\": true}\n"
      "\n{\"step\": 2, \"_timestamp\": 1769860801, \"eval\": \"NaN\", \"note\": \"x\", \"n\": null,"
      " \"list\": [1, 2]}\n");
  ASSERT_TRUE(sent.status.ok()) << sent.status;
  EXPECT_THAT(sent.series.at("0/0/h/train/loss"), ElementsAre(At(kStart + kSecond / 2, 1, 2.5)));
  EXPECT_THAT(sent.series.at("0/0/h/ok"), ElementsAre(At(kStart + kSecond / 2, 1, 1)));
  EXPECT_THAT(sent.series.at("0/0/h/eval"),
              ElementsAre(std::make_tuple(kStart + kSecond, 2, kNan)));
  EXPECT_EQ(sent.skipped(Skip::kNotNumber), 1);
  EXPECT_EQ(sent.skipped(Skip::kNotScalar), 1);
}

TEST(ImportJsonLinesTest, ExportedLinesKeepEverything) {
  const Sent sent = ReadText(
      ReadJsonLines,
      "{\"tachograph_export\":1,\"job\":\"a\"}\n"
      "{\"attributes\":{\"lr/max\":\"0.1\"},\"attempt\":1}\n"
      "{\"event\":\"ended\",\"time_unix_ns\":7,\"step\":3,\"attempt\":1,\"host\":\"n\","
      "\"message\":\"done\",\"fields\":{\"exit_code\":\"0\"}}\n"
      "{\"metric\":\"m\",\"host\":\"n\",\"labels\":{\"a\":\"\\\"q\\\\\"},\"type\":\"counter\","
      "\"unit\":\"s\",\"help\":\"H\"}\n"
      "{\"metric\":\"m\",\"host\":\"n\",\"labels\":{\"a\":\"\\\"q\\\\\"},\"attempt\":1,"
      "\"time_unix_ns\":8,\"value\":\"NaN(0xfff8000000000123)\"}\n"
      "{\"end\":{\"series\":1,\"samples\":1,\"events\":1}}\n");
  ASSERT_TRUE(sent.status.ok()) << sent.status;
  EXPECT_THAT(sent.series.at("1/-/n/m,a=\"q\\"),
              ElementsAre(std::make_tuple(8, -1000, 0xfff8000000000123)));
  EXPECT_EQ(sent.attributes.at("1/lr/max"), "0.1");
  ASSERT_EQ(sent.events.size(), 1);
  EXPECT_EQ(sent.events[0].kind(), "ended");
  EXPECT_EQ(sent.events[0].step(), 3);
  EXPECT_FALSE(sent.events[0].source().has_task());
  EXPECT_EQ(sent.events[0].fields().at("exit_code"), "0");
}

TEST(ImportJsonLinesTest, ExportThatWasCutIsNoticed) {
  const std::string cut = "{\"tachograph_export\":1,\"job\":\"a\"}\n";
  EXPECT_THAT(ReadText(ReadJsonLines, cut).error(), HasSubstr("cut off"));
}

TEST(ImportJsonLinesTest, DamageNamesTheLine) {
  EXPECT_THAT(
      ReadText(ReadJsonLines, "{\"step\":1,\"time\":1769860800,\"a\":1}\n{\"step\":").error(),
      HasSubstr("line 2: the JSON ends too early"));
  EXPECT_THAT(ReadText(ReadJsonLines, "[1]\n").error(), HasSubstr("an object is expected"));
  EXPECT_THAT(ReadText(ReadJsonLines, "{\"a\":1}\n").error(), HasSubstr("--step-field"));
  EXPECT_THAT(ReadText(ReadJsonLines, std::string(100, '{')).error(), HasSubstr("line 1"));
}

TEST(ImportMlperfTest, MeasurementsSettingsAndEventsAreToldApart) {
  const Sent sent = ReadText(
      ReadMlperfLog,
      "some other output\n"
      ":::MLLOG {\"namespace\": \"\", \"time_ms\": 1769860800123, \"event_type\": "
      "\"POINT_IN_TIME\", \"key\": \"global_batch_size\", \"value\": 256, \"metadata\": {\"file\": "
      "\"a.py\", \"lineno\": 3}}\n"
      "0: :::MLLOG {\"time_ms\": 1769860801000, \"event_type\": \"INTERVAL_END\", \"key\": "
      "\"block_stop\", \"value\": \"training_step\", \"metadata\": {\"lineno\": 3, \"step_num\": "
      "7, "
      "\"samples_count\": 70, \"loss\": 0.5}}\n"
      ":::MLLOG {\"time_ms\": 1769860802000, \"event_type\": \"POINT_IN_TIME\", \"key\": "
      "\"eval_accuracy\", \"value\": 0.75, \"metadata\": {\"metric\": \"FID\", \"step_num\": 7}}\n"
      ":::MLLOG {\"time_ms\": 1769860803000, \"event_type\": \"POINT_IN_TIME\", \"key\": "
      "\"power_reading\", \"value\": 6443, \"metadata\": \"\"}\n");
  ASSERT_TRUE(sent.status.ok()) << sent.status;
  EXPECT_EQ(sent.attributes.at("0/global_batch_size"), "256");
  EXPECT_THAT(sent.series.at("0/0/h/loss"), ElementsAre(At(kStart + kSecond, 7, 0.5)));
  EXPECT_THAT(sent.series.at("0/0/h/eval_accuracy,metric=FID"),
              ElementsAre(At(kStart + 2 * kSecond, 7, 0.75)));
  EXPECT_THAT(sent.series.at("0/0/h/power_reading"),
              ElementsAre(At(kStart + 3 * kSecond, -1000, 6443)));
  ASSERT_EQ(sent.events.size(), 1);
  EXPECT_EQ(sent.events[0].kind(), "block_stop");
  EXPECT_EQ(sent.events[0].step(), 7);
  EXPECT_THAT(ReadText(ReadMlperfLog, "nothing\n").error(), HasSubstr("no MLPerf log"));
}

TEST(ImportTrainerStateTest, HistoryAndFactsAreRead) {
  const Sent sent = ReadText(ReadTrainerState,
                             "{\"best_metric\": null, \"log_history\": [\n"
                             "{\"epoch\": 0.5, \"loss\": 2.5, \"step\": 10},\n"
                             "{\"epoch\": 0.5, \"eval_loss\": 2.25, \"step\": 10}],\n"
                             "\"max_steps\": 100, \"nested\": {\"a\": [1]}}",
                             WithStart());
  ASSERT_TRUE(sent.status.ok()) << sent.status;
  EXPECT_THAT(sent.series.at("0/0/h/loss"), ElementsAre(At(kStart + 20 * kSecond, 10, 2.5)));
  EXPECT_THAT(sent.series.at("0/0/h/eval_loss"), ElementsAre(At(kStart + 20 * kSecond, 10, 2.25)));
  EXPECT_EQ(sent.summary.repeated, 1) << "the epoch stands at the same step twice";
  EXPECT_EQ(sent.attributes.at("0/planned_steps"), "100");
  EXPECT_THAT(ReadText(ReadTrainerState, "{\"a\": 1}").error(), HasSubstr("log_history"));
  EXPECT_THAT(ReadText(ReadTrainerState, "{\"log_history\": [{\"loss\": 1}]}", WithStart()).error(),
              HasSubstr("no \"step\""));
  EXPECT_THAT(ReadText(ReadTrainerState, "{\"log_history\": [{\"step\": 1, ", WithStart()).error(),
              HasSubstr("ends too early"));
}

TEST(ImportMegatronTest, ValuesAreReadAndTheirTimesMade) {
  ReadOptions options = WithStart();
  options.step_time.reset();
  const Sent sent = ReadText(ReadMegatron,
                             "{\"lm loss\": {\"start_step\": 1, \"values\": {\"1\": 10.9, \"2\": "
                             "\"nan\"}}, \"iteration-time\": {\"values\": {\"1\": 1.5, \"2\": 2.5, "
                             "\"3\": \"nan\"}}, \"old\": {\"start_step\": 5, \"end_step\": 7, "
                             "\"step_interval\": 5, \"values\": [1, 2]}}",
                             options);
  ASSERT_TRUE(sent.status.ok()) << sent.status;
  EXPECT_THAT(sent.series.at("0/0/h/lm loss"),
              ElementsAre(At(kStart + 2 * kSecond, 1, 10.9),
                          std::make_tuple(kStart + 4 * kSecond, 2, kNan)));
  EXPECT_THAT(sent.series.at("0/0/h/old"),
              ElementsAre(At(kStart + 10 * kSecond, 5, 1), At(kStart + 20 * kSecond, 10, 2)));
  EXPECT_THAT(ReadText(ReadMegatron, "{\"a\": 1}", options).error(), HasSubstr("no Megatron log"));
}

TEST(ImportStepLogTest, LinesAreFoundAmongOthers) {
  const Sent sent = ReadText(ReadStepLog,
                             "import torch\nstep: no\n"
                             "s:0 tel:11.0092\ns:0 trl:11.0091 lr:0.000001\n"
                             "step:5/100 val_loss:nan train_time:340ms\n",
                             WithStart());
  ASSERT_TRUE(sent.status.ok()) << sent.status;
  EXPECT_THAT(sent.series.at("0/0/h/tel"), ElementsAre(At(kStart, 0, 11.0092)));
  EXPECT_THAT(sent.series.at("0/0/h/train_time"), ElementsAre(At(kStart + 10 * kSecond, 5, 340)));
  ReadOptions options = WithStart();
  options.step_time.reset();
  const Sent timed = ReadText(ReadStepLog, "step:5/100 loss:1 train_time:340ms\n", options);
  EXPECT_THAT(timed.series.at("0/0/h/loss"), ElementsAre(At(kStart + 340'000'000, 5, 1)));
  EXPECT_THAT(ReadText(ReadStepLog, "nothing\n").error(), HasSubstr("s:12"));
}

TEST(ImportBuilderTest, SameRecordsMakeTheSameMessages) {
  std::string text = "step,time,a,b\n";
  for (int i = 0; i < 5000; ++i) {
    absl::StrAppend(&text, i, ",", 1769860800 + i, ",", i * 0.5, ",", i % 3 == 0 ? "" : "1", "\n");
  }
  const Sent once = ReadText(ReadCsv, text);
  const Sent twice = ReadText(ReadCsv, text);
  ASSERT_TRUE(once.status.ok()) << once.status;
  EXPECT_EQ(once.messages, twice.messages);
  EXPECT_GT(once.messages.size(), 2);
  EXPECT_EQ(once.series.at("0/0/h/a").size(), 5000);
  EXPECT_EQ(once.series.at("0/0/h/b").size(), 3333);
}

TEST(ImportBuilderTest, WideRowsAreSplitAndManyShapesDoNotGrowWithoutEnd) {
  std::string header = "step,time";
  std::string row = "1,1769860800";
  for (int i = 0; i < 2500; ++i) {
    absl::StrAppend(&header, ",m", i);
    absl::StrAppend(&row, ",", i);
  }
  const Sent sent = ReadText(ReadCsv, header + "\n" + row + "\n");
  ASSERT_TRUE(sent.status.ok()) << sent.status;
  EXPECT_EQ(sent.series.size(), 2500);
  EXPECT_EQ(sent.messages.size(), 3);
}

TEST(ImportFormatsTest, FormatsAreKnownByTheirBytes) {
  EXPECT_EQ(DetectFormatOfBytes("step,loss\n1,2\n"), FileFormat::kCsv);
  EXPECT_EQ(DetectFormatOfBytes("{\"step\": 1}\n{\"step\": 2}\n"), FileFormat::kJsonLines);
  EXPECT_EQ(DetectFormatOfBytes("x\n:::MLLOG {}\n"), FileFormat::kMlperf);
  EXPECT_EQ(DetectFormatOfBytes("{\n \"best\": null, \"log_history\": ["),
            FileFormat::kTrainerState);
  EXPECT_EQ(DetectFormatOfBytes("{\n \"lm loss\": {\"values\": "), FileFormat::kMegatron);
  EXPECT_EQ(DetectFormatOfBytes("import os\ns:0 tel:11.0\n"), FileFormat::kStepLog);
  EXPECT_EQ(DetectFormatOfBytes(std::string("\x7f"
                                            "ELF\0\1\2",
                                            7)),
            std::nullopt);
}

}  // namespace
}  // namespace tacho::importer
