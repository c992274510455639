#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/sources/text/endpoint_source.h"
#include "agent/sources/text/json_lines_source.h"
#include "agent/sources/text/textfile_source.h"
#include "tests/agent/recording_sink.h"
#include "tests/support/canned_http_server.h"
#include "tests/support/tfevents_writer.h"

namespace tacho::agent {
namespace {

namespace fs = std::filesystem;
using ::tacho::agent::testing::RecordingSink;
using ::tacho::agent::testing::StoredSample;
using ::tacho::testing::CannedHttpServer;
using ::tacho::testing::WriteFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kStale = 0x7ff0000000000002;

class TextSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = (fs::path(::testing::TempDir()) /
             absl::StrCat("text_", ::testing::UnitTest::GetInstance()->current_test_info()->name(),
                          "_", ::getpid()))
                .string();
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  TextSourceOptions Options() {
    return {.host = "host-a", .own_job = "hosts", .log = testing::LogTo(&log_)};
  }

  // Polls at the next multiple of 15 s.
  void Poll(Source* source) {
    sink_.samples.clear();
    now_ += absl::Seconds(15);
    source->Poll(now_, &sink_);
  }

  // What was filed, without what the agent says itself.
  std::vector<std::string> Filed() const {
    std::vector<std::string> lines;
    for (const StoredSample& sample : sink_.samples) {
      if (sample.metric.starts_with("tacho_agent_")) continue;
      lines.push_back(absl::StrCat(sample.job, "/", sample.task, " ", sample.metric, "{",
                                   sample.label, "} ",
                                   sample.bits == kStale ? "stale" : absl::StrCat(sample.value())));
    }
    return lines;
  }
  double Own(absl::string_view metric, absl::string_view label) const {
    for (const StoredSample& sample : sink_.samples) {
      if (sample.metric == metric && sample.label == label) return sample.value();
    }
    return std::numeric_limits<double>::quiet_NaN();
  }

  std::string root_;
  RecordingSink sink_;
  std::vector<std::string> log_;
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'010);
};

class EndpointSourceTest : public TextSourceTest {
 protected:
  EndpointSourceTest() {
    config_.set_url(server_.url());
    config_.set_name("tpu");
    config_.set_interval(absl::ToInt64Nanoseconds(absl::Seconds(15)));
    config_.set_timeout(absl::ToInt64Nanoseconds(absl::Seconds(30)));
    config_.set_max_body_bytes(10'000);
    config_.set_max_series(100);
    config_.set_timestamps(true);
    config_.mutable_series()->set_job("hosts");
  }
  void Make() {
    auto made = EndpointSource::Create(config_, Options());
    ASSERT_TRUE(made.ok()) << made.status();
    source_ = *std::move(made);
  }
  void Scrape(const std::string& body, const std::string& type = "text/plain") {
    if (source_ == nullptr) Make();
    server_.Answer(body, type);
    Poll(source_.get());
  }
  std::string Instance() const { return absl::StrCat("instance=", server_.authority()); }

  CannedHttpServer server_;
  config::v1::Endpoint config_;
  std::unique_ptr<EndpointSource> source_;
};

TEST_F(EndpointSourceTest, FilesSeriesWithTheirTypesUnderTheHost) {
  Scrape(
      "# TYPE steps counter\n# HELP steps Done\nsteps{x=\"1\"} 5\nup 1\n"
      "# TYPE h histogram\nh_bucket{le=\"+Inf\"} 2\nh_sum 3\nh_count 2\n");
  EXPECT_EQ(source_->status(), absl::OkStatus());
  EXPECT_EQ(source_->name(), "endpoint:tpu");
  EXPECT_THAT(Filed(), ElementsAre(absl::StrCat("hosts/-1 steps{", Instance(), "x=1} 5"),
                                   absl::StrCat("hosts/-1 up{", Instance(), "} 1"),
                                   absl::StrCat("hosts/-1 h_bucket{", Instance(), "le=+Inf} 2"),
                                   absl::StrCat("hosts/-1 h_sum{", Instance(), "} 3"),
                                   absl::StrCat("hosts/-1 h_count{", Instance(), "} 2")));
  const v1::Layout& layout = sink_.layouts.at(0);
  EXPECT_EQ(layout.source().host(), "host-a");
  EXPECT_EQ(layout.series(0).metric().type(), v1::METRIC_TYPE_COUNTER);
  EXPECT_EQ(layout.series(0).metric().help(), "Done");
  EXPECT_EQ(layout.series(1).metric().type(), v1::METRIC_TYPE_GAUGE);
  EXPECT_EQ(layout.series(2).metric().type(), v1::METRIC_TYPE_HISTOGRAM);
  EXPECT_EQ(layout.series(3).metric().type(), v1::METRIC_TYPE_COUNTER);
  EXPECT_EQ(Own("tacho_agent_scrape_samples", "source=endpoint:tpu"), 5);
  EXPECT_GT(Own("tacho_agent_scrape_body_bytes", "source=endpoint:tpu"), 100);
}

TEST_F(EndpointSourceTest, JobAndTaskComeFromLabels) {
  config_.mutable_series()->set_job("vision/{run}");
  config_.mutable_series()->set_task("{rank}");
  (*config_.mutable_series()->mutable_labels())["instance"] = "trainer";
  Scrape(
      "loss{run=\"a\",rank=\"3\",job=\"x\"} 1\nloss{rank=\"3\"} 2\nloss{run=\"a\",rank=\"x\"} 3\n");
  EXPECT_THAT(Filed(), ElementsAre("vision/a/3 loss{exported_job=xinstance=trainer} 1"));
  EXPECT_EQ(Own("tacho_agent_scrape_left_out_samples", "reason=no_jobsource=endpoint:tpu"), 1);
  EXPECT_EQ(Own("tacho_agent_scrape_left_out_samples", "reason=bad_tasksource=endpoint:tpu"), 1);
  EXPECT_THAT(log_, SizeIs(1));
}

TEST_F(EndpointSourceTest, AllowDenyAndDroppedLabels) {
  config_.mutable_series()->add_allow("grain_.*");
  config_.mutable_series()->add_deny(".*_created");
  config_.mutable_series()->add_drop_labels("pod");
  Scrape("grain_a{pod=\"x\",y=\"\"} 1\ngrain_created 2\ngo_gc 3\n");
  EXPECT_THAT(Filed(), ElementsAre(absl::StrCat("hosts/-1 grain_a{", Instance(), "} 1")));
  EXPECT_EQ(Own("tacho_agent_scrape_left_out_samples", "reason=not_wantedsource=endpoint:tpu"), 2);
  EXPECT_THAT(log_, IsEmpty()) << "as it was asked for";
}

TEST_F(EndpointSourceTest, SeriesThatGoesMissingEndsWithOneStaleMarkerInTheSameLayout) {
  Scrape("a 1\nb 2\n");
  const size_t layouts = sink_.layouts.size();
  Scrape("a 3\n");
  EXPECT_THAT(Filed(), ElementsAre(HasSubstr("a{"), HasSubstr("b{" + Instance() + "} stale")));
  Scrape("a 4\nb 5\n");
  EXPECT_THAT(Filed(), ElementsAre(HasSubstr("} 4"), HasSubstr("} 5")));
  EXPECT_EQ(sink_.layouts.size(), layouts);
}

TEST_F(EndpointSourceTest, EndpointThatFailsEndsItsSeriesOnceAndSaysWhy) {
  Scrape("a 1\n");
  server_.AnswerBytes("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n");
  Poll(source_.get());
  EXPECT_THAT(Filed(), ElementsAre(HasSubstr("stale")));
  EXPECT_THAT(std::string(source_->status().message()), HasSubstr("HTTP status 503"));
  Poll(source_.get());
  EXPECT_THAT(Filed(), IsEmpty());
  Scrape("a 2\n");
  EXPECT_THAT(Filed(), ElementsAre(HasSubstr("} 2")));
  EXPECT_EQ(source_->status(), absl::OkStatus());
}

TEST_F(EndpointSourceTest, DamagedTextIsRefusedAsAWhole) {
  Scrape("a 1\nb\n");
  EXPECT_THAT(Filed(), IsEmpty());
  EXPECT_THAT(std::string(source_->status().message()),
              HasSubstr("/metrics: line 2: no value of b"));
  Scrape("a 1\n", "application/openmetrics-text; version=1.0.0");
  EXPECT_THAT(std::string(source_->status().message()), HasSubstr("# EOF is missing"));
  Scrape(std::string(10'001, 'a'));
  EXPECT_THAT(std::string(source_->status().message()), HasSubstr("max_body_bytes"));
}

TEST_F(EndpointSourceTest, SeriesBeyondTheLimitAreLeftOutAndCounted) {
  config_.set_max_series(2);
  Scrape("a 1\nb 2\n");
  EXPECT_THAT(Filed(), SizeIs(2));
  EXPECT_THAT(log_, IsEmpty());
  Scrape("a 1\nb 2\nc 3\n");
  EXPECT_THAT(Filed(), SizeIs(2));
  EXPECT_EQ(Own("tacho_agent_scrape_left_out_samples", "reason=max_seriessource=endpoint:tpu"), 1);
}

TEST_F(EndpointSourceTest, SeriesThatChangeAllTheTimeMakeFewLayouts) {
  for (int i = 0; i < 200; ++i) {
    Scrape(absl::StrCat("a{id=\"", i, "\"} 1\nb 1\n"));
    EXPECT_GE(Filed().size(), 1) << "what stays is filed on";
  }
  EXPECT_LE(sink_.layouts.size(), size_t{LayoutBudget::kAtOnce} + 5 + 1) << "and one every 10 min";
  EXPECT_EQ(Own("tacho_agent_scrape_left_out_samples", "reason=changing_seriessource=endpoint:tpu"),
            1);
}

TEST_F(EndpointSourceTest, SamplesWithATimeAreFiledAtItOnce) {
  Scrape("a 1 1700000000500\nb 2\n");
  ASSERT_EQ(sink_.samples[0].metric, "a");
  EXPECT_EQ(sink_.samples[0].time_ns, 1'700'000'000'500'000'000);
  Scrape("a 1 1700000000500\nb 2\n");
  EXPECT_THAT(Filed(), ElementsAre(HasSubstr(" b{")));
  Scrape("a 7 1700000001500\nb 2\n");
  EXPECT_THAT(Filed(), SizeIs(2));
}

TEST_F(EndpointSourceTest, TimesAreLeftAsideWhereTheyAreNotWanted) {
  config_.set_timestamps(false);
  Scrape("a 1 1700000000500\n");
  ASSERT_THAT(Filed(), SizeIs(1));
  EXPECT_EQ(sink_.samples[0].time_ns, absl::ToUnixNanos(now_));
}

TEST_F(EndpointSourceTest, MistakesOfTheConfigurationNameTheirKey) {
  const auto why = [&] {
    return std::string(EndpointSource::Create(config_, Options()).status().message());
  };
  config_.set_url("https://h/");
  EXPECT_THAT(why(), HasSubstr("sources.endpoints.targets: 'https://h/'"));
  config_.set_url("http://h/");
  config_.mutable_series()->set_job("{run");
  EXPECT_THAT(why(), HasSubstr("job: '{run'"));
  config_.mutable_series()->set_job("x}");
  EXPECT_THAT(why(), HasSubstr("job: 'x}'"));
  config_.mutable_series()->set_job("x");
  (*config_.mutable_series()->mutable_labels())["host"] = "y";
  EXPECT_THAT(why(), HasSubstr("labels: 'host'"));
}

TEST_F(EndpointSourceTest, LapsesThatPrometheusTakesAreCountedAndLoggedOnce) {
  const std::string page = "# HELP a One\na 1\n# HELP a Two\nb 2";
  Scrape(page);
  Scrape(page);
  EXPECT_EQ(source_->status(), absl::OkStatus());
  EXPECT_THAT(Filed(), ElementsAre(absl::StrCat("hosts/-1 a{", Instance(), "} 1"),
                                   absl::StrCat("hosts/-1 b{", Instance(), "} 2")));
  EXPECT_EQ(Own("tacho_agent_scrape_lapses", "source=endpoint:tpu"), 2);
  EXPECT_THAT(log_, ElementsAre(HasSubstr("line 3: a second, other HELP of a")));
  Scrape("a 1\n");
  EXPECT_EQ(Own("tacho_agent_scrape_lapses", "source=endpoint:tpu"), 0);
}

// "b 2" may be what is left of "b 25".
TEST_F(EndpointSourceTest, AnswerWithoutLengthMustEndItsLastLine) {
  Make();
  server_.AnswerBytes("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\na 1\nb 2");
  Poll(source_.get());
  EXPECT_THAT(std::string(source_->status().message()),
              HasSubstr("line 2: the last line has no end"));
  server_.AnswerBytes("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\na 1\nb 2\n");
  Poll(source_.get());
  EXPECT_EQ(source_->status(), absl::OkStatus());
}

class TextfileSourceTest : public TextSourceTest {
 protected:
  void Read() {
    if (source_ == nullptr) {
      config_.set_directory(root_ + "/text");
      config_.set_interval(absl::ToInt64Nanoseconds(absl::Seconds(15)));
      config_.set_max_file_bytes(1000);
      config_.set_max_series(100);
      config_.mutable_series()->set_job("hosts");
      source_ = *TextfileSource::Create(config_, Options());
    }
    Poll(source_.get());
  }
  config::v1::Textfiles config_;
  std::unique_ptr<TextfileSource> source_;
};

TEST_F(TextfileSourceTest, ReadsAllPromFilesAndNoOther) {
  WriteFile(root_ + "/text/b.prom", "b 2\n");
  WriteFile(root_ + "/text/a.prom", "# TYPE a counter\na 1\n");
  WriteFile(root_ + "/text/a.prom.tmp", "c 1\n");
  Read();
  EXPECT_THAT(Filed(), ElementsAre("hosts/-1 a{} 1", "hosts/-1 b{} 2"));
  EXPECT_EQ(source_->status(), absl::OkStatus());
  EXPECT_EQ(Own("tacho_agent_textfiles_read", "source=textfiles"), 2);
}

TEST_F(TextfileSourceTest, DamagedFilesAreLeftOutAndTheOthersCount) {
  WriteFile(root_ + "/text/a.prom", "a 1\n");
  WriteFile(root_ + "/text/torn.prom", "b 12");
  WriteFile(root_ + "/text/times.prom", "c 1 1700000000000\n");
  WriteFile(root_ + "/text/long.prom", std::string(1001, '\n'));
  Read();
  EXPECT_THAT(Filed(), ElementsAre("hosts/-1 a{} 1"));
  EXPECT_EQ(Own("tacho_agent_textfiles_left_out", "source=textfiles"), 3);
  EXPECT_THAT(log_, SizeIs(3));
  EXPECT_EQ(source_->status(), absl::OkStatus());
}

TEST_F(TextfileSourceTest, FailsWhereTheDirectoryIsMissingOrNothingCanBeUsed) {
  Read();
  EXPECT_EQ(source_->status().code(), absl::StatusCode::kNotFound);
  WriteFile(root_ + "/text/torn.prom", "b 12");
  Read();
  EXPECT_THAT(std::string(source_->status().message()), HasSubstr("torn.prom: line 1"));
  WriteFile(root_ + "/text/torn.prom", "b 12\n");
  Read();
  EXPECT_EQ(source_->status(), absl::OkStatus());
}

TEST_F(TextfileSourceTest, SecondHelpIsTakenCountedAndLoggedOnce) {
  WriteFile(root_ + "/text/a.prom", "# HELP a One\na{x=\"1\"} 1\n# HELP a Two\n");
  Read();
  Read();
  EXPECT_THAT(Filed(), ElementsAre("hosts/-1 a{x=1} 1"));
  EXPECT_EQ(Own("tacho_agent_scrape_lapses", "source=textfiles"), 1);
  EXPECT_THAT(log_, ElementsAre(HasSubstr("a.prom: line 3: a second, other HELP of a")));
}

class JsonLinesSourceTest : public TextSourceTest {
 protected:
  void SetUp() override {
    TextSourceTest::SetUp();
    path_ = root_ + "/log.jsonl";
    config::v1::JsonLinesFile* const file = config_.add_files();
    file->set_path(path_);
    file->set_job("train");
    file->set_task(2);
    file->set_attempt(1);
    file->set_step_field("step");
    file->set_time_field("time");
    config_.set_poll_interval(absl::ToInt64Nanoseconds(absl::Seconds(2)));
  }
  void Append(const std::string& text) const {
    std::ofstream(path_, std::ios::app | std::ios::binary) << text;
  }
  // All that there is to read.
  void Read() {
    if (source_ == nullptr) source_ = *JsonLinesSource::Create(config_, Options());
    sink_.samples.clear();
    now_ += absl::Seconds(15);
    while (source_->Poll(now_, &sink_) <= now_) {
    }
  }
  std::vector<std::string> Rows() const {
    std::vector<std::string> rows;
    for (const StoredSample& sample : sink_.samples) {
      rows.push_back(absl::StrCat(sample.metric, "@", sample.step, "=", sample.value()));
    }
    return rows;
  }

  std::string path_;
  config::v1::JsonLines config_;
  std::unique_ptr<JsonLinesSource> source_;
};

TEST_F(JsonLinesSourceTest, NumbersOfALineAreARowOfItsStepAndTime) {
  Append(
      "{\"step\": 3, \"time\": 1700000000.5, \"loss\": 2.5, \"opt\": {\"lr\": 0.1}, \"note\": "
      "\"x\"}\n{\"step\":4,\"time\":1700000001,\"loss\":\"nan\",\"opt\":{\"lr\":0.2}}\n");
  Read();
  EXPECT_THAT(Rows(), ElementsAre("loss@3=2.5", "opt/lr@3=0.1", "loss@4=nan", "opt/lr@4=0.2"));
  EXPECT_EQ(sink_.samples[0].job, "train");
  EXPECT_EQ(sink_.samples[0].task, 2);
  EXPECT_EQ(sink_.samples[0].attempt, 1);
  EXPECT_EQ(sink_.samples[0].time_ns, 1'700'000'000'500'000'000);
  EXPECT_THAT(sink_.layouts, SizeIs(1));
}

TEST_F(JsonLinesSourceTest, TornLastLineWaitsForItsEnd) {
  Append("{\"step\":1,\"loss\":1}\n{\"step\":2,\"lo");
  Read();
  EXPECT_THAT(Rows(), ElementsAre("loss@1=1"));
  Append("ss\":2}\n");
  Read();
  EXPECT_THAT(Rows(), ElementsAre("loss@2=2"));
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(JsonLinesSourceTest, RotationReadsTheOldFileToItsEndThenTheNewOne) {
  Append("{\"step\":1,\"loss\":1}\n");
  Read();
  Append("{\"step\":2,\"loss\":2}\n");
  fs::rename(path_, path_ + ".1");
  Append("{\"step\":3,\"loss\":3}\n");
  Read();
  EXPECT_THAT(Rows(), ElementsAre("loss@2=2", "loss@3=3"));
  fs::resize_file(path_, 0);
  Read();
  Append("{\"step\":4,\"loss\":4}\n");
  Read();
  EXPECT_THAT(Rows(), ElementsAre("loss@4=4")) << "begun anew in place";
}

TEST_F(JsonLinesSourceTest, RestartGoesOnBehindWhatIsStored) {
  Append("{\"step\":1,\"loss\":1}\n{\"step\":2,\"loss\":2}\n{\"step\":3,");
  Read();
  EXPECT_THAT(Rows(), SizeIs(2));
  source_ = nullptr;
  Append("\"loss\":3}\n");
  Read();
  EXPECT_THAT(Rows(), ElementsAre("loss@3=3"));
}

TEST_F(JsonLinesSourceTest, RefusedRowsAreReadAgain) {
  Append("{\"step\":1,\"loss\":1}\n");
  if (source_ == nullptr) source_ = *JsonLinesSource::Create(config_, Options());
  sink_.RefuseAfter(0);
  Read();
  EXPECT_EQ(source_->status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Rows(), IsEmpty());
  sink_.RefuseNothing();
  Read();
  EXPECT_THAT(Rows(), ElementsAre("loss@1=1"));
}

TEST_F(JsonLinesSourceTest, LinesThatCannotBeUsedArePassedOverAndSaid) {
  Append(
      "no json\n[1]\n{\"step\":\"x\",\"a\":1}\n{\"step\":1,\"time\":\"?\",\"a\":1}\n{\"a\":\"b\"}\n"
      "\n{\"step\":1,\"loss\":1}\n" +
      std::string(LineTail::kMaxLineBytes + 1, 'x') + "\n{\"step\":2,\"loss\":2}\n");
  Read();
  EXPECT_THAT(Rows(), ElementsAre("loss@1=1", "loss@2=2"));
  ASSERT_FALSE(log_.empty());
  EXPECT_THAT(log_.back(), HasSubstr("lines passed over"));
}

TEST_F(JsonLinesSourceTest, MissingFileIsWaitedForAndWrongOneFails) {
  Read();
  EXPECT_EQ(source_->status(), absl::OkStatus());
  fs::create_directories(path_);
  Read();
  EXPECT_EQ(source_->status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(JsonLinesSourceTest, MembersThatAreOthersInEachLineMakeFewLayouts) {
  for (int i = 0; i < 100; ++i) Append(absl::StrCat("{\"step\":1,\"m", i, "\":1}\n"));
  Read();
  EXPECT_THAT(sink_.layouts, SizeIs(LayoutBudget::kAtOnce));
  EXPECT_THAT(log_.back(), HasSubstr("choose some with allow"));
  Append("{\"step\":2,\"m1\":1}\n");
  Read();
  EXPECT_THAT(Rows(), ElementsAre("m1@2=1"));
}

}  // namespace
}  // namespace tacho::agent
